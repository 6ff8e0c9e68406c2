"""Scores of spans by models of a cross-validation."""

from __future__ import annotations

import tiny

from spanwise.audit.evidence import UNSCORED, Evidence
from spanwise.audit.span_scores import score_spans
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
