"""Result of a command that runs in the process of the test."""

from __future__ import annotations

from collections.abc import Callable


class Result:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


Runner = Callable[..., Result]
