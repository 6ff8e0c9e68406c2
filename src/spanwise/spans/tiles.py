"""Scores for pairs of words, of which only the spans matter: the band above the diagonal, cut into tiles.

Between all words of a sentence there are T x T cells, of which those with start <= end are spans. Where spans are bounded in
width only a band along the diagonal is needed. The starts are cut into tiles of ``rows`` words; a tile's spans end at most
``columns`` words behind its first start, so a product of each tile's starts with its own window of ends gives every span and
costs T x width instead of T x T. Without a bound, or with a wide one, one tile holds everything.

Cell (tile, r, c) is the span from word tile * rows + r to word tile * rows + c, inclusive.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from spanwise.runtime.device import is_traced

SMALLEST = 16  # rows of a tile at least: smaller products are no quicker


@dataclass(frozen=True, slots=True)
class Tiles:
    """How the cells of sentences padded to ``length`` words are laid out."""

    length: int
    count: int
    rows: int
    columns: int
    width: int  # of the widest span

    @classmethod
    def cut(cls, length: int, max_width: int | None, rows: int | None = None) -> Tiles:
        """The tiles for sentences of ``length`` words and spans of at most ``max_width``; of ``rows`` starts, if given.

        >>> Tiles.cut(10, None)
        Tiles(length=10, count=1, rows=10, columns=10, width=10)
        >>> Tiles.cut(100, 5)
        Tiles(length=100, count=7, rows=16, columns=20, width=5)
        """
        width = min(length if max_width is None else max_width, length)
        rows = max(width, SMALLEST) if rows is None else rows
        if 2 * rows >= length:
            return cls(length, 1, length, length, width)
        return cls(length, (length + rows - 1) // rows, rows, rows + width - 1, width)

    @property
    def cells(self) -> int:
        """How many cells a sentence has in all its tiles."""
        return self.count * self.rows * self.columns

    def starts(self, words: Tensor) -> Tensor:
        """What stands at the starts: [B, T, …] to [B, count, rows, …]."""
        if self.count == 1:
            return words.unsqueeze(1)
        return _padded(words, self.count * self.rows).reshape(words.shape[0], self.count, self.rows, *words.shape[2:])

    def ends(self, words: Tensor) -> Tensor:
        """What stands at the ends: [B, T, …] to [B, count, columns, …]."""
        if self.count == 1:
            return words.unsqueeze(1)
        padded = _padded(words, (self.count - 1) * self.rows + self.columns)
        if is_traced():  # other runtimes have no sliding windows of a length that is not known
            places = self.rows * torch.arange(self.count).unsqueeze(1) + torch.arange(self.columns)
            return padded.index_select(1, places.view(-1)).view(words.shape[0], *places.shape, *words.shape[2:])
        return padded.unfold(1, self.columns, self.rows).movedim(-1, 2)

    def inside(self, mask: Tensor) -> Tensor:
        """True where a cell is a span of the sentence, no wider than allowed: ``mask`` [B, T] to [B, count, rows, columns]."""
        mask = mask.bool()
        offset = self.offset(mask.device)
        is_span = (offset >= 0) & (offset < self.width)
        return self.starts(mask).unsqueeze(-1) & self.ends(mask).unsqueeze(-2) & is_span

    def offset(self, device: torch.device) -> Tensor:
        """The words of a cell's span less one: [rows, columns], the same for all tiles; below 0 where a cell is no span."""
        return torch.arange(self.columns, device=device) - torch.arange(self.rows, device=device).unsqueeze(1)

    def place(self, start: Tensor, end: Tensor) -> Tensor:
        """The flat place of spans [start, end) among the ``cells`` of their sentence."""
        tile = start // self.rows
        return start * self.columns + end - 1 - tile * self.rows  # (tile * rows + row) * columns + column

    def spans(self, place: Tensor) -> tuple[Tensor, Tensor]:
        """The starts and ends, half-open, of the cells at flat places."""
        start = place // self.columns
        return start, start // self.rows * self.rows + place % self.columns + 1


def _padded(words: Tensor, length: int) -> Tensor:
    """With nothing behind dimension 1 up to ``length``."""
    return F.pad(words, (*(0, 0) * (words.ndim - 2), 0, length - words.shape[1]))
