"""What is kept of a sentence."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from spanwise.core.types import Entity, Sentence
from spanwise.heads import sentence_cache
from spanwise.heads.base import Labels
from spanwise.heads.sentence_cache import SentenceCache
from spanwise.heads.spanner import SpanNer, SpannerSettings


def test_a_sentence_is_asked_once_and_equal_ones_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(sentence_cache, "MAX_SENTENCES", 2)

    def make(sentence: Sentence) -> sentence_cache.Ints:
        asked.append(sentence.id)
        return np.array([len(sentence.words)])

    kept = SentenceCache(make)
    first, twin, third = (Sentence(name, ("w",)) for name in ("a", "a", "b"))
    for sentence in (first, twin, first, twin):
        assert kept(sentence).tolist() == [1]
    assert asked == ["a", "a"]
    kept(third)  # one too many: begins anew
    kept(first)
    assert asked == ["a", "a", "b", "a"]


def test_copies_of_a_head_use_their_own() -> None:
    head = SpanNer(4, Labels(("A",)), SpannerSettings(max_width=2, decoding="flat"))
    sentence = Sentence("s", ("w", "w"), (Entity("A", ((0, 2),)),))
    assert head.count_unreachable(sentence) == 0
    for other in (copy.deepcopy(head), pickle.loads(pickle.dumps(head))):
        other.max_width = 1
        assert other.count_unreachable(sentence) == 1
    assert head.count_unreachable(sentence) == 0
