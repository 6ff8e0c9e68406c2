"""Scores that are rounded to 1: conflicts between such spans are decided by log-odds."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from spanwise.encoders.base import TokenStates
from spanwise.heads import head_class, head_settings
from spanwise.heads.base import Head, Labels

HEADS: dict[str, dict[str, Any]] = {
    "global-pointer": {}, "efficient-global-pointer": {}, "biaffine": {}, "spanner": {"max_width": 4}, "grid": {"max_width": 4},
    "locate-label": {"lengths": (1, 2, 3), "filter": False, "decay": 1.0},
}  # fmt: skip
SCALES = {"grid": 8, "spanner": 60, "locate-label": 20}  # of the weights, so that scores are rounded to 1


def saturated_head(encoder: Any, kind: str) -> Head:
    torch.manual_seed(1)
    settings = head_settings({"kind": kind, "decoding": "flat", **HEADS[kind]})
    head = head_class(kind).build(encoder, Labels(("A", "B")), settings).eval()
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.mul_(SCALES.get(kind, 5))
    return head


@pytest.mark.parametrize("kind", HEADS)
@torch.no_grad()
def test_of_overlapping_spans_with_a_score_of_1_the_one_with_the_highest_log_odds_wins(encoder: Any, kind: str) -> None:
    head = saturated_head(encoder, kind)
    states = TokenStates(3 * torch.randn(1, 12, encoder.width), torch.randn(1, encoder.width), torch.ones(1, 12) > 0)
    sentence = [type("Text", (), {"words": ("w",) * 12, "entities": ()})()]
    scored = head.score(states, head.targets(sentence, gold=False))
    assert scored.log_odds is not None
    is_saturated = scored.score == 1
    assert int(is_saturated.sum()) > 3
    torch.testing.assert_close(scored.log_odds.sigmoid()[scored.score > 0], scored.score[scored.score > 0], atol=1e-5, rtol=0)
    assert len(set(scored.log_odds[is_saturated].tolist())) > 3
    best = max(zip(scored.log_odds.tolist(), scored.start.tolist(), scored.end.tolist(), strict=True))
    (predictions,) = head.decode(scored, 1)
    assert best[1:] in [tuple(entity.range) for entity in predictions.entities]
