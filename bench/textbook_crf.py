"""Textbook CRF: the forward recursion in log space, one step per word, with automatic differentiation.

``spanwise.heads.crf`` computes the same with half the steps.
"""

from __future__ import annotations

import torch
from torch import Tensor

from spanwise.heads.crf import Crf


class TextbookCrf(Crf):
    """
    >>> crf, reference = TextbookCrf(3), Crf(3)
    >>> _ = reference.load_state_dict(crf.state_dict())
    >>> emissions, mask = torch.randn(2, 4, 3), torch.tensor([[True] * 4, [True, True, False, False]])
    >>> torch.allclose(crf.partition(emissions, mask), reference.partition(emissions, mask), atol=1e-5)
    True
    """

    def partition(self, emissions: Tensor, mask: Tensor) -> Tensor:
        transitions, start, end = self.clamped()
        reached = start + emissions[:, 0].float()
        for word, is_real in zip(emissions.float().unbind(1)[1:], mask.unbind(1)[1:], strict=True):
            onwards = (reached.unsqueeze(2) + transitions).logsumexp(1) + word
            reached = torch.where(is_real.unsqueeze(1), onwards, reached)
        return (reached + end).logsumexp(1)
