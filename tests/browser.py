"""A real browser without a window, driven through its DevTools protocol over two pipes: no driver, no library.

What a page logs, throws and asks the network for is recorded, so that a test can say that it does none of it.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
KEYS = {"Escape": 27, "Enter": 13, "Tab": 9, "ArrowDown": 40, "ArrowUp": 38}
# The browser reads commands from descriptor 3 and answers on 4: put the pipes there and become the browser.
LAUNCH = """
import fcntl, os, sys
pipes = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3]]
for place, pipe in enumerate(pipes, 3):
    os.dup2(pipe, place)
os.execv(sys.argv[3], sys.argv[3:])
"""
PATIENCE = 30.0  # seconds that anything may take


def program() -> str | None:
    """The browser that is installed, if any."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """One browser process; ``open`` gives pages."""

    def __init__(self, path: str, profile: Path) -> None:
        to_read, self._to_write = os.pipe()
        self._to_read, to_write = os.pipe()
        options = ["--headless", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run", f"--user-data-dir={profile}"]
        options += ["--disable-dev-shm-usage", "--hide-scrollbars", "--disable-background-networking"]
        options += ["--no-sandbox"] if os.geteuid() == 0 else []
        self._process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, str(to_read), str(to_write), path, *options, "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=(to_read, to_write),
        )  # fmt: skip
        os.close(to_read)
        os.close(to_write)
        self._buffer, self._number = b"", 0
        self._answers: dict[int, dict[str, Any]] = {}
        self._pages: dict[str, Page] = {}

    def open(self, address: str, *, width: int = 1200, height: int = 900, dark: bool = False) -> Page:
        """A new page of that size, loaded."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self._pages[session] = Page(self, session)
        for domain in ("Page", "Runtime", "Network", "Log"):
            page.ask(f"{domain}.enable")
        page.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        page.ask("Emulation.setEmulatedMedia", features=[scheme])
        page.ask("Page.navigate", url=address)
        self.until(lambda: page.is_loaded, f"{address} to load")
        return page

    def ask(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its answer."""
        self._number += 1
        number = self._number
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._to_write, json.dumps(message).encode() + b"\0")
        self.until(lambda: number in self._answers, method)
        answer = self._answers.pop(number)
        assert "error" not in answer, f"{method}: {answer['error']}"
        return dict(answer["result"])

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Read what the browser says until something holds."""
        end = time.monotonic() + PATIENCE
        while not holds():
            left = end - time.monotonic()
            assert left > 0, f"waited {PATIENCE:.0f} s for {what}"
            if select.select([self._to_read], [], [], min(left, 0.2))[0]:
                piece = os.read(self._to_read, 1 << 16)
                assert piece, f"the browser ended while waiting for {what}"
                *messages, self._buffer = (self._buffer + piece).split(b"\0")
                for message in messages:
                    self._take(json.loads(message))

    def _take(self, message: dict[str, Any]) -> None:
        if "id" in message:
            self._answers[message["id"]] = message
        elif message.get("sessionId") in self._pages:
            self._pages[message["sessionId"]].take(message["method"], message["params"])

    def close(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._to_read)
        os.close(self._to_write)


class Page:
    """A page, with the ``complaints`` on its console and the ``requests`` it made."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser, self._session = browser, session
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.is_loaded = False

    def take(self, method: str, event: dict[str, Any]) -> None:
        if method == "Page.loadEventFired":
            self.is_loaded = True
        elif method == "Network.requestWillBeSent":
            if not event["request"]["url"].startswith("data:"):  # which is in the page itself
                self.requests.append(event["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            details = event["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and event["type"] in ("error", "warning", "assert"):
            self.complaints.append(str(event["args"]))
        elif method == "Log.entryAdded" and event["entry"]["level"] in ("error", "warning"):
            self.complaints.append(event["entry"]["text"])

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.ask(method, self._session, **parameters)

    def value(self, script: str) -> Any:
        """What an expression in JavaScript is."""
        answer = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def type(self, text: str) -> None:
        """Press the keys of a text."""
        for letter in text:
            self.ask("Input.dispatchKeyEvent", type="keyDown", key=letter, text=letter)
            self.ask("Input.dispatchKeyEvent", type="keyUp", key=letter)

    def press(self, key: str) -> None:
        """Press a key that is no letter, such as Escape."""
        for kind in ("rawKeyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=KEYS[key])

    def picture(self) -> bytes:
        """What is seen, as PNG."""
        return base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"])
