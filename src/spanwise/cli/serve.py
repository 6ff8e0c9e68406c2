"""``spanwise serve``."""

from __future__ import annotations

from typing import Annotated

import typer

from spanwise.serve.limits import Limits

DEFAULT = Limits()


def serve(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A run folder, or a name on the Hugging Face hub.")],
    host: Annotated[str, typer.Option("--host", help="Where to listen; 0.0.0.0 lets other machines in.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 takes a free one.")] = 8000,
    token: Annotated[
        str | None,
        typer.Option("--token", envvar="SPANWISE_TOKEN", help="Answer only who sends it (Authorization: Bearer TOKEN)."),
    ] = None,
    max_body: Annotated[int, typer.Option("--max-body", min=1, metavar="BYTES", help="Size of a request.")] = DEFAULT.body,
    max_characters: Annotated[
        int, typer.Option("--max-characters", min=1, help="Length of the text in a request.")
    ] = DEFAULT.characters,
    max_words: Annotated[int, typer.Option("--max-words", min=1, help="Words of one sentence.")] = DEFAULT.words,
    max_waiting: Annotated[
        int, typer.Option("--max-waiting", min=1, help="Requests that may wait at a time.")
    ] = DEFAULT.waiting,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.1, metavar="SECONDS", help="For a request to come and to be answered.")
    ] = DEFAULT.seconds,
    device: Annotated[str, typer.Option("--device", metavar="cpu|cuda|auto")] = "auto",
) -> None:
    """Serve a model: a page to try it on, and POST /predict for programs (described at /openapi.json).

    Requests that come at the same time are predicted together. Also there: /health, and /metrics for Prometheus. Nothing
    that is sent is written to a log.
    """
    from spanwise.core.errors import SpanwiseError
    from spanwise.serve.server import serve as run

    if token is not None and not (token and token.isascii() and token.isprintable() and " " not in token):
        raise SpanwiseError("--token must be ASCII characters without blanks")
    limits = Limits(max_body, max_characters, max_words, max_waiting, timeout)
    run(model, host=host, port=port, token=token, limits=limits, device=device, log=typer.echo)
