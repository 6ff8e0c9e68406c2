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
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import typer

from spanwise.cli.command import Command
from spanwise.cli.unknown_options import suggest_options
from spanwise.core.errors import SpanwiseError, SpanwiseWarning, missing_torch
from spanwise.core.terminal import escape_controls
from spanwise.core.version import __version__
from spanwise.runtime.collection import paused_collection, skip_collection_at_exit
from spanwise.runtime.threads import use_passive_waiting

# Commands in the order of the help: each is a function in a module of the same name. Groups of commands have their own app.
COMMANDS = (
    "train", "distill", "evaluate", "compare", "analyze", "predict", "annotate", "audit", "suggest", "serve", "export",
    "package", "convert", "describe", "formats", "recipes", "demo",
)  # fmt: skip
GROUPS = {"vectors": "vectors", "label-studio": "label_studio"}

# Newer versions of Typer include click. This is the base class of usage errors in both cases.
_UsageError: type[Exception] = typer.BadParameter.__mro__[2]


def spanwise(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
) -> None:
    """Span-based named entity recognition: flat, nested and discontinuous entities, and relations.

    Run `spanwise demo` for an example, or train on your own data: `spanwise train DATA --out RUN`.
    """
    if version:
        typer.echo(f"spanwise {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command. User errors print one line to standard error and exit with code 2."""
    _prepare_process()
    given = sys.argv[1:] if arguments is None else arguments
    try:
        with _warnings_as_notes():
            with paused_collection():
                command = _build_command(given[0] if given else "")
            code = command(args=list(given), prog_name="spanwise", standalone_mode=False)
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
        _fail(_usage_message(error, given))
    except (KeyboardInterrupt, typer.Abort):
        sys.stderr.write("spanwise: interrupted\n")
        sys.exit(130)
    except BrokenPipeError:  # the reader of the output closed it, as `head` does
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:
        _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))


@cache
def _build_command(name: str = "") -> Callable[..., Any]:
    """Build the command of a name, or all of them if there is none of this name.

    Building all takes longer than a short prediction. Each is built once per process: tests call
    ``main`` hundreds of times.
    """
    return typer.main.get_command(_build_app((name,) if name in COMMANDS or name in GROUPS else (*COMMANDS, *GROUPS)))


@cache
def _build_app(names: tuple[str, ...]) -> typer.Typer:
    """Import the modules of some commands, and register them."""
    app = typer.Typer(
        name="spanwise",
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    )
    app.callback(invoke_without_command=True)(spanwise)
    for name in names:
        attribute = GROUPS.get(name, name)
        command = getattr(import_module(f"spanwise.cli.{attribute}"), attribute)
        if name in GROUPS:
            app.add_typer(command, name=name)
        else:
            app.command(cls=Command)(command)
    return app


def __getattr__(name: str) -> typer.Typer:
    """``app`` has all commands, for the documentation and tests."""
    if name == "app":
        return _build_app((*COMMANDS, *GROUPS))
    raise AttributeError(f"module 'spanwise.cli' has no attribute {name!r}")


def _prepare_process() -> None:
    """Exit cleanly on signals, which removes temporary files; replace closed output streams; set how to wait and exit."""
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # the search for them reads the metadata of all packages
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


def _usage_message(error: Exception, arguments: Sequence[str]) -> str:
    hint = suggest_options(error)
    message = str(getattr(error, "format_message", error.__str__)()).rstrip(".").removeprefix("Invalid value: ")
    context = getattr(error, "ctx", None)
    command = context.command_path if context else " ".join(("spanwise", *_command_names(arguments)))
    return f"{command}: {message[:1].lower()}{message[1:]}{hint} (see {command} --help)"


def _command_names(arguments: Sequence[str]) -> Sequence[str]:
    """Return the command that is called; the error of an option without its value does not know it."""
    first = arguments[0] if arguments else ""
    return arguments[: 2 if first in GROUPS else int(first in COMMANDS)]


def _fail(message: str) -> NoReturn:
    sys.stderr.write(f"{_one_line(message)}\n")
    sys.exit(2)


def _one_line(message: str) -> str:
    """Return a message as one line without control characters, which files and names of others may contain."""
    return escape_controls(" ".join(message.split("\n")))
