"""Requests with very many items, slow and idle connections, and other host names, over real connections."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest
from fake_service import FakePredictor, serve_app, wait_until

from spanwise.serve.app import make_app
from spanwise.serve.hosts import AllowedHosts
from spanwise.serve.limits import Limits

HEAD = b"POST /predict HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
NO_LIMIT_ENDS_BEFORE = 9.0  # seconds: the defaults are longer, the limits of these tests much shorter


def serving(**limits: Any) -> Any:
    values = Limits(**limits)
    return serve_app(make_app(FakePredictor(), limits=values), values)


def post(url: str, body: bytes) -> tuple[int, Any]:
    try:
        with urlopen(Request(f"{url}predict", body, {"content-type": "application/json"}), timeout=60) as response:
            return response.status, json.load(response)
    except HTTPError as error:
        return error.code, json.load(error)


def connect(url: str, sent: bytes = b"") -> socket.socket:
    parts = urlsplit(url)
    client = socket.create_connection((parts.hostname, parts.port), timeout=60)
    client.sendall(sent)
    return client


def is_closed(client: socket.socket) -> bool:
    client.settimeout(0.001)
    try:
        return client.recv(1) == b""
    except ConnectionError:
        return True
    except TimeoutError:
        return False


@pytest.fixture
def connections() -> Iterator[list[socket.socket]]:
    opened: list[socket.socket] = []
    yield opened
    for client in opened:
        client.close()


def test_one_large_request_does_not_freeze_the_service() -> None:
    hostile = {
        b'{"tokens": [' + b"1, " * 690_000 + b"1]}": 413,
        b'{"texts": [' + b'"",' * 690_000 + b'""]}': 413,
        b'{"tokens": [' + b"1, " * 90_000 + b"1]}": 422,
        b'{"texts": [' + b'"",' * 90_000 + b'""]}': 413,
        b'{"text": "a", "threshold": {' + b",".join(b'"%d": 2' % n for n in range(90_000)) + b"}}": 422,
        b'{"text": "a"' + b"".join(b',"%d": 2' % n for n in range(90_000)) + b"}": 422,
        json.dumps({"text": "a\n" * 9_999}).encode(): 200,
        json.dumps({"text": "a\n" * 10_001}).encode(): 413,
    }
    with serving() as url, ThreadPoolExecutor(1) as threads:
        for body, status in hostile.items():
            started = time.process_time()  # of all threads, so that it does not depend on other processes
            answer = threads.submit(post, url, body)
            times = []
            while not answer.done():
                start = time.process_time()
                assert post(url, b'{"text": "New York"}')[0] == 200
                times.append(time.process_time() - start)
            assert answer.result()[0] == status, (body[:40], answer.result()[1]["error"])
            assert max(times, default=0) < 1, body[:40]
            assert time.process_time() - started < 10, body[:40]


def test_too_many_items_are_named() -> None:
    with serving(max_texts=2, max_words=3, max_characters=5000) as url:
        assert post(url, b'{"texts": ["", "", ""]}') == (413, {"error": "the request has 3 texts; the limit is 2"})
        assert post(url, b'{"tokens": [1, 1, 1, 1]}') == (422, {"error": "the sentence has 4 tokens; the limit is 3"})
        assert post(url, b'{"texts": ["", ""]}')[0] == post(url, b'{"tokens": ["a", "b", "c"]}')[0] == 200
        too_many = b"[" + b"0," * 10_000 + b"0]"
        assert post(url, too_many) == (413, {"error": "the request has too many items"})
        commas = json.dumps({"text": ",\n" * 2500}).encode()
        assert post(url, commas)[0] == 200, "commas in a text are no items"


def test_half_sent_requests_do_not_occupy_the_service(connections: list[socket.socket]) -> None:
    with serving(max_requests=2) as url:
        connections += [connect(url, HEAD % 100 + b'{"text"') for _ in range(5)]
        connections += [connect(url, HEAD % 2_000_000 + b" " * 60_000) for _ in range(5)]
        time.sleep(0.1)
        assert post(url, b'{"text": "New York"}')[0] == 200
        for client in connections:
            client.close()


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        (b"", b""),
        (b"POST /predict HT", b"HTTP/1.1 408 "),
        (b"GET /health HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nbody", b"HTTP/1.1 200 "),
        (HEAD % 100 + b"{", b"HTTP/1.1 408 "),
    ],
    ids=["idle", "half of the headers", "half of an ignored body", "half of the body"],
)
def test_slow_clients_are_disconnected(sent: bytes, answer: bytes) -> None:
    with serving(idle_timeout=0.3, header_timeout=0.3, timeout=0.3) as url, closing(connect(url, sent)) as client:
        client.settimeout(NO_LIMIT_ENDS_BEFORE)
        received = b""
        while part := _receive(client):
            received += part
        assert received.startswith(answer)


def _receive(client: socket.socket) -> bytes:
    try:
        return client.recv(10_000)
    except ConnectionError:
        return b""


def test_bytes_that_trickle_in_do_not_extend_the_time() -> None:
    with serving(header_timeout=0.5) as url, closing(connect(url, b"GET / HTTP/1.1\r\nhost: x\r\nx: ")) as client:
        end = time.monotonic() + NO_LIMIT_ENDS_BEFORE
        while not is_closed(client):
            client.sendall(b"a")
            time.sleep(0.05)
            assert time.monotonic() < end
            if b"408" in _peek(client):
                break


def _peek(client: socket.socket) -> bytes:
    client.settimeout(0.001)
    try:
        return client.recv(100, socket.MSG_PEEK)
    except (TimeoutError, ConnectionError):
        return b""


def test_a_client_that_does_not_read_its_response_is_disconnected() -> None:
    body = json.dumps({"text": "New York.\n" * 5000}).encode()
    with serving(idle_timeout=0.3, timeout=10) as url, closing(connect(url)) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.sendall((HEAD % len(body) + body) * 2)
        wait_until(lambda: _count(url, "/predict") >= 1)
        time.sleep(0.5)  # longer than the limit; the rest of the time passes while it sends
        with pytest.raises(ConnectionError):
            client.sendall(b" " * 30_000_000)


def _count(url: str, path: str) -> float:
    with urlopen(f"{url}metrics", timeout=60) as response:
        lines = response.read().decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(f'spanwise_requests_total{{path="{path}"'))


def test_many_waiting_connections_leave_the_service_reachable(connections: list[socket.socket]) -> None:
    kinds: list[Callable[[str], socket.socket]] = [
        connect, lambda url: connect(url, b"POST /predict"), lambda url: connect(url, HEAD % 100 + b"{"),
    ]  # fmt: skip
    with serving(max_connections=20) as url:
        with closing(HTTPConnection(urlsplit(url).netloc, timeout=60)) as used:
            for number in range(60):
                connections.append(kinds[number % 3](url))
                if number % 10 == 0:
                    used.request("GET", "/health")
                    assert used.getresponse().read() == b'{"status":"ok"}', "a connection in use is not replaced by others"
            assert post(url, b'{"text": "New York"}')[0] == 200
            wait_until(lambda: sum(map(is_closed, connections)) >= 40)
        assert not all(map(is_closed, connections[-5:])), "the connections that have waited longest are closed"
        for client in connections:
            client.close()


def test_clients_that_connect_at_once_can_all_send_their_requests(
    connections: list[socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spanwise.serve.connections.PATIENCE", 60)  # more than a busy machine takes for the requests
    body = b'{"text": "New York"}'
    with serving(max_connections=20) as url:
        for _ in range(60):
            connections.append(connect(url))
        wait_until(lambda: _count(url, "/metrics") > 1)  # requests of a later connection: the others are accepted
        for client in connections:
            client.sendall(HEAD % len(body) + body)
        assert all(client.recv(20).startswith(b"HTTP/1.1 200") for client in connections)


def test_shutdown_answers_requests_that_were_sent_before_it(connections: list[socket.socket]) -> None:
    body = b'{"text": "New York"}'
    with serving() as url:
        idle = connect(url)
        connections += [idle, *(connect(url, HEAD % len(body) + body) for _ in range(50))]
        connections.append(idle)
        idle.sendall(HEAD % len(body) + body)
    assert all(client.recv(20).startswith(b"HTTP/1.1 200") for client in connections[1:])


def test_requests_with_another_host_name_are_refused() -> None:
    with serve_app(make_app(FakePredictor(), hosts=AllowedHosts(["ner.example.org"]))) as url:
        for name, status in {
            "127.0.0.1:8000": 200, "localhost": 200, "[::1]:80": 200, "NER.example.org:80": 200, "ner.example.org.": 200,
            "evil.org": 403, "evil.org:8000": 403, "127.0.0.1.evil.org": 403, "localhost.evil.org": 403, "::1::": 403,
        }.items():  # fmt: skip
            for path in ("health", ""):
                with closing(
                    connect(url, f"GET /{path} HTTP/1.1\r\nhost: {name}\r\nconnection: close\r\n\r\n".encode())
                ) as client:
                    assert client.recv(100).startswith(b"HTTP/1.1 %d" % status), name
