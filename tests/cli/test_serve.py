"""``spanwise serve``: where it listens, what it refuses, and how it ends."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
import tiny
import uvicorn
from running import Runner
from served import Fake

from spanwise.prediction.load import load
from spanwise.serve import server


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.fit(tmp_path_factory.mktemp("served") / "run").folder


@pytest.fixture
def no_service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Fake]:
    """A service that ends at once."""
    fake = Fake()
    monkeypatch.setattr(server, "load", lambda source, device: fake)
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: None)
    return fake


@pytest.mark.parametrize(
    ("options", "warns"),
    [
        ([], False),
        (["--host", "localhost"], False),
        (["--host", "0.0.0.0"], True),
        (["--host", "0.0.0.0", "--token", "x"], False),
    ],
)
def test_whoever_opens_the_door_is_warned(run: Runner, no_service: Fake, options: list[str], warns: bool) -> None:
    result = run("serve", "MODEL", "--port", "0", *options)
    assert result.code == 0
    assert result.err == (f"warning: {server.OPEN}\n" if warns else "")
    assert result.out.startswith("serving MODEL at http://")


def test_a_model_that_cannot_find_anything_is_not_served(run: Runner, no_service: Fake) -> None:
    no_service.needs_spans = True
    result = run("serve", "MODEL", "--port", "0")
    assert (result.code, result.err) == (2, "this model types given spans; only models that find entities can be served\n")


def test_mistakes_are_one_line(run: Runner, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = run("serve", tmp_path, "--port", port)
    assert (result.code, result.err) == (2, f"cannot listen at 127.0.0.1, port {port}: Address already in use\n")
    result = run("serve", tmp_path, "--port", "0")
    assert result.code == 2
    assert str(tmp_path) in result.err
    for token in ("", "a b", "ü"):
        result = run("serve", tmp_path, "--token", token)
        assert (result.code, result.err) == (2, "--token: expected printable ASCII characters without spaces\n")


def test_what_is_missing_is_named() -> None:
    code = "import sys; sys.modules['fastapi'] = None; from spanwise.cli import main; main(['serve', 'RUN'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "serving needs FastAPI, uvicorn and prometheus-client: pip install 'spanwise[serve]'\n"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signal")
@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGINT])
def test_it_answers_as_the_model_does_and_ends_what_it_began(trained: Path, told: signal.Signals) -> None:
    text = "Later oslo was seen near aspirin acid. Then cairo came."
    truth = [
        [(entity.type, sentence.text_of(entity)) for entity in sentence.entities]
        for sentence in load(trained, "cpu").predict(text)
    ]
    assert any(truth)

    def ask(address: str, **request: Any) -> Any:
        body = json.dumps(request).encode()
        with urlopen(Request(f"{address}predict", body, {"content-type": "application/json"}), timeout=60) as answer:
            return json.load(answer)["results"]

    # A shell may have had interrupts ignored, which Python then does, too.
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\nfrom spanwise.cli import main; main()"
    command = [sys.executable, "-c", code, "serve", str(trained), "--port", "0", "--device", "cpu"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().split()[3]
            [result] = ask(address, text=text)
            assert [[(entity["type"], entity["text"]) for entity in one["entities"]] for one in result["sentences"]] == truth
            with ThreadPoolExecutor(1) as threads:
                last = threads.submit(ask, address, text=(text + "\n") * 1000)
                while "spanwise_requests_held 1.0" not in urlopen(f"{address}metrics").read().decode() and not last.done():
                    pass
                process.send_signal(told)
                assert len(last.result()[0]["sentences"]) == 2000
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, out, err) == (0, "", ""), "and not a word of what was sent"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signal")
def test_told_to_end_before_it_has_begun(monkeypatch: pytest.MonkeyPatch, run: Runner) -> None:
    """The moment between the model's being there and uvicorn's hearing signals itself."""
    monkeypatch.setattr(server, "load", lambda source, device: Fake())
    run_server = uvicorn.Server.run

    def first(self: uvicorn.Server, sockets: list[socket.socket]) -> None:
        signal.raise_signal(signal.SIGTERM)
        run_server(self, sockets)

    monkeypatch.setattr(uvicorn.Server, "run", first)
    result = run("serve", "MODEL", "--port", "0")
    assert (result.code, result.err) == (0, "")


def test_a_second_interrupt_ends_it_out_of_order(monkeypatch: pytest.MonkeyPatch, run: Runner) -> None:
    monkeypatch.setattr(server, "load", lambda source, device: Fake())
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: setattr(self, "force_exit", True))
    result = run("serve", "MODEL", "--port", "0")
    assert (result.code, result.err) == (130, "spanwise: interrupted\n")
