"""Clients that leave before they are answered, over real connections."""

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
from served import Fake, at_address, until

from spanwise.serve.app import make_app
from spanwise.serve.limits import Limits

LONG = "New York.\n" * 2000  # takes several turns


@pytest.fixture
def fake() -> Fake:
    return Fake()


@pytest.fixture
def address(fake: Fake, caplog: pytest.LogCaptureFixture) -> Iterator[str]:
    """A service that three may wait for; it has nothing to say in its log."""
    with caplog.at_level(logging.WARNING), at_address(make_app(fake, limits=Limits(waiting=3))) as place:
        try:
            yield place
        finally:
            fake.gate.set()
    assert not [record.getMessage() for record in caplog.records if record.name.startswith(("spanwise", "uvicorn", "asyncio"))]


def ask(address: str, text: str) -> Any:
    body = json.dumps({"text": text}).encode()
    with urlopen(Request(f"{address}predict", body, {"content-type": "application/json"}), timeout=30) as answer:
        return json.load(answer)["results"]


def metrics(address: str) -> list[str]:
    with urlopen(f"{address}metrics", timeout=30) as answer:
        return str(answer.read().decode()).splitlines()


def call(address: str, text: str, missing: int = 0) -> socket.socket:
    """Send a request, but for some bytes at its end, and wait for nothing."""
    place = urlsplit(address)
    body = json.dumps({"text": text}).encode()
    head = f"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    client = socket.create_connection((place.hostname, place.port), timeout=30)
    client.sendall(head.encode() + body[: len(body) - missing])
    return client


def test_who_leaves_makes_room_and_costs_nothing_more(fake: Fake, address: str) -> None:
    fake.gate.clear()
    clients = [call(address, LONG)]
    until(lambda: fake.batches)
    clients += [call(address, LONG) for _ in range(2)]
    until(lambda: "spanwise_requests_held 3.0" in metrics(address))
    for client in clients:
        client.close()
    until(lambda: "spanwise_requests_held 0.0" in metrics(address))
    with ThreadPoolExecutor(1) as threads:
        answer = threads.submit(ask, address, "Quick.")
        until(lambda: "spanwise_requests_held 1.0" in metrics(address))
        fake.gate.set()
        assert answer.result()[0]["sentences"][0]["text"] == "Quick."
    assert fake.batches[1:] == [["Quick."]], "the turn that had begun was ended, and no other was begun for those who left"
    counted = metrics(address)
    assert 'spanwise_requests_total{path="/predict",status="499"} 3.0' in counted
    assert 'spanwise_requests_total{path="/predict",status="200"} 1.0' in counted
    with urlopen(f"{address}health", timeout=30) as health:
        assert json.load(health) == {"status": "ok"}


def test_who_leaves_within_the_body_has_asked_nothing(fake: Fake, address: str) -> None:
    call(address, LONG, missing=1).close()
    until(lambda: 'spanwise_requests_total{path="/predict",status="499"} 1.0' in metrics(address))
    assert "spanwise_requests_held 0.0" in metrics(address)
    assert not fake.batches


def test_who_stays_is_answered_again_and_again_on_one_connection(address: str) -> None:
    place = urlsplit(address)
    client = http.client.HTTPConnection(place.hostname or "", place.port, timeout=30)
    for text in ("New York.", "Rain.", LONG):
        client.request("POST", "/predict", json.dumps({"text": text}), {"content-type": "application/json"})
        answer = client.getresponse()
        assert (answer.status, answer.will_close) == (200, False)
        found = json.load(answer)["results"]
        assert "".join(sentence["text"] for sentence in found[0]["sentences"]) == text
    client.close()
    assert 'spanwise_requests_total{path="/predict",status="200"} 3.0' in metrics(address)


def test_the_service_ends_though_somebody_left(fake: Fake) -> None:
    with ThreadPoolExecutor(1) as threads:
        with at_address(make_app(fake)) as place:
            fake.gate.clear()
            gone = call(place, LONG)
            until(lambda: fake.batches)
            answer = threads.submit(ask, place, "New York.")
            until(lambda: "spanwise_requests_held 2.0" in metrics(place))
            gone.close()
            until(lambda: "spanwise_requests_held 1.0" in metrics(place))
            fake.gate.set()
        assert len(answer.result()[0]["sentences"]) == 1, "what is being answered is answered before the end"
    assert len(fake.batches) == 2
