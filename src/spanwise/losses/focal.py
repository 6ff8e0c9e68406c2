"""Losses of two-stage detectors, for spans (Locate and Label, section 2.5): filter, regressor and example weights.

Each function returns one float32 value per span.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from spanwise.core.iou import iou
from spanwise.spans.regression import offsets


def focal(logits: Tensor, positive: Tensor, gamma: float) -> Tensor:
    """Binary cross-entropy times (1 - p)^gamma, where p is the probability of the gold class (Lin et al. 2017; equation 12).

    >>> focal(torch.tensor([0.0, 2.0, 2.0]), torch.tensor([True, True, False]), gamma=2.0).round(decimals=4)
    tensor([0.1733, 0.0018, 1.6501])
    """
    gold_logits = torch.where(positive, logits, -logits).float()
    return _focal_factor((-gold_logits).sigmoid(), gamma) * F.softplus(-gold_logits)


def softmax_focal(logits: Tensor, classes: Tensor, gamma: float) -> Tensor:
    """Cross-entropy of [S, C] logits whose term for each class is multiplied by (1 - p)^gamma.

    ``classes`` are the gold probabilities [S, C].

    >>> logits = torch.tensor([[0.0, 0.0], [2.0, 0.0]])
    >>> softmax_focal(logits, torch.tensor([[1.0, 0.0], [0.0, 1.0]]), gamma=2.0).round(decimals=4)
    tensor([0.1733, 1.6501])
    """
    log_probabilities = logits.float().log_softmax(-1)
    return -(classes * _focal_factor(1 - log_probabilities.exp(), gamma) * log_probabilities).sum(-1)


def open_softmax_focal(logits: Tensor, open_masses: Tensor, gamma: float) -> Tensor:
    """``softmax_focal`` of spans [S, C + 1] that are NONE or an unmarked entity (``spanwise.losses.partial``).

    ``open_masses`` [S, C] are the log-probabilities that an entity of a class has no mark.

    >>> open_softmax_focal(torch.tensor([[2.0, 0.0]]), torch.tensor([[0.0]]), gamma=2.0).abs()
    tensor([0.])
    """
    log_probabilities = logits.float().log_softmax(-1)
    masses = torch.cat((log_probabilities[:, :-1] + open_masses, log_probabilities[:, -1:]), 1)
    log_mass = masses.logsumexp(1).clamp(max=0.0)
    return -_focal_factor(1 - log_mass.exp(), gamma) * log_mass


def _focal_factor(complement: Tensor, gamma: float) -> Tensor | float:
    """(1 - p)^gamma, where ``complement`` is 1 - p.

    Where p is rounded to 1, the derivative is 0: that of a power below 1 would be infinite.
    """
    return complement.clamp(min=torch.finfo(complement.dtype).tiny).pow(gamma) if gamma else 1.0


def boundary_loss(
    moves: Tensor, start: Tensor, end: Tensor, gold_start: Tensor, gold_end: Tensor, weights: Tensor | None = None
) -> Tensor:
    """Smooth L1 of both boundaries plus 1 - IoU, for spans moved by ``moves`` [S, 2], not rounded (equations 13 to 15).

    ``weights`` [S] multiply the smooth L1 part. The IoU of disjoint spans is 0. Gold spans must not be
    empty.

    >>> boundaries = [torch.tensor([boundary]) for boundary in (2, 4, 2, 6)]
    >>> boundary_loss(torch.tensor([[0.0, 0.0]]), *boundaries)
    tensor([2.])
    """
    moves = moves.float()
    left, right = start + moves[:, 0], end + moves[:, 1]
    targets = offsets(start, end, gold_start, gold_end).float()
    distances = F.smooth_l1_loss(moves, targets, reduction="none").sum(1)
    return (distances if weights is None else distances * weights) + 1 - iou(left, right, gold_start, gold_end)


def soft_weights(overlap: Tensor, threshold: float, eta: float) -> Tensor:
    """The weight of an example: overlap^eta if its overlap reaches the threshold, (1 - overlap)^eta below it.

    Equation 11. A full overlap and no overlap both have weight 1. With ``eta`` 0 all weights are 1.

    >>> soft_weights(torch.tensor([1.0, 0.75, 0.5, 0.0]), threshold=0.7, eta=1.0)
    tensor([1.0000, 0.7500, 0.5000, 1.0000])
    """
    return torch.where(overlap >= threshold, overlap, 1 - overlap).float().pow(eta)
