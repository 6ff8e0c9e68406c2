"""The cache of values per sentence."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Sequence

import numpy as np
import pytest

from spanwise.core.types import Entity, Sentence
from spanwise.heads import sentence_cache
from spanwise.heads.base import Labels
from spanwise.heads.sentence_cache import BatchCache, SentenceCache
from spanwise.heads.spanner import SpanNer, SpannerSettings


def test_values_are_computed_once_per_sentence_object(monkeypatch: pytest.MonkeyPatch) -> None:
    computed = []
    monkeypatch.setattr(sentence_cache, "MAX_SENTENCES", 2)

    def compute(sentence: Sentence) -> sentence_cache.Ints:
        computed.append(sentence.id)
        return np.array([len(sentence.words)])

    cache = SentenceCache(compute)
    first, twin, third = (Sentence(name, ("w",)) for name in ("a", "a", "b"))
    for sentence in (first, twin, first, twin):
        assert cache(sentence).tolist() == [1]
    assert computed == ["a", "a"]
    cache(third)  # exceeds the limit: the cache is cleared
    cache(first)
    assert computed == ["a", "a", "b", "a"]


def test_a_batch_computes_the_missing_values(monkeypatch: pytest.MonkeyPatch) -> None:
    computed = []
    monkeypatch.setattr(sentence_cache, "MAX_SENTENCES", 2)

    def compute(sentences: Sequence[Sentence]) -> list[int]:
        computed.append([sentence.id for sentence in sentences])
        return [len(sentence.words) for sentence in sentences]

    cache = BatchCache(compute)
    first, second, third = Sentence("a", ("w",)), Sentence("b", ("w", "w")), Sentence("c", ())
    assert cache([first, second, first]) == [1, 2, 1]
    assert cache([second, first]) == [2, 1]
    assert cache([]) == []
    assert cache([second, third]) == [2, 0]  # exceeds the limit: the cache is cleared
    assert cache([third]) == [0]
    assert computed == [["a", "b"], ["b", "c"]]
    monkeypatch.setattr(sentence_cache, "CHUNK", 1)
    assert cache([first, second]) == [1, 2]
    assert computed[2:] == [["a"], ["b"]]
    assert pickle.loads(pickle.dumps(BatchCache(list)))._cached == {}


def test_copies_of_a_head_have_their_own_cache() -> None:
    head = SpanNer(4, Labels(("A",)), SpannerSettings(max_width=2, decoding="flat"))
    sentence = Sentence("s", ("w", "w"), (Entity("A", ((0, 2),)),))
    assert head.count_unreachable(sentence) == 0
    for other in (copy.deepcopy(head), pickle.loads(pickle.dumps(head))):
        other.max_width = 1
        assert other.count_unreachable(sentence) == 1
    assert head.count_unreachable(sentence) == 0
