"""Pauses of garbage collection."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from spanwise.runtime.collection import paused_collection

REAL_COUNT = gc.get_freeze_count  # tests/conftest.py replaces it after all tests are collected


@pytest.fixture
def _enabled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Collection is enabled, and objects of other tests are frozen again in the end."""
    monkeypatch.setattr(gc, "get_freeze_count", REAL_COUNT)
    was_enabled, was_frozen = gc.isenabled(), gc.get_freeze_count() > 0
    gc.enable()
    yield
    if was_frozen:
        gc.freeze()
    if not was_enabled:
        gc.disable()


@pytest.mark.usefixtures("_enabled")
def test_objects_that_the_caller_froze_stay_frozen() -> None:
    gc.freeze()
    frozen = gc.get_freeze_count()
    with paused_collection():
        assert not gc.isenabled()
    assert gc.isenabled()
    assert gc.get_freeze_count() == frozen > 0


@pytest.mark.usefixtures("_enabled")
def test_new_objects_are_old_after_a_pause() -> None:
    gc.unfreeze()
    with paused_collection():
        kept = [[] for _ in range(10_000)]
    assert gc.get_freeze_count() == 0
    assert len(kept) > gc.get_count()[0]  # not in the youngest generation
