"""Threads for large requests, so that parsing them and building their responses blocks no other request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import ParamSpec, TypeVar

SMALL = 8 * 1024  # bytes or characters of a request that take less than a few milliseconds
LARGE_REQUESTS = 8  # that are in memory at once; further ones wait

P = ParamSpec("P")
T = TypeVar("T")


class Workers:
    """Calls functions in the event loop for small requests, and in a thread for large ones."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(2, "requests")
        self._large = asyncio.Semaphore(LARGE_REQUESTS)

    @asynccontextmanager
    async def slot(self, size: int) -> AsyncIterator[None]:
        """Wait until a request of a size may be processed; small ones never wait."""
        if size <= SMALL:
            yield
            return
        async with self._large:
            yield

    async def call(self, size: int, function: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        if size <= SMALL:
            return function(*args, **options)
        return await asyncio.get_running_loop().run_in_executor(self._threads, lambda: function(*args, **options))

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
