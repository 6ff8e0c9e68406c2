"""Loops that NumPy has no word for, compiled by numba."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any, TypeVar, cast

from spanwise.core.errors import SpanwiseError

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """The function as machine code, made when it is first called; other threads run while it does.

    numba is imported only then, so that vectors can be read and looked at without it. The plain function stays within reach as
    ``__wrapped__``.
    """

    @cache
    def machine_code() -> Callable[..., Any]:
        try:
            from numba import njit
        except ImportError:
            raise SpanwiseError("learning word vectors needs numba: pip install 'spanwise[vectors]'") from None
        found: Callable[..., Any] = njit(nogil=True, fastmath=True, error_model="numpy")(function)
        return found

    @wraps(function)
    def call(*arguments: Any) -> Any:
        return machine_code()(*arguments)

    return cast(Function, call)
