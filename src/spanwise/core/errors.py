"""Errors that a user can fix, and warnings.

The command line prints an error as one line and exits with code 2; it prints warnings as notes.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from os import PathLike
from typing import Any


class SpanwiseError(Exception):
    """A problem the user can fix: a wrong file, a wrong option, unsuitable data."""


class SpanwiseWarning(UserWarning):
    """A problem that the user should know about, but that does not stop the command."""


class FormatError(SpanwiseError):
    """A problem in an input file, reported as ``file:line: problem``.

    The middle of a problem longer than 500 characters is replaced by an ellipsis.
    """

    def __init__(self, path: str | PathLike[str], line: int | None, problem: str) -> None:
        if len(problem) > 500:
            problem = f"{problem[:250]} … {problem[-200:]}"
        self.path, self.line, self.problem = str(path), line, problem
        location = f"{path}:{line}" if line is not None else str(path)
        super().__init__(f"{location}: {problem}")


class UnknownFormatError(SpanwiseError):
    """A file whose format cannot be detected; the user has to choose one of ``names``.

    ``option`` is the command line option that sets the format.
    """

    def __init__(self, path: PathLike[str], problem: str, names: Iterable[str], hint: str = "", option: str = "") -> None:
        self.path, self.problem, self.names, self.hint, self.option = path, problem, tuple(names), hint, option
        advice = f"set the format with {option}" if option else "pass the format"
        super().__init__(f"{path}: {problem}; {advice} ({', '.join(self.names)}){hint}")

    def with_changes(self, **changes: Any) -> UnknownFormatError:
        """Return a copy with some attributes replaced, for callers that know the option or path."""
        return UnknownFormatError(**(vars(self) | changes))


def unknown_name(kind: str, name: str, known: Iterable[str]) -> SpanwiseError:
    """Return the error for an unknown name, with the closest known name as a suggestion.

    >>> str(unknown_name("format", "conl", ["conll", "brat"]))
    "unknown format 'conl' (did you mean 'conll'?); known: brat, conll"
    """
    names = sorted(known)
    return SpanwiseError(f"unknown {kind} {name!r}{did_you_mean(name, names)}; known: {', '.join(names)}")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the closest known name as a suggestion in parentheses; empty if none is close.

    >>> did_you_mean("statc", ["static", "minilm"]), did_you_mean("x", ["static", "minilm"])
    (" (did you mean 'static'?)", '')
    """
    close = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def first_line(error: Exception) -> str:
    """Return the first line of the message of a library's error, or the name of its class if it has none.

    >>> first_line(ValueError("no such file\\nsee the log")), first_line(MemoryError())
    ('no such file', 'MemoryError')
    """
    return (str(error).strip() or type(error).__name__).splitlines()[0]


TORCH_PACKAGES = frozenset({"accelerate", "safetensors", "torch", "transformers"})  # of the extra "torch"


def missing_torch(error: ModuleNotFoundError, task: str) -> SpanwiseError | None:
    """Return the error for a library of the extra ``torch`` that is not installed; None for other modules.

    >>> str(missing_torch(ModuleNotFoundError(name="torch"), "training"))
    "training needs torch; run pip install 'spanwise[torch]'"
    """
    if error.name not in TORCH_PACKAGES:
        return None
    return SpanwiseError(f"{task} needs {error.name}; run pip install 'spanwise[torch]'")
