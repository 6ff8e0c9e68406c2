"""Losses of partially annotated sentences: spans that may be entities without a mark.

A span and type are *open* where the annotation is incomplete (``spanwise.core.partial``). An open
span without a gold entity is no certain negative. Assume that annotators marked a share ``c`` of the
entities there, by chance. Then the probability of seeing no mark is 1 - c p instead of 1 - p, where p
is the probability of an entity, and the loss of an open span is

    -log(1 - c p).

With c = 0 it is 0: the span counts neither for nor against. With c = 1 it is that of a negative. In
between, a span that resembles marked entities (p near 1) has hardly any gradient, and all others are
negatives. This is the likelihood of learning from positive and unlabelled examples (Elkan and Noto
2008). Losses that are no likelihoods weigh the span by the ratio of the gradients, ``open_weight``.
"""

from __future__ import annotations

import torch
from torch import Tensor


def open_weight(scores: Tensor, share: Tensor) -> Tensor:
    """The logarithm of the weight of an open negative with score s, a log-odds: c (1 - p) / (1 - c p), without gradient.

    >>> open_weight(torch.tensor([0.0, 9.0]), torch.tensor(0.5)).exp().round(decimals=3)
    tensor([0.3330, 0.0000])
    """
    probability = scores.detach().float().sigmoid()
    return torch.log(share * (1 - probability) / (1 - share * probability))
