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
from functools import cached_property

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from spanwise.spans.kernels import SpanIndex
from spanwise.spans.tiles import Tiles

ROWS = 8  # starts per tile: more compute masked cells, fewer copy more words, since windows overlap by the widest span


class Blocks(ABC):
    """S packed spans: ``sentence``, ``start`` and ``end`` [S], with at most ``max_width`` words each.

    ``shape`` is B and T: the number of sentences and their padded length. ``width`` is also at most T.
    Kernels are compiled for ``max_width``, which does not depend on a batch.
    """

    inside: Tensor  # boolean, broadcasts to [G, M, N]

    def __init__(self, shape: tuple[int, int], sentence: Tensor, start: Tensor, end: Tensor, max_width: int) -> None:
        self.shape, self.sentence, self.start, self.end = shape, sentence, start, end
        self.max_width, self.width = max_width, min(max_width, shape[1])

    def attend(self, queries: Tensor, keys: Tensor, values: Tensor, heads: int, dropout: float) -> Tensor:
        """Attention of each span to its own words: ``queries`` [S, d], ``keys`` and ``values`` [B, T, d] to [S, d]."""

        def split_heads(vectors: Tensor) -> Tensor:
            return vectors.view(*vectors.shape[:2], heads, -1).transpose(1, 2)

        attended = F.scaled_dot_product_attention(
            split_heads(self.spread(queries)), split_heads(self.windows(keys)), split_heads(self.windows(values)),
            attn_mask=self.inside.unsqueeze(1), dropout_p=dropout,
        )  # fmt: skip
        return self.packed(attended.transpose(1, 2).flatten(2))

    @cached_property
    def index(self) -> SpanIndex:
        """Tables that kernels need to look up the words of spans and the spans of words."""
        length = self.shape[1]
        word = torch.arange(self.shape[0] * length, device=self.start.device)
        first_word = self.sentence * length + self.start
        columns = (first_word, self.end - self.start, *self.rows_of_words(first_word, word))
        return SpanIndex(*(column.int() for column in columns))  # kernels are faster with 32 bits

    @abstractmethod
    def rows_of_words(self, first_word: Tensor, word: Tensor) -> tuple[Tensor, Tensor]:
        """Start and end of a range of the S rows that includes all spans with a word, for each ``word`` [B x T].

        Words are numbered through all sentences; ``first_word`` [S] is the first of each span.
        """

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
    """Any spans of two to ``width`` words, sorted by sentence and start: a block holds all widths at some adjacent starts.

    Single words are excluded because their states are already known (DSpERT, equation 4).
    """

    def __init__(self, batch: int, length: int, sentence: Tensor, start: Tensor, end: Tensor, width: int) -> None:
        super().__init__((batch, length), sentence, start, end, width)
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

    def rows_of_words(self, first_word: Tensor, word: Tensor) -> tuple[Tensor, Tensor]:
        earliest = torch.maximum(word // self.shape[1] * self.shape[1], word - self.width + 1)
        return torch.searchsorted(first_word, earliest), torch.searchsorted(first_word, word, right=True)

    def windows(self, words: Tensor) -> Tensor:
        return self.tiles.ends(words).reshape(self.blocks, self.tiles.columns, words.shape[2])


class ChosenSpans(Blocks):
    """The same number of arbitrary spans per sentence, ``start`` and ``end`` [B, M]: a sentence is a block."""

    def __init__(self, length: int, start: Tensor, end: Tensor, width: int) -> None:
        batch, self.count = start.shape
        sentence = torch.arange(batch, device=start.device).repeat_interleave(self.count, output_size=start.numel())
        super().__init__((batch, length), sentence, start.flatten(), end.flatten(), width)
        word = torch.arange(length, device=start.device)
        self.inside = (word >= start.unsqueeze(-1)) & (word < end.unsqueeze(-1))

    def spread(self, spans: Tensor) -> Tensor:
        return spans.view(-1, self.count, spans.shape[1])

    def packed(self, slots: Tensor) -> Tensor:
        return slots.flatten(0, 1)

    def windows(self, words: Tensor) -> Tensor:
        return words

    def rows_of_words(self, first_word: Tensor, word: Tensor) -> tuple[Tensor, Tensor]:
        first_row = word // self.shape[1] * self.count
        return first_row, first_row + self.count
