"""Pauses of garbage collection."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from collections.abc import Iterator

import pytest

from spanwise.runtime.collection import manual_collection, paused_collection

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
    """Counts are not compared: other threads may release frozen objects at any time."""
    before: list[int] = []
    gc.freeze()
    with paused_collection():
        assert not gc.isenabled()
        new: list[int] = []
    assert gc.isenabled()
    not_frozen = {id(value) for value in gc.get_objects()}
    assert id(before) not in not_frozen
    assert id(new) in not_frozen


@pytest.mark.usefixtures("_enabled")
def test_new_objects_are_old_after_a_pause() -> None:
    gc.unfreeze()
    with paused_collection():
        kept = [[] for _ in range(10_000)]
    assert gc.get_freeze_count() == 0
    assert len(kept) > gc.get_count()[0]  # not in the youngest generation


@pytest.mark.usefixtures("_enabled")
def test_manual_collection_finds_cycles_and_restores_the_collector() -> None:
    class Node: ...

    gc.unfreeze()
    with manual_collection() as collect:
        node = Node()
        node.cycle = node  # type: ignore[attr-defined]
        reference = weakref.ref(node)
        del node
        assert reference() is not None
        collect()
        assert reference() is None
    assert gc.isenabled()
    assert not gc.get_freeze_count()


@pytest.mark.parametrize(("modules", "is_frozen"), [((), True), (("triton",), False)])
def test_triton_finds_no_leaks_at_exit(modules: tuple[str, ...], is_frozen: bool) -> None:
    """Its bindings (nanobind) print dozens of lines about every object that is not collected at exit."""
    program = (
        "import atexit, gc, sys\n"
        "from spanwise.runtime.collection import skip_collection_at_exit\n"
        "atexit.register(lambda: print(gc.get_freeze_count() > 0))\n"  # runs last
        "skip_collection_at_exit()\n"
        f"sys.modules.update(dict.fromkeys({modules!r}, gc))\n"  # imported later
    )
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert output.split() == [str(is_frozen)]
