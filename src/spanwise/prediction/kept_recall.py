"""How many contiguous gold entities survive in a head that drops most spans unseen: no more than these can be found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from spanwise.batching.batches import moved
from spanwise.core.types import Sentence
from spanwise.heads.span_head import contiguous
from spanwise.models.model import Model
from spanwise.prediction.encoding import encoded
from spanwise.runtime.device import exact_products


@torch.inference_mode()
@exact_products()
def kept_recall(model: Model, sentences: Sequence[Sentence], prepared: Sequence[Any], *, batch_size: int = 64) -> float:
    """The share of the contiguous gold spans of all sentences that the head which predicts looks at closely.

    Spans that are out of the head's reach count as dropped.
    """
    head, kept = model.head.prediction_head, torch.zeros((), dtype=torch.int64)
    for numbers, states, device in encoded(model, prepared, batch_size):
        targets = head.targets([sentences[number] for number in numbers], gold=True)
        kept = kept.to(device) + head.kept_gold(states, moved(targets, device)).sum()
    gold = sum(len(set(contiguous(sentence))) for sentence in sentences)
    return int(kept) / gold if gold else 0.0
