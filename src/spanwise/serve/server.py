"""Starting the service: an address, a model, and nothing in the log that anyone sent."""

from __future__ import annotations

import ipaddress
import signal
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from spanwise.core.errors import SpanwiseError

try:
    import fastapi as fastapi
    import prometheus_client as prometheus_client
    import uvicorn
except ImportError:
    raise SpanwiseError("serving needs FastAPI, uvicorn and prometheus-client: pip install 'spanwise[serve]'") from None

from spanwise.files.names import printable
from spanwise.prediction.load import load
from spanwise.serve.app import make_app
from spanwise.serve.limits import Limits

OPEN = "whoever reaches this address can use the model; --token makes it ask for a password"


def serve(
    source: str | Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    limits: Limits | None = None,
    device: str = "auto",
    log: Callable[[str], None] = print,
) -> None:
    """Serve a model until the process is told to end (SIGTERM, an interrupt); what is being answered by then is answered."""
    limits = limits or Limits()
    with listening(host, port) as listener:
        predictor = load(source, device)
        if predictor.needs_spans:
            raise SpanwiseError("this model types given spans and finds none by itself: it cannot be served")
        predictor.predict("A first sentence, so that nobody waits for what is made ready once.")
        app = make_app(predictor, title=printable(Path(source).resolve().name), limits=limits, token=token)
        config = uvicorn.Config(
            app, lifespan="on", log_level="warning", access_log=False, server_header=False, timeout_keep_alive=30,
            timeout_graceful_shutdown=int(limits.seconds) + 1,
        )  # fmt: skip
        if token is None and not is_loopback(listener):
            sys.stderr.write(f"warning: {OPEN}\n")
        listener.listen(2048)  # who comes as soon as it is said waits a moment, and is not turned away
        log(f"serving {printable(str(source))} at {address(listener)} (Ctrl+C ends it)")
        run(uvicorn.Server(config), listener)


def run(server: uvicorn.Server, listener: socket.socket) -> None:
    """Run until a signal ends it: a service ends so when all is in order, and not as a failure. A second interrupt is one.

    uvicorn answers what it has begun, and then sends the signal again to whoever heard it before. Who did must do no more than
    to end a server that has only just been started.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        server.should_exit = True

    if threading.current_thread() is not threading.main_thread():  # where no signal is heard
        server.run(sockets=[listener])
        return
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        server.run(sockets=[listener])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if server.force_exit:
        raise KeyboardInterrupt


def listening(host: str, port: int) -> socket.socket:
    """A socket at an address, held before the model is loaded, which takes a while."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(place)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise SpanwiseError(f"cannot listen at {host}, port {port}: {error.strerror}") from None
    return listener


def is_loopback(listener: socket.socket) -> bool:
    return ipaddress.ip_address(listener.getsockname()[0]).is_loopback


def address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"
