"""The losses of detectors, for spans (Locate and Label, section 2.5): a filter's, a regressor's, and soft weights for both
stages. All of them give one value per span, in float32."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from spanwise.core.iou import iou
from spanwise.spans.regression import offsets


def focal(logits: Tensor, positive: Tensor, gamma: float) -> Tensor:
    """Binary cross-entropy times (1 - p)^gamma, with p the probability of the right answer (Lin et al. 2017; equation 12).

    >>> focal(torch.tensor([0.0, 2.0, 2.0]), torch.tensor([True, True, False]), gamma=2.0).round(decimals=4)
    tensor([0.1733, 0.0018, 1.6501])
    """
    right = torch.where(positive, logits, -logits).float()
    return (-right).sigmoid().pow(gamma) * F.softplus(-right)


def boundary_loss(moves: Tensor, start: Tensor, end: Tensor, gold_start: Tensor, gold_end: Tensor) -> Tensor:
    """How far spans moved by ``moves`` [S, 2], not rounded, are from their entities: smooth L1 of both boundaries, and what the
    spans lack of a full overlap (equations 13 to 15). Spans that do not meet lack all of it, no more. Entities have words.

    >>> one = [torch.tensor([place]) for place in (2, 4, 2, 6)]
    >>> boundary_loss(torch.tensor([[0.0, 0.0]]), *one)
    tensor([2.])
    """
    moves = moves.float()
    left, right = start + moves[:, 0], end + moves[:, 1]
    steps = offsets(start, end, gold_start, gold_end).float()
    return F.smooth_l1_loss(moves, steps, reduction="none").sum(1) + 1 - iou(left, right, gold_start, gold_end)


def soft_weights(overlap: Tensor, threshold: float, eta: float) -> Tensor:
    """The weight of an example by its overlap with its entity: overlap^eta from the threshold on, (1 - overlap)^eta below it.

    Equation 11: what matches half is half an example; what matches wholly or not at all weighs 1. With ``eta`` 0 all do.

    >>> soft_weights(torch.tensor([1.0, 0.75, 0.5, 0.0]), threshold=0.7, eta=1.0)
    tensor([1.0000, 0.7500, 0.5000, 1.0000])
    """
    return torch.where(overlap >= threshold, overlap, 1 - overlap).float().pow(eta)
