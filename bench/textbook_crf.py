"""The CRF that others write: the forward recursion in log space, one step per word for all sentences at once, and its gradient
by automatic differentiation. Spanwise's own (``spanwise.heads.crf``) computes the same with half the steps."""

from __future__ import annotations

import torch
from torch import Tensor

from spanwise.heads.crf import Crf


class TextbookCrf(Crf):
    """
    >>> crf, own = TextbookCrf(3), Crf(3)
    >>> _ = own.load_state_dict(crf.state_dict())
    >>> emissions, mask = torch.randn(2, 4, 3), torch.tensor([[True] * 4, [True, True, False, False]])
    >>> torch.allclose(crf.partition(emissions, mask), own.partition(emissions, mask), atol=1e-5)
    True
    """

    def partition(self, emissions: Tensor, mask: Tensor) -> Tensor:
        transitions, start, end = self.bounded()
        reached = start + emissions[:, 0].float()
        for word, is_real in zip(emissions.float().unbind(1)[1:], mask.unbind(1)[1:], strict=True):
            onwards = (reached.unsqueeze(2) + transitions).logsumexp(1) + word
            reached = torch.where(is_real.unsqueeze(1), onwards, reached)
        return (reached + end).logsumexp(1)
