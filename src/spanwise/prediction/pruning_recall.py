"""Recall of the candidate spans that remain after pruning: an upper bound on the recall of entities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from spanwise.batching.batches import to_device
from spanwise.core.types import Sentence
from spanwise.heads.abilities import Prunes, find_ability
from spanwise.models.model import Model
from spanwise.prediction.encoding import encode_batches
from spanwise.runtime.device import full_precision


@torch.inference_mode()
@full_precision()
def pruning_recall(model: Model, sentences: Sequence[Sentence], prepared: Sequence[Any], *, batch_size: int = 64) -> float:
    """Share of the contiguous gold spans that the prediction head does not prune.

    Spans that the head cannot represent count as pruned.
    """
    head, remaining = find_ability(model.head, Prunes), torch.zeros((), dtype=torch.int64)
    if head is None:
        raise ValueError("expected a head that prunes spans")
    for indices, states, device in encode_batches(model, prepared, batch_size):
        targets = head.targets([sentences[index] for index in indices], gold=True)
        remaining = remaining.to(device) + head.count_kept_gold(states, to_device(targets, device)).sum()
    gold = sum(len({e.range for e in sentence.entities if not e.is_discontinuous}) for sentence in sentences)
    return int(remaining) / gold if gold else 0.0
