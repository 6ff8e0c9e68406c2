"""Connections with time limits, so that slow or idle clients cannot exhaust the service.

A connection is in one of four phases. In the first three it waits for its client; each phase has a
time limit that further bytes do not extend. If there are too many connections, the one that has
waited longest is closed, so new clients are always accepted. Connections without any answered
request are closed first, unless they are few: clients that only connect cannot displace those that
use the service. A connection whose request is being answered is never closed for another. Where
many clients connect at once, each has a moment to send its request: a few connections more than the
limit are kept for that long.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import Enum
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from spanwise.serve.limits import Limits

GRACE = 5.0  # seconds beyond the limits that the middleware enforces with an error response
PATIENCE = 1.0  # seconds that a connection may wait before it is closed for another
SPARE = 128  # connections beyond the limit while none has waited that long
SHUTDOWN_GRACE = 0.5  # seconds in which a request that was already sent can still arrive during a shutdown
TIMED_OUT = (
    b"HTTP/1.1 408 Request Timeout\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: 47\r\n\r\n"
    b'{"error":"the headers did not arrive in time"}\n'
)


class Phase(Enum):
    IDLE = "no byte of the next request"
    HEADERS = "some bytes of the next request"
    BODY = "the headers of a request"
    ANSWER = "a complete request, which is being answered"


class ConnectionPool:
    """All open connections of a service, in the order in which they started to wait."""

    def __init__(self, limits: Limits) -> None:
        self.seconds = {
            Phase.IDLE: limits.idle_timeout,
            Phase.HEADERS: limits.header_timeout,
            Phase.BODY: limits.timeout + GRACE,
            Phase.ANSWER: 2 * limits.timeout + GRACE,
        }
        self.max_connections = limits.max_connections
        self.is_stopping = False
        self.accepted = 0  # connections so far
        self._open: set[Connection] = set()
        self._new: dict[Connection, None] = {}  # waiting, without an answered request
        self._used: dict[Connection, None] = {}  # waiting, with an answered request
        self._replacement: asyncio.TimerHandle | None = None  # closes connections beyond the limit later

    def connect(self, *args: Any, **options: Any) -> Connection:
        """Create a connection; the factory that uvicorn calls."""
        return Connection(*args, pool=self, **options)

    def add(self, connection: Connection) -> None:
        self.accepted += 1
        self._open.add(connection)
        self._wait(connection, self._new)
        self._replace()

    def _replace(self) -> None:
        """Close the connections that have waited longest while there are too many."""
        if self._replacement is not None:
            self._replacement.cancel()
            self._replacement = None
        while (number := len(self._open)) > self.max_connections and (self._new or self._used):
            has_few_new = len(self._new) <= self.max_connections // 4
            longest = next(iter(self._used if has_few_new and self._used else self._new or self._used))
            remaining = longest.waiting_since + PATIENCE - longest.loop.time()
            if remaining > 0 and number <= self.max_connections + SPARE:
                self._replacement = longest.loop.call_later(remaining, self._replace)
                return
            self.discard(longest)
            longest.transport.abort()

    def update(self, connection: Connection, phase: Phase) -> None:
        """Move a connection to the end of the queue, or out of it while its request is answered."""
        self._new.pop(connection, None)
        self._used.pop(connection, None)
        if phase is not Phase.ANSWER and connection in self._open:
            self._wait(connection, self._used if connection.was_answered else self._new)

    def _wait(self, connection: Connection, queue: dict[Connection, None]) -> None:
        connection.waiting_since = connection.loop.time()
        queue[connection] = None

    def discard(self, connection: Connection) -> None:
        self._open.discard(connection)
        self._new.pop(connection, None)
        self._used.pop(connection, None)


class Connection(H11Protocol):
    """A connection of uvicorn that is closed when a phase takes too long."""

    def __init__(self, *args: Any, pool: ConnectionPool, **options: Any) -> None:
        super().__init__(*args, **options)
        self._pool = pool
        self._timer: asyncio.TimerHandle | None = None
        self._state: tuple[Phase, object] | None = None  # the phase and the request it belongs to
        self._has_bytes = False  # of the next request
        self.was_answered = False
        self.waiting_since = 0.0  # time of the event loop

    @property
    def phase(self) -> Phase:
        if self.cycle is None or self.cycle.response_complete:
            return Phase.HEADERS if self._has_bytes else Phase.IDLE
        return Phase.BODY if self.cycle.more_body else Phase.ANSWER

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._pool.add(self)
        self._update()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._pool.discard(self)
        self._stop_timer()

    def data_received(self, data: bytes) -> None:
        self._has_bytes = True
        super().data_received(data)

    def handle_events(self) -> None:
        super().handle_events()
        self._update()

    def on_response_complete(self) -> None:
        self._has_bytes = False
        self.was_answered = True
        super().on_response_complete()  # may start the next request, if it has already arrived
        self._update()

    def shutdown(self) -> None:
        """Stop after the current request, or the one that is just arriving."""
        self._pool.is_stopping = True
        if self.phase is Phase.ANSWER:
            super().shutdown()
        elif self.phase is Phase.BODY:
            self.cycle.keep_alive = False
            self._start_timer(GRACE, self.transport.abort)
        else:
            self._start_timer(SHUTDOWN_GRACE, self._close)

    def _update(self) -> None:
        """Start the time limit of a new phase."""
        phase = self.phase
        state = phase, self.cycle
        if state == self._state:
            return
        self._state = state
        self._pool.update(self, phase)
        if phase in (Phase.BODY, Phase.ANSWER):
            self._has_bytes = False
            self.cycle.keep_alive &= not self._pool.is_stopping
        self._start_timer(self._pool.seconds[phase], self._expire)

    def _expire(self) -> None:
        phase = self.phase
        if phase is Phase.HEADERS and (self.cycle is None or not self.transport.get_write_buffer_size()):
            if not self.transport.is_closing():
                self.transport.write(TIMED_OUT)
            self._close()
        elif phase is Phase.IDLE:
            self._close()
        else:
            self.transport.abort()

    def _close(self) -> None:
        """Close the connection, and soon abort it if the client does not read its response."""
        if self.transport.get_write_buffer_size():
            self._start_timer(1, self.transport.abort)
        self.transport.close()

    def _start_timer(self, seconds: float, callback: Callable[[], None]) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(seconds, callback)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
