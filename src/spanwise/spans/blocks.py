"""Packed spans laid out in blocks beside the words they may read, so that one product lets all of them attend.

Each of S spans has a vector; only its own words matter to it. Gathering these words span by span would copy each of them as
often as there are spans over it. Instead spans that lie close together form a block and share one window of words; what a span
must not read is masked. Both layouts offer the same: ``spread`` and ``packed`` between [S, d] and [G, M, d] (G blocks of M
places), ``windows`` from words [B, T, d] to [G, N, d], and ``inside``, true where a place's span has a window's word.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from spanwise.spans.tiles import Tiles

ROWS = 8  # starts of a tile: few, for what is masked is computed too; several, for windows overlap by the widest span


class Blocks(ABC):
    """S packed spans: ``sentence``, ``start`` and ``end`` [S], at most ``width`` words each."""

    inside: Tensor  # booleans that broadcast to [G, M, N]

    def __init__(self, sentence: Tensor, start: Tensor, end: Tensor, width: int) -> None:
        self.sentence, self.start, self.end, self.width = sentence, start, end, width

    @abstractmethod
    def spread(self, spans: Tensor) -> Tensor: ...

    @abstractmethod
    def packed(self, places: Tensor) -> Tensor: ...

    @abstractmethod
    def windows(self, words: Tensor) -> Tensor: ...


class TiledSpans(Blocks):
    """All spans of two to ``width`` words (or any of them): a block holds every size at some neighbouring starts.

    Single words have no place here, for their states are known already (DSpERT, equation 4).
    """

    def __init__(self, batch: int, length: int, sentence: Tensor, start: Tensor, end: Tensor, width: int) -> None:
        super().__init__(sentence, start, end, min(width, length))
        self.tiles = tiles = Tiles.cut(length, self.width, ROWS)
        self.blocks, self.sizes = batch * tiles.count, self.width - 1
        self._place = (sentence * (tiles.count * tiles.rows) + start) * self.sizes + (end - start - 2)
        offset = tiles.offset(start.device).unsqueeze(1)  # of each word of the window from each start
        sizes = torch.arange(2, self.width + 1, device=start.device).view(1, -1, 1)
        self.inside = ((offset >= 0) & (offset < sizes)).flatten(0, 1).unsqueeze(0)

    def spread(self, spans: Tensor) -> Tensor:
        places = self.blocks * self.tiles.rows * self.sizes
        return spans.new_zeros(places, spans.shape[1]).index_copy(0, self._place, spans).view(self.blocks, -1, spans.shape[1])

    def packed(self, places: Tensor) -> Tensor:
        return places.reshape(-1, places.shape[-1]).index_select(0, self._place)

    def windows(self, words: Tensor) -> Tensor:
        return self.tiles.ends(words).reshape(self.blocks, self.tiles.columns, words.shape[2])


class ChosenSpans(Blocks):
    """The same number of spans for every sentence, ``start`` and ``end`` [B, M], each anywhere: a sentence is a block."""

    def __init__(self, length: int, start: Tensor, end: Tensor, width: int) -> None:
        batch, self.count = start.shape
        sentence = torch.arange(batch, device=start.device).repeat_interleave(self.count, output_size=start.numel())
        super().__init__(sentence, start.flatten(), end.flatten(), min(width, length))
        place = torch.arange(length, device=start.device)
        self.inside = (place >= start.unsqueeze(-1)) & (place < end.unsqueeze(-1))

    def spread(self, spans: Tensor) -> Tensor:
        return spans.view(-1, self.count, spans.shape[1])

    def packed(self, places: Tensor) -> Tensor:
        return places.flatten(0, 1)

    def windows(self, words: Tensor) -> Tensor:
        return words
