"""Command line: one module per command, each a thin call into the library."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import typer

from spanwise.cli.analyze import analyze
from spanwise.cli.annotate import annotate
from spanwise.cli.command import Command
from spanwise.cli.compare import compare
from spanwise.cli.convert import convert
from spanwise.cli.demo import demo
from spanwise.cli.describe import describe
from spanwise.cli.distill import distill
from spanwise.cli.evaluate import evaluate
from spanwise.cli.export import export
from spanwise.cli.formats import formats
from spanwise.cli.label_studio import label_studio
from spanwise.cli.package import package
from spanwise.cli.predict import predict
from spanwise.cli.recipes import recipes
from spanwise.cli.serve import serve
from spanwise.cli.suggest import suggest
from spanwise.cli.train import train
from spanwise.cli.vectors import vectors
from spanwise.core.errors import SpanwiseError, SpanwiseWarning, missing_torch
from spanwise.core.terminal import escape_controls
from spanwise.core.version import __version__
from spanwise.runtime.collection import skip_collection_at_exit
from spanwise.runtime.threads import use_passive_waiting

app = typer.Typer(
    name="spanwise",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
for command in (
    train,
    distill,
    evaluate,
    compare,
    analyze,
    predict,
    annotate,
    suggest,
    serve,
    export,
    package,
    convert,
    describe,
    formats,
    recipes,
    demo,
):
    app.command(cls=Command)(command)
app.add_typer(vectors, name="vectors")
app.add_typer(label_studio, name="label-studio")

# Newer versions of Typer include click. This is the base class of usage errors in both cases.
_UsageError: type[Exception] = typer.BadParameter.__mro__[2]


@app.callback(invoke_without_command=True)
def spanwise(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
) -> None:
    """Span-based named entity recognition: flat, nested and discontinuous entities, and relations."""
    if version:
        typer.echo(f"spanwise {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command. User errors print one line to standard error and exit with code 2."""
    _prepare_process()
    try:
        with _warnings_as_notes():
            code = _build_command()(args=arguments, prog_name="spanwise", standalone_mode=False)
        sys.stdout.flush()
        if code == 130:  # Typer caught an interrupt
            raise KeyboardInterrupt
        sys.exit(code or 0)
    except SpanwiseError as error:
        _fail(str(error))
    except ModuleNotFoundError as error:
        if problem := missing_torch(error, "this command"):
            _fail(str(problem))
        raise
    except _UsageError as error:
        _fail(_usage_message(error))
    except (KeyboardInterrupt, typer.Abort):
        sys.stderr.write("spanwise: interrupted\n")
        sys.exit(130)
    except BrokenPipeError:  # the reader of the output closed it, as `head` does
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:
        _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))


@cache
def _build_command() -> Callable[..., Any]:
    """Build the commands once per process: tests call ``main`` hundreds of times."""
    return typer.main.get_command(app)


def _prepare_process() -> None:
    """Exit cleanly on signals, which removes temporary files; replace closed output streams; set how to wait and exit."""
    use_passive_waiting()
    skip_collection_at_exit()
    if threading.current_thread() is threading.main_thread():
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:  # not under nohup
                signal.signal(number, lambda number, frame: sys.exit(128 + number))
        sys.unraisablehook = _exit_from_unraisable
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper) and stream.encoding.lower() != "utf-8":
            stream.reconfigure(errors="replace")  # print a question mark for missing characters


@contextmanager
def _warnings_as_notes() -> Iterator[None]:
    """Print warnings of the library as notes on standard error; leave other warnings unchanged."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", SpanwiseWarning)
        show_default = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *args: Any, **options: Any) -> None:
            if issubclass(category, SpanwiseWarning):
                sys.stderr.write(f"note: {_one_line(str(message))}\n")
            else:
                show_default(message, category, *args, **options)

        warnings.showwarning = show
        yield


def _exit_from_unraisable(unraisable: sys.UnraisableHookArgs) -> None:
    """Repeat a signal that arrived where Python only reports exceptions, as in ``__del__``."""
    if isinstance(unraisable.exc_value, SystemExit):
        signal.raise_signal(signal.SIGTERM)
    else:
        sys.__unraisablehook__(unraisable)


def _usage_message(error: Exception) -> str:
    message = str(getattr(error, "format_message", error.__str__)()).rstrip(".").removeprefix("Invalid value: ")
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "spanwise"
    return f"{command}: {message[:1].lower()}{message[1:]} (see {command} --help)"


def _fail(message: str) -> NoReturn:
    sys.stderr.write(f"{_one_line(message)}\n")
    sys.exit(2)


def _one_line(message: str) -> str:
    """Return a message as one line without control characters, which files and names of others may contain."""
    return escape_controls(" ".join(message.split("\n")))
