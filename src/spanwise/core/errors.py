"""The errors a user can act on. The command line prints them as one line and exits with 2; warnings are its notes."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from os import PathLike
from typing import Any


class SpanwiseError(Exception):
    """Something the user can mend: a wrong file, a wrong option, data that does not fit."""


class SpanwiseWarning(UserWarning):
    """Something that the user should know and that hinders nothing."""


class FormatError(SpanwiseError):
    """A place in a file that could not be read, said as ``file:line: what is wrong, what was expected``.

    What it quotes from the file may be long: the middle of a long problem is left out.
    """

    def __init__(self, path: str | PathLike[str], line: int | None, problem: str) -> None:
        if len(problem) > 500:
            problem = f"{problem[:250]} … {problem[-200:]}"
        self.path, self.line, self.problem = str(path), line, problem
        place = f"{path}:{line}" if line is not None else str(path)
        super().__init__(f"{place}: {problem}")


class UnknownFormatError(SpanwiseError):
    """A file whose format cannot be told and has to be named: one of ``names``, by the ``option`` that a command has for it."""

    def __init__(self, path: PathLike[str], problem: str, names: Iterable[str], hint: str = "", option: str = "") -> None:
        self.path, self.problem, self.names, self.hint, self.option = path, problem, tuple(names), hint, option
        advice = f"say it with {option}" if option else "it has to be named"
        super().__init__(f"{path}: {problem}; {advice} ({', '.join(self.names)}){hint}")

    def but(self, **changes: Any) -> UnknownFormatError:
        """The same error, told by somebody who knows more about it."""
        return UnknownFormatError(**(vars(self) | changes))


def unknown_name(kind: str, name: str, known: Iterable[str]) -> SpanwiseError:
    """The error for a name nobody knows, with the nearest known one.

    >>> str(unknown_name("format", "conl", ["conll", "brat"]))
    "unknown format 'conl' (did you mean 'conll'?); known: brat, conll"
    """
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return SpanwiseError(f"unknown {kind} {name!r}{hint}; known: {', '.join(names)}")
