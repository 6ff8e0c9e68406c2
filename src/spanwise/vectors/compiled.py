"""Compilation of loops with numba."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any, TypeVar, cast

from spanwise.core.errors import SpanwiseError

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile a function on its first call; it runs without the global interpreter lock.

    numba is imported at the first call, so vectors can be read without it. ``__wrapped__`` is the
    Python function.
    """

    @cache
    def compile_once() -> Callable[..., Any]:
        try:
            from numba import njit
        except ImportError:
            raise SpanwiseError("training word vectors requires numba; run pip install 'spanwise[vectors]'") from None
        machine_code: Callable[..., Any] = njit(nogil=True, fastmath=True, error_model="numpy")(function)
        return machine_code

    @wraps(function)
    def call(*arguments: Any) -> Any:
        return compile_once()(*arguments)

    return cast(Function, call)
