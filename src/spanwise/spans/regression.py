"""Boundary regression (Locate and Label, sections 2.2 and 2.4)."""

from __future__ import annotations

import torch
from torch import Tensor

FAR = 1e6  # words: longer than every sentence, and representable as an integer


def offsets(start: Tensor, end: Tensor, gold_start: Tensor, gold_end: Tensor) -> Tensor:
    """The regression targets [S, 2]: the distances from the boundaries of spans to those of their entities.

    >>> offsets(torch.tensor([2]), torch.tensor([5]), torch.tensor([1]), torch.tensor([7]))
    tensor([[-1,  2]])
    """
    return torch.stack((gold_start - start, gold_end - end), 1)


def adjust_spans(start: Tensor, end: Tensor, moves: Tensor, length: Tensor) -> tuple[Tensor, Tensor]:
    """Move the boundaries of spans by ``moves`` [S, 2], rounding halves up, inside sentences of ``length`` [S] words.

    Equations 6 and 7. They do not cover boundaries that cross; here the span keeps one word.

    >>> start, end, length = torch.tensor([0, 3, 3]), torch.tensor([2, 5, 5]), torch.tensor([6, 6, 6])
    >>> adjust_spans(start, end, torch.tensor([[-0.7, 0.5], [-0.5, 9.0], [1.6, -1.5]]), length)
    (tensor([0, 3, 5]), tensor([3, 6, 6]))
    """
    left, right = (moves + 0.5).floor().clamp(-FAR, FAR).long().unbind(1)
    first = torch.minimum((start + left).clamp(min=0), length - 1)
    return first, torch.maximum(torch.minimum(end + right, length), first + 1)
