"""Scores of spans by models of a cross-validation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tiny

from spanwise.audit.evidence import LIMIT, UNSCORED, Evidence
from spanwise.audit.span_scores import SpanScores, score_spans
from spanwise.audit.view import AuditView
from spanwise.core.types import Entity, Sentence, Span

WORDS = tuple("a b c d e f g h".split())


def test_a_tagger_scores_entities_of_any_width() -> None:
    """It has no widest span: it can reject an entity that is wider than all that it predicts."""
    model = tiny.model("static", "seqner")
    sentence = Sentence("s", WORDS, (Entity("Place", (Span(0, len(WORDS)),)),))
    [gold] = sentence.entities
    scores = score_spans(model, ("Place",), [sentence], [{gold.range}])
    view = AuditView([sentence], ("Place",), Evidence([scores], 1))
    assert view.odds(0)[0, len(WORDS), 0] <= UNSCORED + 0.01


def test_the_time_of_a_sentence_does_not_depend_on_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """All scores are limited once, not again for each sentence."""
    count, sizes, clip = 50, list[int](), np.clip
    sentence = np.arange(count, dtype=np.int32)
    zeros = np.zeros(count, np.int32)
    scores = SpanScores(sentence, zeros, zeros + 1, zeros, np.full(count, 99, np.float32))

    def counted(values: Any, *limits: float) -> Any:
        sizes.append(len(values))
        return clip(values, *limits)

    monkeypatch.setattr(np, "clip", counted)
    evidence = Evidence([scores], count)
    assert [evidence.sentence(index) for index in range(count)] == [{(0, 1, 0): LIMIT}] * count
    assert sum(sizes) == count
