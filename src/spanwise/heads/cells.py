"""The cells of a grid of spans [starts, widths], as sums of projections of their words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from spanwise.runtime.device import is_traced


def sum_words(
    words: Tensor, sizes: Sequence[int], widths: Tensor, multiply: Callable[[Tensor], Tensor] | None
) -> Tensor:  # fmt: skip
    """The cells [B, T, W, d] of projected words [B, T, first | last | left | right | content] and vectors of widths [W, d].

    A cell is the sum of its first and last word, its width, ``multiply`` of their product (left times
    right), and the maximum over the contents of its words, unless they have none.
    """
    first, last, left, right, content = words.split_with_sizes(list(sizes), -1)
    widest = len(widths)
    cells: Tensor = first.unsqueeze(2) + windows(last, widest) + widths
    if multiply is not None:
        cells = cells + multiply(left.unsqueeze(2) * windows(right, widest))
    if content.shape[-1]:
        cells = cells + running_maximum(windows(content, widest))
    return cells


def windows(words: Tensor, width: int) -> Tensor:
    """The ``width`` words that start at each word: [B, T, d] to [B, T, width, d], with zeros after the last word.

    >>> windows(torch.tensor([[[1], [2]]]), 2).squeeze(-1).tolist()
    [[[1, 2], [2, 0]]]
    """
    length = words.shape[1]
    padded = F.pad(words, (0, 0, 0, width - 1))
    if is_traced():
        indices = torch.arange(length).unsqueeze(1) + torch.arange(width)
        return padded.index_select(1, indices.view(-1)).view(words.shape[0], length, width, words.shape[2])
    return padded.unfold(1, width, 1).movedim(-1, 2)


def running_maximum(cells: Tensor) -> Tensor:
    """The maximum over each column and the columns before it: [B, T, W, d] to the same shape.

    >>> running_maximum(torch.tensor([[[[1.0], [3.0], [2.0]]]])).flatten().tolist()
    [1.0, 3.0, 3.0]
    """
    if not is_traced():
        return cells.cummax(2).values
    columns = [cells[:, :, 0]]
    for column in cells.unbind(2)[1:]:
        columns.append(torch.maximum(columns[-1], column))
    return torch.stack(columns, 2)
