"""When not to collect garbage: at start-up and exit, where it takes tenths of a second, and while a GPU records."""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache


@contextmanager
def paused_collection() -> Iterator[None]:
    """Collect no garbage, for example while modules are imported and a model is loaded: nearly all new objects stay.

    >>> with paused_collection():
    ...     gc.isenabled()
    False
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        # Move the new objects to the oldest generation, or the next collection would search them all. What the
        # caller has frozen stays frozen.
        if not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()
        if was_enabled:
            gc.enable()


@contextmanager
def manual_collection() -> Iterator[Callable[[], int]]:
    """Collect garbage only when the caller calls the function: between batches, when few objects are alive.

    Automatic collections in the middle of a batch search its many objects again and again, and find nothing.

    >>> with manual_collection() as collect:
    ...     collect() >= 0, gc.isenabled()
    (True, False)
    """
    was_enabled, is_frozen = gc.isenabled(), bool(gc.get_freeze_count())
    gc.disable()
    if not is_frozen:
        gc.freeze()  # objects that were there before, such as modules, are not searched
    try:
        yield gc.collect
    finally:
        if not is_frozen:
            gc.unfreeze()
        if was_enabled:
            gc.enable()


@cache
def skip_collection_at_exit() -> None:
    """Do not search all objects for garbage when the process exits; the system frees its memory anyway."""
    atexit.register(_freeze_unless_leaks_are_reported)


def _freeze_unless_leaks_are_reported() -> None:
    """Freeze all objects unless Triton is imported, which reports those of its objects that were not collected."""
    if "triton" not in sys.modules:
        gc.freeze()
