"""Interrupt a training, as a kill signal does, at a call of a function."""

from __future__ import annotations

from typing import Any

import pytest


class Interrupted(BaseException):
    """Like a kill signal: no handler catches it."""


def interrupt(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, after: int, *, done: bool = False) -> None:
    """Interrupt the call number ``after`` of a function: before it starts or, with ``done``, after it ends."""
    function, calls = getattr(owner, name), []

    def failing(*arguments: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) == after and not done:
            raise Interrupted
        result = function(*arguments, **options)
        if len(calls) == after:
            raise Interrupted
        return result

    monkeypatch.setattr(owner, name, failing)
