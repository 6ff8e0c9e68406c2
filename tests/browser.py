"""A headless browser, controlled by the DevTools protocol over two pipes, without a driver or library.

Errors and requests of a page are recorded, so that tests can check them.
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
# The browser reads commands from descriptor 3 and writes to 4. Move the pipes there and start it.
LAUNCH = """
import fcntl, os, sys
pipes = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3]]
for descriptor, pipe in enumerate(pipes, 3):
    os.dup2(pipe, descriptor)
os.execv(sys.argv[3], sys.argv[3:])
"""
TIMEOUT = 120.0  # seconds for any operation


def find_browser() -> str | None:
    """Path of an installed browser, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """A browser process; ``open`` opens pages."""

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
        self._buffer, self._last_id = b"", 0
        self._responses: dict[int, dict[str, Any]] = {}
        self._pages: dict[str, Page] = {}

    def open(self, address: str, *, width: int = 1200, height: int = 900, dark: bool = False) -> Page:
        """Open a page of the given size and wait until it is loaded."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self._pages[session] = Page(self, session)
        for domain in ("Page", "Runtime", "Network", "Log"):
            page.send(f"{domain}.enable")
        page.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        page.send("Emulation.setEmulatedMedia", features=[scheme])
        page.send("Page.navigate", url=address)
        self.wait_until(lambda: page.is_loaded, f"{address} to load")
        return page

    def send(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result."""
        self._last_id += 1
        id = self._last_id
        message: dict[str, Any] = {"id": id, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._to_write, json.dumps(message).encode() + b"\0")
        self.wait_until(lambda: id in self._responses, method)
        response = self._responses.pop(id)
        assert "error" not in response, f"{method}: {response['error']}"
        return dict(response["result"])

    def wait_until(self, condition: Callable[[], bool], description: str) -> None:
        """Read messages of the browser until the condition holds."""
        end = time.monotonic() + TIMEOUT
        while not condition():
            remaining = end - time.monotonic()
            assert remaining > 0, f"waited {TIMEOUT:.0f} s for {description}"
            if select.select([self._to_read], [], [], min(remaining, 0.2))[0]:
                piece = os.read(self._to_read, 1 << 16)
                assert piece, f"the browser exited while waiting for {description}"
                *messages, self._buffer = (self._buffer + piece).split(b"\0")
                for message in messages:
                    self._handle(json.loads(message))

    def _handle(self, message: dict[str, Any]) -> None:
        if "id" in message:
            self._responses[message["id"]] = message
        elif message.get("sessionId") in self._pages:
            self._pages[message["sessionId"]].handle(message["method"], message["params"])

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
    """A page with its console ``errors`` and network ``requests``."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser, self._session = browser, session
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.is_loaded = False

    def handle(self, method: str, event: dict[str, Any]) -> None:
        if method == "Page.loadEventFired":
            self.is_loaded = True
        elif method == "Network.requestWillBeSent":
            if not event["request"]["url"].startswith("data:"):  # embedded in the page
                self.requests.append(event["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            details = event["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and event["type"] in ("error", "warning", "assert"):
            self.errors.append(str(event["args"]))
        elif method == "Log.entryAdded" and event["entry"]["level"] in ("error", "warning"):
            self.errors.append(event["entry"]["text"])

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.send(method, self._session, **parameters)

    def evaluate(self, script: str) -> Any:
        """Evaluate a JavaScript expression."""
        result = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def type(self, text: str) -> None:
        """Press the keys of a text."""
        for letter in text:
            self.send("Input.dispatchKeyEvent", type="keyDown", key=letter, text=letter)
            self.send("Input.dispatchKeyEvent", type="keyUp", key=letter)

    def press(self, key: str) -> None:
        """Press a special key, such as Escape."""
        for kind in ("rawKeyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=KEYS[key])

    def screenshot(self) -> bytes:
        """Capture the page as PNG."""
        return base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"])
