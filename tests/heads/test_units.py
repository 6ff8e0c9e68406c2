"""Spans of subwords in pointers, biaffine and SpanNER: gold, scores and conversion to words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from deep_spans import LABELS, check_batch_invariance, encode_batch, overfits, random_encoder
from tiny import sentences

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Entity, Sentence
from spanwise.heads import head_class, head_settings
from spanwise.heads.abilities import HasSpanProbabilities
from spanwise.heads.units import UnitHead

KINDS: dict[str, dict[str, Any]] = {
    "global-pointer": {}, "efficient-global-pointer": {"max_width": 4}, "biaffine": {"smoothing": 0.0},
    "spanner": {"max_width": 4},
}  # fmt: skip
SENTENCE = Sentence(
    "s", ("the", "xyz", "oslo", "ab"), (Entity("Drug", ((1, 2),)), Entity("Place", ((2, 4),)), Entity("Drug", ((0, 3),)))
)  # 1, 3, 1 and 2 subwords


def build(encoder: Any, kind: str, **options: Any) -> UnitHead:
    torch.manual_seed(7)
    settings = head_settings({"kind": kind, "decoding": "nested", "unit": "subwords", **KINDS[kind], **options})
    head = head_class(kind).build(encoder, LABELS, settings)
    assert isinstance(head, UnitHead)
    return head.eval()


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_gold_counts_subwords_and_predictions_count_words(tiny_bert: Path, kind: str) -> None:
    encoder = random_encoder("bert", tiny_bert)
    head = build(encoder, kind)
    assert encoder.subword_counts(SENTENCE).tolist() == [1, 3, 1, 2]
    assert head.length(SENTENCE) == 7
    is_narrow = head.max_width is not None
    assert head._gold(SENTENCE).tolist() == ([] if is_narrow else [[0, 5, 0]]) + [[1, 4, 0], [4, 7, 1]]
    assert head.count_unreachable(SENTENCE) == is_narrow + (not is_narrow)  # 0-5 is too wide, or crosses 4-7
    states, targets = encode_batch(encoder, head, sentences=[SENTENCE], gold=True)
    assert states.mask.tolist() == [[True] * 7]
    assert bool(head.loss(states, targets).sums.isfinite().all())
    states, targets = encode_batch(encoder, head, sentences=[SENTENCE])
    assert isinstance(head, HasSpanProbabilities)
    packed = head.span_probabilities(states, targets)
    rows = set(zip(packed.start.tolist(), packed.end.tolist(), strict=True))
    spans = {(start, end) for start in range(4) for end in range(start + 1, 5)}
    wide = {(0, 3), (0, 4), (1, 4)} if is_narrow else set()  # more than four subwords
    assert rows == spans - wide
    assert len(rows) == len(packed.start)
    scored = head.score(states, targets)
    for start, end, label, score in zip(*(column.tolist() for column in scored.columns[1:]), strict=True):
        index = [n for n, row in enumerate(zip(packed.start.tolist(), packed.end.tolist(), strict=True)) if row == (start, end)]
        assert score == pytest.approx(packed.vectors[index[0], label].item(), abs=1e-5)
    assert head.onnx == "its spans consist of subwords; train with head.unit=words"


def test_heads_learn_spans_of_subwords_independently_of_the_batch(tiny_bert: Path) -> None:
    encoder = random_encoder("bert", tiny_bert)
    head = build(encoder, "spanner")
    with torch.no_grad():
        head.classifier.weight.mul_(8)  # type: ignore[union-attr, operator]
        check_batch_invariance(encoder, head)
    encoder = random_encoder("bert", tiny_bert)
    assert overfits(encoder, build(encoder, "global-pointer", dropout=0.0), sentences(4), steps=60)


def test_settings() -> None:
    with pytest.raises(SpanwiseError, match="subwords requires max_width"):
        head_settings({"kind": "spanner", "unit": "subwords"})
    with pytest.raises(SpanwiseError, match="does not support discontinuous types"):
        head_settings({"kind": "biaffine", "unit": "subwords", "discontinuous": ["X"]})
    resolved = head_settings({"kind": "biaffine", "unit": "subwords"}).resolve([SENTENCE])
    assert resolved.discontinuous is False  # type: ignore[attr-defined]
