"""The class-imbalance loss of GlobalPointer (section 3.4, equation 13): positives score above 0, negatives below.

For a group of scores, for example of one sentence and type, it is

    log(1 + sum over negatives of e^s) + log(1 + sum over positives of e^-s).

Almost all cells are negative, so gold is given as the few positive cells. The published short form
subtracts the positives from a sum over all cells, which cancels if one positive dominates; here they
are masked before the sum.

The 1 is an additional cell with score 0. So no sum is empty, and minus infinity is a safe mask:
without that cell the gradient of a group without negatives would be a difference of infinities.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor


def class_imbalance(
    scores: Tensor, inside: Tensor, positives: Tensor, mass: Tensor | None = None, weights: Tensor | None = None, *,
    padded: bool = False,
) -> Tensor:  # fmt: skip
    """The loss of each group: ``scores`` [B, C, cells …] in any floating type to [B, C] in float32.

    ``inside``, broadcast to the scores, is the mask of valid cells; other scores may have any value.
    ``positives`` are unique flat indices of valid cells with finite scores. With ``padded``, the index
    one past the end is padding, which is ignored and may occur more than once. The only tensor of the
    size of the scores is a boolean mask. With ``mass`` see ``soft_class_imbalance``. ``weights``, of the
    shape of the scores, are the logarithms of weights of the negatives.

    >>> scores = torch.tensor([[[20.0, -1.0, 0.5]]])
    >>> inside = torch.tensor([[[True, True, False]]])
    >>> class_imbalance(scores, inside, torch.tensor([0])).round(decimals=4)
    tensor([[0.3133]])
    """
    if mass is not None:
        return soft_class_imbalance(scores, inside, positives, mass, weights)
    cells, total = scores.shape[2:].numel(), scores.numel()
    scores = scores.float()
    outside = torch.empty(total + padded, dtype=torch.bool, device=scores.device)
    outside[:total].view_as(scores).copy_((~inside).expand_as(scores))
    outside = outside.index_fill_(0, positives, True)[:total].view_as(scores)
    index = positives.clamp(max=total - 1) if padded else positives
    values = scores.reshape(-1).index_select(0, index)
    if padded:
        values = values.masked_fill(positives == total, torch.inf)  # adds e^-inf to a sum
    positive_part = _positive_part(values, index // cells, scores.shape[:2])
    negatives = scores if weights is None else scores + weights
    return _log_one_plus_exp(negatives.masked_fill(outside, -torch.inf)) + positive_part


def soft_class_imbalance(
    scores: Tensor, inside: Tensor, positives: Tensor, mass: Tensor, weights: Tensor | None = None
) -> Tensor:  # fmt: skip
    """The class-imbalance loss where the ``positives`` are positive with a probability, ``mass``: [B, C].

    A cell with the probability q counts as negative with the weight (1 - q)^2 and as positive with the
    weight q^2:

        log(1 + sum of (1 - q)^2 e^s) + log(1 + sum of q^2 e^-s).

    With q of 0 and 1 it is ``class_imbalance``; rows with a mass of 0 may be padding. The loss of a
    group is lowest where the sigmoid of each score is q; without the squares, it would be lowest at half
    the log-odds of q.

    >>> scores, inside = torch.tensor([[[0.0, -1.0, 0.5]]]), torch.tensor([[[True, True, False]]])
    >>> soft_class_imbalance(scores, inside, torch.tensor([0]), torch.tensor([0.5])).round(decimals=4)
    tensor([[0.7043]])
    """
    cells = scores.shape[2:].numel()
    scores = scores.float()
    negatives = (scores if weights is None else scores + weights).masked_fill(~inside, -torch.inf).reshape(-1)
    negatives = negatives.index_add(0, positives, 2 * torch.log1p(-mass.float())).view(scores.shape)
    values = scores.reshape(-1).index_select(0, positives) - 2 * mass.float().log()
    return _log_one_plus_exp(negatives) + _positive_part(values, positives // cells, scores.shape[:2])


def _log_one_plus_exp(values: Tensor) -> Tensor:
    """log(1 + sum of e^v) over all dimensions except the first two."""
    return F.pad(values.flatten(2), (0, 1)).logsumexp(2)


def _positive_part(values: Tensor, group: Tensor, shape: torch.Size) -> Tensor:
    """log(1 + sum of e^-s) over the values of each group."""
    with torch.no_grad():
        highest = values.new_zeros(shape).view(-1).scatter_reduce(0, group, -values, "amax")
    sums = (-highest).exp().index_add(0, group, (-values - highest.index_select(0, group)).exp())
    return (sums.log() + highest).view(shape)


def binary_cross_entropy(
    scores: Tensor, inside: Tensor, positives: Tensor, mass: Tensor | None = None, open_masses: Tensor | None = None
) -> Tensor:  # fmt: skip
    """The binary cross-entropy summed over the cells of each group, with the arguments of ``class_imbalance``: [B, C].

    With ``mass``, the positives are positive with this probability. ``open_masses``, of the shape of the
    scores, are the log-probabilities that an entity has no mark (``spanwise.losses.partial``).

    >>> scores, inside = torch.tensor([[[2.0, -1.0, 0.5]]]), torch.tensor([[[True, True, False]]])
    >>> binary_cross_entropy(scores, inside, torch.tensor([0])).round(decimals=4)
    tensor([[0.4402]])
    """
    cells = scores.shape[2:].numel()
    scores = scores.float()
    values = F.softplus(scores)
    if open_masses is not None:
        is_positive = torch.zeros(scores.numel(), dtype=torch.bool, device=scores.device).index_fill_(0, positives, True)
        values = values - F.softplus(scores + open_masses).masked_fill(is_positive.view_as(scores), 0.0)
    sums = values.masked_fill(~inside, 0.0).flatten(2).sum(2)
    gold = scores.reshape(-1).index_select(0, positives)
    gold = gold if mass is None else mass.float() * gold
    return sums - torch.zeros_like(sums).view(-1).index_add(0, positives // cells, gold).view_as(sums)
