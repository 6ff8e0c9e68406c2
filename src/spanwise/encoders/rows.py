"""The host's part of a transformer encoder: sentences to rows of subwords and back. NumPy only, for every runtime."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict

from spanwise.core.types import Sentence
from spanwise.encoders.neighbours import neighbours, surroundings, with_documents
from spanwise.encoders.subwords import NONE, Ints, Subwords, padded, word_index
from spanwise.encoders.tokenizing import WordTokenizer
from spanwise.encoders.windows import windows

Arrays: TypeAlias = dict[str, npt.NDArray[Any]]
Pooling: TypeAlias = Literal["first", "max", "mean"]
Context: TypeAlias = Literal["sentence", "document"]


class RowSettings(BaseModel):
    """What rows look like: the ids put before and behind the subwords, and how many subwords there may be with them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    before: tuple[int, ...]
    after: tuple[int, ...]
    padding: int
    window: int
    pooling: Pooling
    context: Context

    @property
    def capacity(self) -> int:
        """The subwords of a row that are not put there by the tokenizer."""
        return self.window - len(self.before) - len(self.after)


class Rows:
    """Prepares sentences and lays out batches.

    No text is cut off: a sentence longer than the window is read in windows that overlap by a quarter, and each subword is
    taken from the window in which it stands farther from the rim.
    """

    def __init__(self, tokenize: WordTokenizer, settings: RowSettings) -> None:
        self.tokenize, self.settings = tokenize, settings

    def prepare(self, sentences: Sequence[Sentence], context: Sequence[Sentence] = ()) -> list[Subwords]:
        """Subword ids of every sentence. ``context`` holds more sentences (of other splits, say) for document context."""
        if self.settings.context == "sentence":
            return [self._rows(*pieces, NONE, NONE) for pieces in self.tokenize([s.words for s in sentences])]
        everything = with_documents(sentences, context)
        tokenized = self.tokenize([sentence.words for sentence in everything])
        ids = [ids for ids, _ in tokenized]
        prepared = []
        for (own, counts), (document, at) in zip(tokenized[: len(sentences)], neighbours(everything), strict=False):
            around = surroundings(ids, document, at, self.settings.capacity - len(own))
            prepared.append(self._rows(own, counts, *around))
        return prepared

    def _rows(self, ids: Ints, counts: Ints, before: Ints, behind: Ints) -> Subwords:
        settings, size = self.settings, self.settings.capacity
        if len(ids) <= size:
            row = np.concatenate([settings.before, before, ids, behind, settings.after]).astype(np.int64)
            # A row needs something in it, even of a sentence without words and a tokenizer without special tokens.
            rows = [row if len(row) else np.array([self.tokenize.unknown_id])]
            place = np.arange(len(ids), dtype=np.int64) + len(settings.before) + len(before)
            return Subwords(rows, np.zeros(len(ids), np.int64), place, counts)
        starts, owner, place = windows(len(ids), size, size // 4)
        rows = [np.concatenate([settings.before, ids[s : s + size], settings.after]).astype(np.int64) for s in starts]
        return Subwords(rows, owner, place + len(settings.before), counts)

    def cost(self, prepared: Subwords) -> int:
        """How many subwords are read for a sentence."""
        return sum(map(len, prepared.rows))

    def collate(self, prepared: Sequence[Subwords], *, grain: int = 1, subwords: bool = False) -> Arrays:
        """The arrays of a batch: ``ids`` and ``seen`` [rows, length], ``cls`` [B] and those of ``word_index``.

        Lengths are filled up to a multiple of ``grain`` within the window; with ``subwords`` every subword is a word.
        """
        settings = self.settings
        if subwords:
            prepared = [replace(item, counts=np.ones_like(item.row)) for item in prepared]
        rows = [row for item in prepared for row in item.rows]
        length = max(map(len, rows))
        if grain > 1:
            length = min(-(-length // grain) * grain, settings.window)
        ids, seen = padded(rows, length, settings.padding)
        first_row = np.cumsum([0, *(len(item.rows) for item in prepared[:-1])])
        # The sentence's state is that of the token put before it, or behind it where a tokenizer puts none before.
        cls = first_row * length + (0 if settings.before else np.array([len(item.rows[0]) - 1 for item in prepared]))
        index = word_index(prepared, length, settings.pooling == "first")
        return {"ids": ids, "seen": seen, "cls": np.ascontiguousarray(cls), **index}
