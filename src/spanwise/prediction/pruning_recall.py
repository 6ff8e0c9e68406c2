"""Recall of the candidate spans that remain after pruning: an upper bound on the recall of entities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from spanwise.batching.batches import to_device
from spanwise.core.types import Sentence
from spanwise.heads.abilities import Prunes
from spanwise.models.model import Model
from spanwise.prediction.encoding import encode_batches
from spanwise.runtime.device import full_precision

BATCH_SIZE = 64


@torch.inference_mode()
@full_precision()
def pruning_recall(model: Model, head: Prunes, sentences: Sequence[Sentence], prepared: Sequence[Any]) -> float:
    """Share of the contiguous gold spans that a head of the model does not prune.

    Spans that the head cannot represent count as pruned.
    """
    remaining = torch.zeros((), dtype=torch.int64)
    for indices, states, device in encode_batches(model, prepared, BATCH_SIZE):
        targets = head.targets([sentences[index] for index in indices], gold=True)
        remaining = remaining.to(device) + head.count_kept_gold(states, to_device(targets, device)).sum()
    gold = sum(len({e.range for e in sentence.entities if not e.is_discontinuous}) for sentence in sentences)
    return int(remaining) / gold if gold else 0.0
