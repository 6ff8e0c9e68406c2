"""``spanwise serve``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from spanwise.cli.options import DeviceOption, ThreadsOption
from spanwise.serve.limits import LABEL_STUDIO_LIMITS, Limits

DEFAULT = Limits()


def _limit(name: str, metavar: str, help: str, *, min: float = 1) -> Any:
    """The option for a limit; the help shows both defaults if it is higher with --label-studio."""
    default, in_label_studio = getattr(DEFAULT, name), getattr(LABEL_STUDIO_LIMITS, name)
    shown = True if default == in_label_studio else f"{default}; with --label-studio {in_label_studio}"
    return typer.Option(f"--{name.replace('_', '-')}", metavar=metavar, min=min, show_default=shown, help=help)


def serve(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Run folder, exported or installed model, or hf:OWNER/NAME.")],
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Address to listen on; 0.0.0.0 is reachable from other machines.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="Port to listen on; 0 picks a free one.")
    ] = 8000,
    token: Annotated[
        str | None,
        typer.Option("--token", metavar="TEXT", envvar="SPANWISE_TOKEN", help="Require this bearer token."),
    ] = None,
    max_body: Annotated[int | None, _limit("max_body", "BYTES", "Maximum size of a request.")] = None,
    max_characters: Annotated[int | None, _limit("max_characters", "N", "Maximum length of the text in a request.")] = None,
    max_words: Annotated[int, _limit("max_words", "N", "Maximum number of words in a sentence.")] = DEFAULT.max_words,
    max_requests: Annotated[int, _limit("max_requests", "N", "Maximum number of open requests.")] = DEFAULT.max_requests,
    timeout: Annotated[
        float | None, _limit("timeout", "SECONDS", "Maximum time to receive and to answer a request.", min=0.1)
    ] = None,
    max_texts: Annotated[int | None, _limit("max_texts", "N", "Maximum number of texts in a request.")] = None,
    max_sentences: Annotated[int | None, _limit("max_sentences", "N", "Maximum number of sentences in a request.")] = None,
    max_connections: Annotated[
        int, _limit("max_connections", "N", "Maximum number of open connections.")
    ] = DEFAULT.max_connections,
    idle_timeout: Annotated[
        float, _limit("idle_timeout", "SECONDS", "Maximum time between requests of a connection.", min=0.1)
    ] = DEFAULT.idle_timeout,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option("--allowed-host", metavar="NAME", help="Host name that requests may use; repeatable, * allows all."),
    ] = None,
    label_studio: Annotated[
        bool, typer.Option("--label-studio", help="Also serve Label Studio as a machine learning backend.")
    ] = False,
    learn: Annotated[bool, typer.Option("--learn", help="Collect the annotations of Label Studio and train on them.")] = False,
    learn_after: Annotated[
        int | None,
        typer.Option("--learn-after", metavar="N", min=1, help="Train after N new annotations; by default only on request."),
    ] = None,
    learn_data: Annotated[
        Path | None,
        typer.Option("--learn-data", metavar="DATA", help="Data to add to the annotations; models are compared on its dev."),
    ] = None,
    learn_folder: Annotated[
        Path | None,
        typer.Option("--learn-folder", metavar="DIR", help="Folder of annotations and runs; MODEL-label-studio by default."),
    ] = None,
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
) -> None:
    """Serve a model over HTTP: a web page and a JSON API.

    POST /predict returns predictions, and GET /openapi.json describes the API. GET /health is for
    health checks, GET /metrics for Prometheus. Concurrent requests are predicted in batches. Request
    contents are never logged.

    With --label-studio, you can connect the URL of the service as a model in Label Studio. With
    --learn, a new model is trained when Label Studio requests it or after N annotations. It is
    served if it is better on dev.
    """
    from spanwise.core.errors import SpanwiseError

    if token is not None and not (token and token.isascii() and token.isprintable() and " " not in token):
        raise SpanwiseError("--token: expected printable ASCII characters without spaces")
    given = {
        "max_body": max_body, "max_characters": max_characters, "max_words": max_words, "max_requests": max_requests,
        "timeout": timeout, "max_texts": max_texts, "max_sentences": max_sentences, "max_connections": max_connections,
        "idle_timeout": idle_timeout, "header_timeout": min(DEFAULT.header_timeout, idle_timeout),
    }  # fmt: skip
    changed: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    limits = replace(LABEL_STUDIO_LIMITS if label_studio else DEFAULT, **changed)
    hosts = allowed_host or ()
    if learn and not label_studio:
        raise SpanwiseError("--learn collects annotations of Label Studio; pass --label-studio as well")
    if not learn and (learn_after or learn_data or learn_folder):
        raise SpanwiseError("--learn-after, --learn-data and --learn-folder need --learn")
    if not label_studio:
        from spanwise.serve.server import serve as run

        run(model, host=host, port=port, token=token, limits=limits, allowed_hosts=hosts, device=device, log=typer.echo)
        return
    from spanwise.label_studio.learner import LearningOptions
    from spanwise.label_studio.serving import serve_label_studio

    learning = LearningOptions(learn_data, learn_after, device) if learn else None
    serve_label_studio(
        model, learning, learn_folder, host=host, port=port, token=token, limits=limits, allowed_hosts=hosts, device=device,
        log=typer.echo,
    )  # fmt: skip
