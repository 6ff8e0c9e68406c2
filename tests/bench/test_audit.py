"""bench/audit.py: injected errors and how they are counted."""

from __future__ import annotations

import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tiny import sentences

from spanwise.core.types import Entity, Sentence

BENCH = Path(__file__).resolve().parents[2] / "bench"


@pytest.fixture(scope="module")
def bench() -> Any:
    """The module; it imports another one of its folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCH))
        patch.delitem(sys.modules, "audit", raising=False)
        import audit  # type: ignore[import-not-found]

        return audit


def test_errors_are_injected_in_equal_parts_and_all_differences_are_errors(bench: Any) -> None:
    before = sentences(400, seed=3)
    after, errors = bench.inject(before, 0.05, 1)
    count = round(0.05 * sum(len(sentence.entities) for sentence in before))
    kinds = Counter(error.kind for error in errors)
    assert len(errors) == count
    assert set(kinds) == {"dropped", "retyped", "boundary", "spurious"}
    assert max(kinds.values()) - min(kinds.values()) <= 1
    removed = [
        (i, e) for i, (old, new) in enumerate(zip(before, after, strict=True)) for e in set(old.entities) - set(new.entities)
    ]
    added = [
        (i, e) for i, (old, new) in enumerate(zip(before, after, strict=True)) for e in set(new.entities) - set(old.entities)
    ]
    assert Counter(removed) == Counter((error.sentence, error.before) for error in errors if error.before is not None)
    assert Counter(added) == Counter((error.sentence, error.after) for error in errors if error.after is not None)
    for sentence in after:  # the corpus is still flat
        ranges = sorted(entity.range for entity in sentence.entities)
        assert all(one.end <= two.start for one, two in pairwise(ranges))
    for error in errors:
        if error.kind == "boundary":
            moved = [abs(a - b) for a, b in zip(error.before.range, error.after.range, strict=True)]
            assert sorted(moved) == [0, 1]
    assert bench.inject(before, 0.05, 1) == (after, errors)
    assert bench.inject(before, 0.05, 2)[1] != errors


def test_corpora_with_one_type_have_no_retyped_entities(bench: Any) -> None:
    places = [Sentence(f"s{i}", ("in", "Oslo", "now"), (Entity("Place", ((1, 2),)),)) for i in range(100)]
    kinds = Counter(error.kind for error in bench.inject(places, 0.09, 1)[1])
    assert kinds == {"dropped": 3, "boundary": 3, "spurious": 3}


def test_each_error_is_found_once(bench: Any) -> None:
    oslo, wide, lima = Entity("Place", ((1, 2),)), Entity("Place", ((0, 2),)), Entity("Place", ((3, 4),))
    errors = [bench.InjectedError(0, "boundary", oslo, wide), bench.InjectedError(1, "dropped", lima, None)]
    items = [(0, wide, oslo), (0, wide, None), (1, None, lima), (1, None, oslo), (2, None, lima)]
    assert bench.find_hits(items, errors) == [errors[0], None, errors[1], None, None]
    summary = bench.summarise(items, errors)
    assert (summary["precision_at_n"], summary["precision_at_100"], summary["exact"]) == (0.5, 0.02, 1.0)
    assert summary["errors_in_first_n"] == {"boundary": [1, 1], "dropped": [0, 1]}
