"""A small shell that runs the commands of documentation pages in the process of the test.

It knows ``spanwise`` and ``echo``, pipes, ``<`` and ``>``. Other commands are an error: mark their block.
"""

from __future__ import annotations

import io
import shlex
import shutil
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import typer

from spanwise.cli import app, main
from spanwise.recipes.resolve import Choices

# Commands that are only parsed, and why.
PARSED = {
    "serve": "runs until it is stopped",
    "annotate": "starts processes",
    "analyze": "draws figures for several seconds",
    "distill": "predicts with all teachers, then trains",
    "--find-threshold": "needs a model that predicts many entities",
    "demo": "trains for minutes",
    "--onnx": "traces a model for several seconds",
    "--seeds": "trains several models",
    "--sweep": "trains several models",
    "--folds": "trains several models",
}
# Recipes that only pages know: a placeholder, and the head of docs/extending.md.
OTHER_RECIPES = ("RECIPE", "mean-span")


class BlockError(Exception):
    """A command of a page that does not work."""


@dataclass
class Shell:
    """Runs commands in the current folder. ``provided`` are files of the test that a command may replace by its output."""

    provided: set[str] = field(default_factory=set)

    def run(self, text: str) -> Iterator[tuple[str, int, str]]:
        """Run the commands of a block; yield each with its exit code and output."""
        for line in join_lines(text):
            code, output = self.run_line(line)
            yield line, code, output

    def run_line(self, line: str) -> tuple[int, str]:
        source, code, output = b"", 0, ""
        for words in pipeline(line):
            words, inputs, target = redirections(words)
            source = Path(inputs).read_bytes() if inputs else source
            code, out, err = self.run_command(words, source)
            if target:
                Path(target).write_text(out, encoding="utf-8")
                out = ""
            source, output = out.encode(), f"{output}{err}"
        return code, output + source.decode()

    def run_command(self, words: Sequence[str], source: bytes) -> tuple[int, str, str]:
        match words:
            case ["echo", *rest]:
                return 0, " ".join(rest) + "\n", ""
            case ["spanwise", *arguments]:
                if PARSED.keys() & set(arguments):
                    parse_command(arguments)
                    return 0, "", ""
                self._make_room(arguments)
                return call_main(arguments, source)
        raise BlockError(f"{words[0]!r} cannot run in a test; mark the block with <!-- not run: REASON -->")

    def _make_room(self, arguments: Sequence[str]) -> None:
        """Remove a provided file or folder that the command writes."""
        for option, value in pairwise(arguments):
            if option in ("--out", "--output") and value in self.provided:
                self.provided.remove(value)
                shutil.rmtree(value) if Path(value).is_dir() else Path(value).unlink()


def call_main(arguments: Sequence[str], source: bytes = b"") -> tuple[int, str, str]:
    """Run ``spanwise`` with arguments and an input; return exit code, output and messages."""
    out, err, code, before = io.StringIO(), io.StringIO(), 0, sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(source), encoding="utf-8")
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main(list(arguments))
    except SystemExit as error:
        code = int(error.code or 0)
    except Exception:
        return 1, out.getvalue(), err.getvalue() + traceback.format_exc()
    finally:
        sys.stdin = before
    return code, out.getvalue(), err.getvalue()


@cache
def root_command() -> Any:
    return typer.main.get_command(app)


def parse_command(arguments: Sequence[str]) -> None:
    """Check the name of a command, its arguments, options and settings, without running it."""
    command, context, rest = root_command(), None, list(arguments)
    name = "spanwise"
    try:
        while True:
            context = command.make_context(name, list(rest), parent=context)
            rest = [*getattr(context, "_protected_args", ()), *context.args]
            if not hasattr(command, "commands") or not rest:
                check_choices(context.params)
                return
            name, command, rest = command.resolve_command(context, rest)
            if command is None:
                raise BlockError(f"unknown command {name!r}")
    except typer.Exit:
        return
    except BlockError:
        raise
    except Exception as error:
        raise BlockError(f"spanwise {shlex.join(arguments)}: {getattr(error, 'message', None) or error}") from None


def check_choices(options: Mapping[str, Any]) -> None:
    """Check the settings of a command that trains."""
    if "recipe" in options and options["recipe"] not in OTHER_RECIPES:
        Choices(options["recipe"], options["encoder"], options.get("task"), tuple(options["settings"] or ())).resolve()


def join_lines(text: str) -> Iterator[str]:
    """Yield the commands of a block; a backslash at the end of a line continues it.

    >>> list(join_lines("spanwise \\\\\\n  formats\\n# all\\necho a"))
    ['spanwise formats', 'echo a']
    """
    for line in text.replace("\\\n", " ").splitlines():
        line = " ".join(line.split()) if "'" not in line and '"' not in line else line.strip()
        if line and not line.startswith("#"):
            yield line


def pipeline(line: str) -> Iterator[list[str]]:
    """Split a line into the words of its commands.

    >>> list(pipeline("echo 'a b' | spanwise predict RUN < x  # c"))
    [['echo', 'a b'], ['spanwise', 'predict', 'RUN', '<', 'x']]
    """
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|<>")
    lexer.whitespace_split = True
    command: list[str] = []
    for word in lexer:
        if word == "|":
            yield command
            command = []
        else:
            command.append(word)
    if command:
        yield command


def redirections(words: Sequence[str]) -> tuple[list[str], str, str]:
    """Return the words of a command without redirections, its input file and its output file."""
    rest, files, remaining = [], {"<": "", ">": ""}, iter(words)
    for word in remaining:
        if word in files:
            files[word] = next(remaining)
        else:
            rest.append(word)
    return rest, files["<"], files[">"]
