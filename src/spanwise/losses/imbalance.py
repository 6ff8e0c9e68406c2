"""The class-imbalance loss of GlobalPointer (section 3.4, equation 13): every positive above 0, every negative below it.

For a group of scores (of one sentence and type, say) it is

    log(1 + sum over negatives of e^s) + log(1 + sum over positives of e^-s).

Almost all cells are negative, so gold comes as the few positive cells. The published short form takes the positives out of
a sum over all cells by subtraction, which cancels where one positive dominates; here they are masked before the sum.

The 1 is a further cell with score 0. So no sum is ever empty, and minus infinity is a safe mask: without that cell the gradient
of a group without negatives would be a difference of infinities.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor


def class_imbalance(scores: Tensor, inside: Tensor, positives: Tensor, *, padded: bool = False) -> Tensor:
    """The loss of each group: ``scores`` [B, C, cells …] in any floating type to [B, C] in float32.

    ``inside``, broadcast to the scores, is true where a cell exists; elsewhere scores may be anything. ``positives`` are flat
    places in ``scores``, each once, inside and finite. No labels the size of the scores are made but one mask of bits. Where
    they are ``padded``, some lie one behind the last place and count nothing, any number of times.

    >>> scores = torch.tensor([[[20.0, -1.0, 0.5]]])
    >>> inside = torch.tensor([[[True, True, False]]])
    >>> class_imbalance(scores, inside, torch.tensor([0])).round(decimals=4)
    tensor([[0.3133]])
    """
    cells, total = scores.shape[2:].numel(), scores.numel()
    scores = scores.float()
    outside = torch.empty(total + padded, dtype=torch.bool, device=scores.device)
    outside[:total].view_as(scores).copy_((~inside).expand_as(scores))
    outside = outside.index_fill_(0, positives, True)[:total].view_as(scores)
    place = positives.clamp(max=total - 1) if padded else positives
    values = scores.reshape(-1).index_select(0, place)
    if padded:
        values = values.masked_fill(positives == total, torch.inf)  # adds e^-inf to a sum
    missed = _positive_part(values, place // cells, scores.shape[:2])
    return _log_one_and(scores.masked_fill(outside, -torch.inf)) + missed


def _log_one_and(values: Tensor) -> Tensor:
    """log(1 + sum of e^v) over all dimensions but the first two."""
    return F.pad(values.flatten(2), (0, 1)).logsumexp(2)


def _positive_part(values: Tensor, group: Tensor, shape: torch.Size) -> Tensor:
    """log(1 + sum of e^-s) over the values of each group."""
    with torch.no_grad():
        highest = values.new_zeros(shape).view(-1).scatter_reduce(0, group, -values, "amax")
    sums = (-highest).exp().index_add(0, group, (-values - highest.index_select(0, group)).exp())
    return (sums.log() + highest).view(shape)


def class_imbalance_dense(scores: Tensor, inside: Tensor, labels: Tensor) -> Tensor:
    """The same from ``labels`` of the shape of the scores, true where positive: for gold that is no short list.

    >>> scores = torch.tensor([[[20.0, -1.0, 0.5]]])
    >>> inside, labels = torch.tensor([[[True, True, False]]]), torch.tensor([[[True, False, False]]])
    >>> class_imbalance_dense(scores, inside, labels).round(decimals=4)
    tensor([[0.3133]])
    """
    scores = scores.float()
    negatives = scores.masked_fill(labels | ~inside, -torch.inf)
    positives = (-scores).masked_fill(~(labels & inside), -torch.inf)
    return _log_one_and(negatives) + _log_one_and(positives)


def binary_cross_entropy(scores: Tensor, inside: Tensor, positives: Tensor) -> Tensor:
    """The sum over each group's cells of the plain binary cross-entropy, from the same arguments: [B, C] in float32.

    >>> scores, inside = torch.tensor([[[2.0, -1.0, 0.5]]]), torch.tensor([[[True, True, False]]])
    >>> binary_cross_entropy(scores, inside, torch.tensor([0])).round(decimals=4)
    tensor([[0.4402]])
    """
    cells = scores.shape[2:].numel()
    scores = scores.float()
    sums = F.softplus(scores).masked_fill(~inside, 0.0).flatten(2).sum(2)
    gold = scores.reshape(-1).index_select(0, positives)
    return sums - torch.zeros_like(sums).view(-1).index_add(0, positives // cells, gold).view_as(sums)
