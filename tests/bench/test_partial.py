"""bench/partial.py: removed entities and their marks."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from tiny import corpus

from spanwise import Sentence
from spanwise.core.partial import known_ends

SCRIPT = Path(__file__).resolve().parents[2] / "bench" / "partial.py"


@pytest.fixture(scope="module")
def partial() -> Any:
    spec = importlib.util.spec_from_file_location("partial", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_half_of_the_entities_are_removed_and_marked(partial: Any) -> None:
    sentences = corpus(80)["train"]
    removed = partial.remove_entities(sentences, 0.5, seed=1)
    assert removed == partial.remove_entities(sentences, 0.5, seed=1)
    lost = sum(len(entities) for _, entities in removed)
    assert 0.4 < lost / sum(len(sentence.entities) for sentence in sentences) < 0.6
    marked: dict[str, tuple[Sentence, ...]] = {
        kind: partial.mark(kind, removed) for kind in ("unmarked", "marked", "all", "ranges")
    }
    assert all(sentence.annotated is None for sentence in marked["unmarked"])
    assert all(sentence.annotated == () for sentence in marked["all"])
    for sentence, ranges, (_, entities) in zip(marked["marked"], marked["ranges"], removed, strict=True):
        assert sentence.annotated == (() if entities else None)
        ends = known_ends(ranges)
        assert all(entity.range.end > ends[entity.range.start] for entity in entities)
