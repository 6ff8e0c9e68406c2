"""``spanwise serve``: address, errors and shutdown."""

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
from cli_runner import Runner
from fake_service import FakePredictor
from forked import forked_command

from spanwise.prediction.load import load
from spanwise.serve import server


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.fit(tmp_path_factory.mktemp("served") / "run").folder


@pytest.fixture
def no_service(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakePredictor]:
    """A service that stops at once."""
    fake = FakePredictor()
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
def test_warning_without_token(run: Runner, no_service: FakePredictor, options: list[str], warns: bool) -> None:
    result = run("serve", "MODEL", "--port", "0", *options)
    assert result.code == 0
    assert result.err == (f"warning: {server.NO_TOKEN_WARNING}\n" if warns else "")
    assert result.out.startswith("serving MODEL at http://")


def test_typing_models_are_not_served(run: Runner, no_service: FakePredictor) -> None:
    no_service.needs_spans = True
    result = run("serve", "MODEL", "--port", "0")
    assert (result.code, result.err) == (2, "this model types given spans; only models that predict entities can be served\n")


def test_errors_are_one_line(run: Runner, tmp_path: Path) -> None:
    with socket.socket() as occupied:
        occupied.bind(("127.0.0.1", 0))
        occupied.listen()
        port = occupied.getsockname()[1]
        result = run("serve", tmp_path, "--port", port)
    assert (result.code, result.err) == (
        2,
        f"cannot listen on 127.0.0.1, port {port}: Address already in use; pass another --host or --port\n",
    )
    for host in ("ner..example.org", f"{'a' * 64}.org"):
        result = run("serve", tmp_path, "--host", host, "--port", "0")
        expected = f"cannot listen on {host}, port 0: not a host name; pass another --host or --port\n"
        assert (result.code, result.err) == (2, expected)
    result = run("serve", tmp_path, "--port", "0")
    assert result.code == 2
    assert str(tmp_path) in result.err
    for token in ("", "a b", "ü"):
        result = run("serve", tmp_path, "--token", token)
        assert (result.code, result.err) == (2, "--token: expected printable ASCII characters without spaces\n")


def test_missing_packages() -> None:
    code = "import sys; sys.modules['fastapi'] = None; from spanwise.cli import main; main(['serve', 'RUN'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "serving requires FastAPI, uvicorn and prometheus-client; run pip install 'spanwise[serve]'\n"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signal")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_responses_equal_predictions_and_shutdown_completes_requests(trained: Path, number: signal.Signals) -> None:
    text = "Later oslo was seen near aspirin acid. Then cairo came."
    expected = [
        [(entity.type, sentence.text_of(entity)) for entity in sentence.entities]
        for sentence in load(trained, "cpu").predict(text)
    ]
    assert any(expected)

    def ask(address: str, **request: Any) -> Any:
        body = json.dumps(request).encode()
        with urlopen(Request(f"{address}predict", body, {"content-type": "application/json"}), timeout=60) as answer:
            return json.load(answer)["results"]

    with forked_command("serve", trained, "--port", 0, "--device", "cpu") as command:
        command.wait_until(lambda: "\n" in command.out)
        line = command.out
        address = line.split()[3]
        [result] = ask(address, text=text)
        assert [[(entity["type"], entity["text"]) for entity in one["entities"]] for one in result["sentences"]] == expected
        with ThreadPoolExecutor(1) as threads:
            last = threads.submit(ask, address, text=(text + "\n") * 1000)
            while "spanwise_requests_in_progress 1.0" not in urlopen(f"{address}metrics").read().decode() and not last.done():
                pass
            command.send_signal(number)
            assert len(last.result()[0]["sentences"]) == 2000
        ended = command.wait()
    assert (ended.code, ended.out, ended.err) == (0, line, ""), "nothing is logged"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signal")
def test_signal_before_the_server_starts(monkeypatch: pytest.MonkeyPatch, run: Runner) -> None:
    """After the model is loaded and before uvicorn handles signals."""
    monkeypatch.setattr(server, "load", lambda source, device: FakePredictor())
    run_server = uvicorn.Server.run

    def signal_first(self: uvicorn.Server, sockets: list[socket.socket]) -> None:
        signal.raise_signal(signal.SIGTERM)
        run_server(self, sockets)

    monkeypatch.setattr(uvicorn.Server, "run", signal_first)
    result = run("serve", "MODEL", "--port", "0")
    assert (result.code, result.err) == (0, "")


def test_second_interrupt_is_a_failure(monkeypatch: pytest.MonkeyPatch, run: Runner) -> None:
    monkeypatch.setattr(server, "load", lambda source, device: FakePredictor())
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: setattr(self, "force_exit", True))
    result = run("serve", "MODEL", "--port", "0")
    assert (result.code, result.err) == (130, "spanwise: interrupted\n")
