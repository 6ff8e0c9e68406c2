"""Tiles over the band of word pairs that are spans.

A sentence of T words has T x T cells, and those with start <= end are spans. If the span width is
limited, only a band along the diagonal is needed. The starts are split into tiles of ``rows`` words;
the spans of a tile end within ``columns`` words from its first start, so a product of each tile's
starts with its window of ends covers every span and costs T x width instead of T x T. Without a
limit, or with a wide one, there is a single tile.

Cell (tile, r, c) is the span from word tile * rows + r to word tile * rows + c, inclusive.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from spanwise.runtime.device import is_traced

MIN_ROWS = 16  # of a tile; smaller products are not faster


@dataclass(frozen=True, slots=True)
class Tiles:
    """The layout of the cells of sentences padded to ``length`` words."""

    length: int
    count: int
    rows: int
    columns: int
    width: int  # of the widest span

    @classmethod
    def cut(cls, length: int, max_width: int | None, rows: int | None = None) -> Tiles:
        """The tiles for sentences of ``length`` words and spans of at most ``max_width``; ``rows`` sets the starts per tile.

        >>> Tiles.cut(10, None)
        Tiles(length=10, count=1, rows=10, columns=10, width=10)
        >>> Tiles.cut(100, 5)
        Tiles(length=100, count=7, rows=16, columns=20, width=5)
        """
        width = min(length if max_width is None else max_width, length)
        rows = max(width, MIN_ROWS) if rows is None else rows
        if 2 * rows >= length:
            return cls(length, 1, length, length, width)
        return cls(length, (length + rows - 1) // rows, rows, rows + width - 1, width)

    @property
    def cells(self) -> int:
        """The number of cells in all tiles of a sentence."""
        return self.count * self.rows * self.columns

    def starts(self, words: Tensor) -> Tensor:
        """The values at the starts: [B, T, …] to [B, count, rows, …]."""
        if self.count == 1:
            return words.unsqueeze(1)
        return _padded(words, self.count * self.rows).reshape(words.shape[0], self.count, self.rows, *words.shape[2:])

    def ends(self, words: Tensor) -> Tensor:
        """The values at the ends: [B, T, …] to [B, count, columns, …]."""
        if self.count == 1:
            return words.unsqueeze(1)
        padded = _padded(words, (self.count - 1) * self.rows + self.columns)
        if is_traced():  # other runtimes have no sliding windows over a dynamic length
            positions = self.rows * torch.arange(self.count).unsqueeze(1) + torch.arange(self.columns)
            return padded.index_select(1, positions.view(-1)).view(words.shape[0], *positions.shape, *words.shape[2:])
        return padded.unfold(1, self.columns, self.rows).movedim(-1, 2)

    def inside(self, mask: Tensor) -> Tensor:
        """The mask of cells that are spans of the sentence within the width: ``mask`` [B, T] to [B, count, rows, columns]."""
        mask = mask.bool()
        offset = self.offset(mask.device)
        is_span = (offset >= 0) & (offset < self.width)
        return self.starts(mask).unsqueeze(-1) & self.ends(mask).unsqueeze(-2) & is_span

    def offset(self, device: torch.device) -> Tensor:
        """End minus start of each cell, inclusive: [rows, columns], equal for all tiles; negative if a cell is not a span."""
        return torch.arange(self.columns, device=device) - torch.arange(self.rows, device=device).unsqueeze(1)

    def index(self, start: Tensor, end: Tensor) -> Tensor:
        """The flat index of spans [start, end) among the ``cells`` of their sentence."""
        tile = start // self.rows
        return start * self.columns + end - 1 - tile * self.rows  # (tile * rows + row) * columns + column

    def spans(self, index: Tensor) -> tuple[Tensor, Tensor]:
        """The starts and ends, half-open, of the cells at flat indices."""
        start = index // self.columns
        return start, start // self.rows * self.rows + index % self.columns + 1


def _padded(words: Tensor, length: int) -> Tensor:
    """Pad dimension 1 with zeros to ``length``."""
    return F.pad(words, (*(0, 0) * (words.ndim - 2), 0, length - words.shape[1]))
