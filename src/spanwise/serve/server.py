"""Start the service of a model. Request contents are never logged."""

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
    raise SpanwiseError("serving requires FastAPI, uvicorn and prometheus-client; run pip install 'spanwise[serve]'") from None

from spanwise.files.names import printable
from spanwise.prediction.load import load
from spanwise.serve.app import make_app
from spanwise.serve.limits import Limits

NO_TOKEN_WARNING = "anyone who can reach this address can use the model; pass --token to require a token"


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
    """Serve a model until SIGTERM or an interrupt; open requests are then completed."""
    limits = limits or Limits()
    with open_listener(host, port) as listener:
        predictor = load(source, device)
        if predictor.needs_spans:
            raise SpanwiseError("this model types given spans; only models that find entities can be served")
        predictor.predict("A warm-up sentence, so that the first request is not slow.")
        app = make_app(predictor, title=printable(Path(source).resolve().name), limits=limits, token=token)
        config = uvicorn.Config(
            app, lifespan="on", log_level="warning", access_log=False, server_header=False, timeout_keep_alive=30,
            timeout_graceful_shutdown=int(limits.timeout) + 1,
        )  # fmt: skip
        if token is None and not is_loopback(listener):
            sys.stderr.write(f"warning: {NO_TOKEN_WARNING}\n")
        listener.listen(2048)  # connections that arrive before uvicorn starts wait in this queue
        log(f"serving {printable(str(source))} at {url(listener)} (press Ctrl+C to stop)")
        run(uvicorn.Server(config), listener)


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
    except OSError as error:
        raise SpanwiseError(f"cannot listen on {host}, port {port}: {error.strerror}") from None
    return listener


def is_loopback(listener: socket.socket) -> bool:
    return ipaddress.ip_address(listener.getsockname()[0]).is_loopback


def url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"
