"""Blocks of spans that attend to one window of words, so that attention is a batched matrix product.

Each of S spans has a vector and attends to its own words only. Gathering the words span by span
would copy every word once per span. Instead, spans that are close together form a block and share
one window of words; the words outside a span are masked. Both layouts have the same methods:
``spread`` and ``packed`` convert between [S, d] and [G, M, d] (G blocks of M slots), ``windows``
turns words [B, T, d] into [G, N, d], and ``inside`` is true where a word of the window belongs to
the span of a slot.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from spanwise.spans.tiles import Tiles

ROWS = 8  # starts per tile: more compute masked cells, fewer copy more words, since windows overlap by the widest span


class Blocks(ABC):
    """S packed spans: ``sentence``, ``start`` and ``end`` [S], with at most ``width`` words each."""

    inside: Tensor  # boolean, broadcasts to [G, M, N]

    def __init__(self, sentence: Tensor, start: Tensor, end: Tensor, width: int) -> None:
        self.sentence, self.start, self.end, self.width = sentence, start, end, width

    @abstractmethod
    def spread(self, spans: Tensor) -> Tensor:
        """[S, d] to [G, M, d]."""

    @abstractmethod
    def packed(self, slots: Tensor) -> Tensor:
        """[G, M, d] to [S, d]."""

    @abstractmethod
    def windows(self, words: Tensor) -> Tensor:
        """[B, T, d] to [G, N, d]."""


class TiledSpans(Blocks):
    """Any spans of two to ``width`` words: a block holds all widths at some adjacent starts.

    Single words are excluded because their states are already known (DSpERT, equation 4).
    """

    def __init__(self, batch: int, length: int, sentence: Tensor, start: Tensor, end: Tensor, width: int) -> None:
        super().__init__(sentence, start, end, min(width, length))
        self.tiles = tiles = Tiles.cut(length, self.width, ROWS)
        self.blocks, self.sizes = batch * tiles.count, self.width - 1
        self._slot = (sentence * (tiles.count * tiles.rows) + start) * self.sizes + (end - start - 2)
        offset = tiles.offset(start.device).unsqueeze(1)  # of each word of the window from each start
        sizes = torch.arange(2, self.width + 1, device=start.device).view(1, -1, 1)
        self.inside = ((offset >= 0) & (offset < sizes)).flatten(0, 1).unsqueeze(0)

    def spread(self, spans: Tensor) -> Tensor:
        slots = self.blocks * self.tiles.rows * self.sizes
        return spans.new_zeros(slots, spans.shape[1]).index_copy(0, self._slot, spans).view(self.blocks, -1, spans.shape[1])

    def packed(self, slots: Tensor) -> Tensor:
        return slots.reshape(-1, slots.shape[-1]).index_select(0, self._slot)

    def windows(self, words: Tensor) -> Tensor:
        return self.tiles.ends(words).reshape(self.blocks, self.tiles.columns, words.shape[2])


class ChosenSpans(Blocks):
    """The same number of arbitrary spans per sentence, ``start`` and ``end`` [B, M]: a sentence is a block."""

    def __init__(self, length: int, start: Tensor, end: Tensor, width: int) -> None:
        batch, self.count = start.shape
        sentence = torch.arange(batch, device=start.device).repeat_interleave(self.count, output_size=start.numel())
        super().__init__(sentence, start.flatten(), end.flatten(), min(width, length))
        word = torch.arange(length, device=start.device)
        self.inside = (word >= start.unsqueeze(-1)) & (word < end.unsqueeze(-1))

    def spread(self, spans: Tensor) -> Tensor:
        return spans.view(-1, self.count, spans.shape[1])

    def packed(self, slots: Tensor) -> Tensor:
        return slots.flatten(0, 1)

    def windows(self, words: Tensor) -> Tensor:
        return words
