"""Clients that disconnect before the response, over real connections."""

from __future__ import annotations

import http.client
import json
import logging
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest
from fake_service import FakePredictor, serve_app, wait_until

from spanwise.serve.app import make_app
from spanwise.serve.limits import Limits

LONG = "New York.\n" * 2000  # needs several turns


@pytest.fixture
def fake() -> FakePredictor:
    return FakePredictor()


@pytest.fixture
def base_url(fake: FakePredictor, caplog: pytest.LogCaptureFixture) -> Iterator[str]:
    """A service with at most three open requests and an empty log."""
    with caplog.at_level(logging.WARNING), serve_app(make_app(fake, limits=Limits(max_requests=3))) as url:
        try:
            yield url
        finally:
            fake.gate.set()
    assert not [record.getMessage() for record in caplog.records if record.name.startswith(("spanwise", "uvicorn", "asyncio"))]


def predict(base_url: str, text: str) -> Any:
    body = json.dumps({"text": text}).encode()
    with urlopen(Request(f"{base_url}predict", body, {"content-type": "application/json"}), timeout=60) as response:
        return json.load(response)["results"]


def metrics(base_url: str) -> list[str]:
    with urlopen(f"{base_url}metrics", timeout=60) as response:
        return str(response.read().decode()).splitlines()


def send(base_url: str, text: str, missing: int = 0) -> socket.socket:
    """Send a request without its last ``missing`` bytes; do not wait for the response."""
    parts = urlsplit(base_url)
    body = json.dumps({"text": text}).encode()
    head = f"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    client = socket.create_connection((parts.hostname, parts.port), timeout=60)
    client.sendall(head.encode() + body[: len(body) - missing])
    return client


def test_disconnected_requests_are_cancelled(fake: FakePredictor, base_url: str) -> None:
    fake.gate.clear()
    clients = [send(base_url, LONG)]
    wait_until(lambda: fake.batches)
    clients += [send(base_url, LONG) for _ in range(2)]
    wait_until(lambda: "spanwise_requests_in_progress 3.0" in metrics(base_url))
    for client in clients:
        client.close()
    wait_until(lambda: "spanwise_requests_in_progress 0.0" in metrics(base_url))
    with ThreadPoolExecutor(1) as threads:
        response = threads.submit(predict, base_url, "Quick.")
        wait_until(lambda: "spanwise_requests_in_progress 1.0" in metrics(base_url))
        fake.gate.set()
        assert response.result()[0]["sentences"][0]["text"] == "Quick."
    assert fake.batches[1:] == [["Quick."]], "the current turn was completed, and no other was started for cancelled requests"
    counted = metrics(base_url)
    assert 'spanwise_requests_total{path="/predict",status="499"} 3.0' in counted
    assert 'spanwise_requests_total{path="/predict",status="200"} 1.0' in counted
    with urlopen(f"{base_url}health", timeout=60) as health:
        assert json.load(health) == {"status": "ok"}


def test_disconnect_within_the_body(fake: FakePredictor, base_url: str) -> None:
    send(base_url, LONG, missing=1).close()
    wait_until(lambda: 'spanwise_requests_total{path="/predict",status="499"} 1.0' in metrics(base_url))
    assert "spanwise_requests_in_progress 0.0" in metrics(base_url)
    assert not fake.batches


def test_several_requests_on_one_connection(base_url: str) -> None:
    parts = urlsplit(base_url)
    client = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    for text in ("New York.", "Rain.", LONG):
        client.request("POST", "/predict", json.dumps({"text": text}), {"content-type": "application/json"})
        response = client.getresponse()
        assert (response.status, response.will_close) == (200, False)
        results = json.load(response)["results"]
        assert "".join(sentence["text"] for sentence in results[0]["sentences"]) == text
    client.close()
    assert 'spanwise_requests_total{path="/predict",status="200"} 3.0' in metrics(base_url)


def test_shutdown_after_a_disconnect(fake: FakePredictor) -> None:
    with ThreadPoolExecutor(1) as threads:
        with serve_app(make_app(fake)) as url:
            fake.gate.clear()
            disconnected = send(url, LONG)
            wait_until(lambda: fake.batches)
            response = threads.submit(predict, url, "New York.")
            wait_until(lambda: "spanwise_requests_in_progress 2.0" in metrics(url))
            disconnected.close()
            wait_until(lambda: "spanwise_requests_in_progress 1.0" in metrics(url))
            fake.gate.set()
        assert len(response.result()[0]["sentences"]) == 1, "open requests are completed before the shutdown"
    assert len(fake.batches) == 2
