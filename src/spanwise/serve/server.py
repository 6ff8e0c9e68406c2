"""Start the service of a model. Request contents are never logged."""

from __future__ import annotations

import asyncio
import ipaddress
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any, cast

from spanwise.core.errors import SpanwiseError

try:
    import fastapi as fastapi
    import prometheus_client as prometheus_client
    import uvicorn
except ImportError:
    raise SpanwiseError("serving requires FastAPI, uvicorn and prometheus-client; run pip install 'spanwise[serve]'") from None

from spanwise.files.names import printable
from spanwise.prediction.load import load
from spanwise.serve.app import make_app
from spanwise.serve.connections import SPARE, ConnectionPool
from spanwise.serve.extension import Extension
from spanwise.serve.hosts import AllowedHosts
from spanwise.serve.limits import Limits

NO_TOKEN_WARNING = "anyone who can reach this address can use the model; pass --token to require a token"


BACKLOG = 2048  # connections that wait until they are accepted
ACCEPTED_AT_ONCE = 128
OTHER_FILES = 2 * ACCEPTED_AT_ONCE + SPARE + 128  # open files beyond the connections, and connections being replaced


def serve(
    source: str | Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    limits: Limits | None = None,
    allowed_hosts: Sequence[str] = (),
    device: str = "auto",
    log: Callable[[str], None] = print,
    extension: Extension | None = None,
    title: str | None = None,
) -> None:
    """Serve a model until SIGTERM or an interrupt; open requests are then completed.

    ``title`` is the name of the model, that of its folder by default.

    On a loopback address the Host header of requests must be an address, ``localhost`` or one of
    ``allowed_hosts``. On other addresses it is only checked if ``allowed_hosts`` are given.
    """
    limits = raise_file_limit(limits or Limits())
    with open_listener(host, port) as listener:
        predictor = load(source, device)
        if predictor.needs_spans:
            raise SpanwiseError("this model types given spans; only models that predict entities can be served")
        predictor.predict("A warm-up sentence, so that the first request is not slow.")
        hosts = AllowedHosts((host, *allowed_hosts)) if allowed_hosts or is_loopback(listener) else None
        title = title or printable(Path(source).resolve().name)
        app = make_app(predictor, title=title, limits=limits, token=token, hosts=hosts, extension=extension)
        if token is None and not is_loopback(listener):
            sys.stderr.write(f"warning: {NO_TOKEN_WARNING}\n")
        listener.listen(BACKLOG)  # connections that arrive before uvicorn starts wait in this queue
        log(f"serving {printable(str(source))} at {url(listener)} (press Ctrl+C to stop)")
        run(make_server(app, limits), listener)


class Server(uvicorn.Server):
    """A server with a long queue of new connections, of which it accepts few at a time."""

    def __init__(self, config: uvicorn.Config, pool: ConnectionPool) -> None:
        super().__init__(config)
        self.pool = pool

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(BACKLOG)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept the connections that are already in the queue, so that their requests are completed too."""
        self.pool.is_stopping = True
        accepted = -1
        for _ in range(20):
            if accepted == self.pool.accepted:
                break
            accepted = self.pool.accepted
            await asyncio.sleep(0.05)
        await super().shutdown(sockets)


def make_server(app: Any, limits: Limits) -> Server:
    """Build a server whose connections have time limits."""
    pool = ConnectionPool(limits)
    # Log neither invalid requests, which a client could send without end, nor request contents.
    config = uvicorn.Config(
        app, http=cast(Any, pool.connect), ws="none", lifespan="on", log_level="error", access_log=False,
        server_header=False, backlog=ACCEPTED_AT_ONCE, timeout_keep_alive=int(limits.idle_timeout) + 1,
        timeout_graceful_shutdown=int(limits.timeout) + 1,
    )  # fmt: skip
    return Server(config, pool)


def raise_file_limit(limits: Limits) -> Limits:
    """Raise the process's limit of open files for the connections; reduce their number if that is not possible."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return limits
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    needed = limits.max_connections + OTHER_FILES
    if soft != unlimited and soft < needed:
        soft = needed if hard == unlimited else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        return replace(limits, max_connections=max(1, min(limits.max_connections, soft - OTHER_FILES)))
    return limits


def run(server: uvicorn.Server, listener: socket.socket) -> None:
    """Run until a signal stops the server; raise ``KeyboardInterrupt`` after a second interrupt.

    uvicorn completes open requests and then repeats the signal for the previous handler. ``stop``
    is that handler; it also stops a server that is still starting.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        server.should_exit = True

    if threading.current_thread() is not threading.main_thread():  # signals reach only the main thread
        server.run(sockets=[listener])
        return
    previous = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        server.run(sockets=[listener])
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    if server.force_exit:
        raise KeyboardInterrupt


def open_listener(host: str, port: int) -> socket.socket:
    """Bind a socket before the model is loaded, so that address errors appear at once."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
        except OSError:
            listener.close()
            raise
    except (OSError, UnicodeError) as error:
        problem = error.strerror if isinstance(error, OSError) else "not a host name"  # such as one with an empty part
        raise SpanwiseError(f"cannot listen on {host}, port {port}: {problem}; pass another --host or --port") from None
    return listener


def is_loopback(listener: socket.socket) -> bool:
    return ipaddress.ip_address(listener.getsockname()[0]).is_loopback


def url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"
