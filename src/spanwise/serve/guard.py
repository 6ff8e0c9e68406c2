"""What stands before the service: who may ask, how much a request may hold, and the headers of every answer."""

from __future__ import annotations

import asyncio
import hmac
import json
import time
from collections.abc import Callable, Iterable
from typing import Any

from anyio import CancelScope
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from spanwise.serve.limits import Limits
from spanwise.serve.metrics import Metrics
from spanwise.serve.refusals import RefusedError, as_refusal

PREDICT, METRICS = "/predict", "/metrics"
PATHS = ("/", PREDICT, "/health", METRICS, "/openapi.json")
LEFT = 499  # what a request is counted as, whose client left before an answer began; nobody is sent it
PATIENCE = 32 * 1024 * 1024  # bytes that are read and dropped, so that a client that sends too much still hears why
HEADERS = {
    b"cache-control": b"no-store",
    b"referrer-policy": b"no-referrer",
    b"x-content-type-options": b"nosniff",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
}


class Guard:
    """Reads bodies within the limits before anything else sees them, and answers what is refused by itself."""

    def __init__(self, app: ASGIApp, limits: Limits, metrics: Metrics, token: str | None) -> None:
        self.app, self.limits, self.metrics = app, limits, metrics
        self._secret = None if token is None else f"Bearer {token}".encode()
        self._held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path = scope["path"] if scope["path"] in PATHS else "other"
        began, status = time.perf_counter(), LEFT  # until an answer begins

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(item for item in HEADERS.items() if item[0] not in own)]
            await send(message)

        try:
            await self._pass(scope, receive, answer)
        except Exception as error:
            if status != LEFT:
                raise
            await _refuse(as_refusal(error), answer)
        finally:
            self.metrics.requests.labels(path, status).inc()
            self.metrics.seconds.labels(path).observe(time.perf_counter() - began)

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._secret is not None and scope["path"] in (PREDICT, METRICS) and not self._is_known(scope["headers"]):
            raise RefusedError(401, "a token is needed: Authorization: Bearer …", {"www-authenticate": "Bearer"})
        if scope["path"] != PREDICT:
            await self.app(scope, receive, send)
            return
        if self._held >= self.limits.waiting:
            raise RefusedError(503, f"{self._held} requests are waiting already; try again later", {"retry-after": "1"})
        self._held += 1
        self.metrics.held.set(self._held)
        try:
            body = await self._body(scope, receive)
            if body is not None:
                await self._answer(scope, body, receive, send)
        finally:
            self._held -= 1
            self.metrics.held.set(self._held)

    def _is_known(self, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        given = dict(headers).get(b"authorization", b"")
        return self._secret is not None and hmac.compare_digest(given, self._secret)

    async def _answer(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        """Let the service answer, or be cancelled where the client leaves first: nothing is predicted for nobody."""
        with CancelScope() as answering:
            watch = asyncio.create_task(_when_left(receive, answering.cancel))
            try:
                await self.app(scope, _replayed(body, receive), send)
            finally:
                watch.cancel()

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        """What was sent; None where the client left before it was all there."""
        too_large = RefusedError(413, f"the body is larger than {self.limits.body:,} bytes", {"connection": "close"})
        said = dict(scope["headers"]).get(b"content-length", b"")
        if said.isdigit() and int(said) > PATIENCE:
            raise too_large
        pieces, size = [], 0
        try:
            async with asyncio.timeout(self.limits.seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    size += len(message.get("body", b""))
                    if size <= self.limits.body:
                        pieces.append(message.get("body", b""))
                    if size > PATIENCE or not message.get("more_body", False):
                        break
        except TimeoutError:
            raise RefusedError(408, f"the body did not arrive within {self.limits.seconds:g} s") from None
        if size > self.limits.body:
            raise too_large
        return b"".join(pieces)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body as one message; what comes behind it is the client's leaving."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def _when_left(receive: Receive, act: Callable[[], None]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    act()


async def _refuse(refused: RefusedError, send: Send) -> None:
    body = to_bytes({"error": refused.reason})
    headers = {"content-type": "application/json", "content-length": str(len(body)), **refused.headers}
    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": refused.status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})


def to_bytes(value: Any) -> bytes:
    """JSON in UTF-8. A refusal may name a key that is no Unicode text; a question mark stands for what cannot be written."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode(errors="replace")
