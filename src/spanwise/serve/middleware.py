"""ASGI middleware: authentication, size and time limits, cancellation, metrics and headers."""

from __future__ import annotations

import asyncio
import hmac
import json
import time
from base64 import b64decode
from collections.abc import Callable, Iterable
from typing import Any

from anyio import CancelScope
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from spanwise.serve.errors import RequestError, to_request_error
from spanwise.serve.extension import Extension
from spanwise.serve.hosts import NOT_ALLOWED, AllowedHosts
from spanwise.serve.limits import Limits
from spanwise.serve.metrics import Metrics

PREDICT, METRICS = "/predict", "/metrics"
PATHS = ("/", PREDICT, "/health", METRICS, "/openapi.json")
DISCONNECTED = 499  # status in the metrics if the client disconnects before the response; never sent
MAX_DISCARDED = 32 * 1024 * 1024  # bytes of a too large body that are read, so that the client receives the error
LARGE_BODY = 64 * 1024  # bytes; larger bodies are received a few at a time, which bounds memory
LARGE_BODIES = 32
HEADERS = {
    b"cache-control": b"no-store",
    b"referrer-policy": b"no-referrer",
    b"x-content-type-options": b"nosniff",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
}


class RequestMiddleware:
    """Check requests and read their bodies before the application; send error responses."""

    def __init__(
        self, app: ASGIApp, limits: Limits, metrics: Metrics, token: str | None, hosts: AllowedHosts | None = None,
        extension: Extension | None = None,
    ) -> None:  # fmt: skip
        self.app, self.limits, self.metrics, self.hosts = app, limits, metrics, hosts
        self._token = None if token is None else token.encode()
        extension = extension or Extension()
        self._posts = {PREDICT, *extension.posts}
        self._protected = {METRICS, *self._posts, *extension.gets}
        self._paths = {*PATHS, *self._protected}
        self._in_progress = 0
        self._large_bodies = asyncio.Semaphore(LARGE_BODIES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path = scope["path"] if scope["path"] in self._paths else "other"
        start, status = time.perf_counter(), DISCONNECTED  # until the response starts

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                present = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(item for item in HEADERS.items() if item[0] not in present)]
            await send(message)

        try:
            await self._handle(scope, receive, send_with_headers)
        except Exception as error:
            if status != DISCONNECTED:
                raise
            await _send_error(to_request_error(error), send_with_headers)
        finally:
            self.metrics.requests.labels(path, status).inc()
            self.metrics.seconds.labels(path).observe(time.perf_counter() - start)

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.hosts is not None and not self.hosts.allows(dict(scope["headers"]).get(b"host", b"")):
            raise RequestError(403, NOT_ALLOWED)
        if scope["path"] in self._protected and not self._is_authorized(scope["headers"]):
            message = "missing or wrong token; send the header Authorization: Bearer TOKEN"
            raise RequestError(401, message, {"www-authenticate": "Bearer"})
        if scope["path"] not in self._posts:
            await self.app(scope, receive, send)
            return
        body = await self._read_body(scope, receive)
        if body is None:
            return
        if self._in_progress >= self.limits.max_requests:
            raise RequestError(503, f"requests already waiting: {self._in_progress:,}; try again later", {"retry-after": "1"})
        self._in_progress += 1
        self.metrics.in_progress.set(self._in_progress)
        try:
            await self._respond(scope, body, receive, send)
        finally:
            self._in_progress -= 1
            self.metrics.in_progress.set(self._in_progress)

    def _is_authorized(self, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        return self._token is None or hmac.compare_digest(_given_token(dict(headers).get(b"authorization", b"")), self._token)

    async def _respond(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        """Call the application; cancel a prediction if the client disconnects."""
        if scope["path"] != PREDICT:
            await self.app(scope, _replay(body, receive), send)
            return
        with CancelScope() as cancel_scope:
            watcher = asyncio.create_task(_on_disconnect(receive, cancel_scope.cancel))
            try:
                await self.app(scope, _replay(body, receive), send)
            finally:
                watcher.cancel()

    async def _read_body(self, scope: Scope, receive: Receive) -> bytes | None:
        """Read the body; None if the client disconnects first."""
        too_large = RequestError(413, f"the body is larger than {self.limits.max_body:,} bytes", {"connection": "close"})
        declared = dict(scope["headers"]).get(b"content-length", b"")
        if declared.isdigit() and int(declared) > MAX_DISCARDED:
            raise too_large
        body, size, has_slot = bytearray(), 0, False
        try:
            async with asyncio.timeout(self.limits.timeout):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    size += len(message.get("body", b""))
                    if size <= self.limits.max_body:
                        body += message.get("body", b"")
                    if size > MAX_DISCARDED or not message.get("more_body", False):
                        break
                    if size > LARGE_BODY and not has_slot:
                        has_slot = await self._large_bodies.acquire()
        except TimeoutError:
            problem = f"the body did not arrive within {self.limits.timeout:g} s"
            raise RequestError(408, problem, {"connection": "close"}) from None
        finally:
            if has_slot:
                self._large_bodies.release()
        if size > self.limits.max_body:
            raise too_large
        return bytes(body)


def _given_token(header: bytes) -> bytes:
    """Return the token of an Authorization header: a bearer token, or the password of basic authentication.

    The name of the scheme may have any case (RFC 9110, section 11.1).

    >>> _given_token(b"Bearer open-sesame"), _given_token(b"basic dXNlcjpvcGVuLXNlc2FtZQ=="), _given_token(b"Basic !")
    (b'open-sesame', b'open-sesame', b'')
    """
    scheme, _, value = header.partition(b" ")
    if scheme.lower() == b"bearer":
        return value.strip(b" ")
    if scheme.lower() != b"basic":
        return b""
    try:
        return b64decode(value, validate=True).partition(b":")[2]
    except ValueError:
        return b""


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return the body as one message, and then the messages of ``receive``."""
    is_sent = False

    async def receive_again() -> Message:
        nonlocal is_sent
        if is_sent:
            return await receive()
        is_sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again


async def _on_disconnect(receive: Receive, callback: Callable[[], None]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    callback()


async def _send_error(error: RequestError, send: Send) -> None:
    body = to_bytes({"error": error.message})
    headers = {"content-type": "application/json", "content-length": str(len(body)), **error.headers}
    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": error.status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})


def to_bytes(value: Any) -> bytes:
    """JSON in UTF-8. Invalid Unicode, which an error may quote from a key, becomes question marks."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode(errors="replace")
