"""Sentences as rows of subword ids: the host part of transformer encoders. NumPy only, for every runtime."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Annotated, Any, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, model_validator

from spanwise.core.types import Sentence
from spanwise.encoders.distinct_words import cut
from spanwise.encoders.document_context import context_subwords, with_context_sentences
from spanwise.encoders.subwords import NO_SUBWORDS, Ints, Subwords, padded, word_index
from spanwise.encoders.windows import windows
from spanwise.encoders.word_tokenizer import WordTokenizer

Arrays: TypeAlias = dict[str, npt.NDArray[Any]]
Pooling: TypeAlias = Literal["first", "max", "mean"]
Context: TypeAlias = Literal["sentence", "document"]
SubwordId = Annotated[int, Field(ge=0, lt=1 << 31)]


class SubwordSettings(BaseModel):
    """The layout of a row: the special tokens before and after the subwords, and the length including them."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    before: tuple[SubwordId, ...]
    after: tuple[SubwordId, ...]
    padding: SubwordId
    window: int
    pooling: Pooling
    context: Context

    @property
    def capacity(self) -> int:
        """The maximum number of subwords in a row, without special tokens."""
        return self.window - len(self.before) - len(self.after)

    @model_validator(mode="after")
    def _check_window(self) -> Self:
        if self.capacity < 1:
            raise ValueError(f"a window of {self.window} subwords has no room for a word")
        return self


class SubwordIndexer:
    """Indexer of subwords: prepare sentences and collate batches.

    Text is never truncated: a sentence longer than the window is split into windows that overlap by
    a quarter, and each subword is taken from the window in which it is farther from the edge.
    """

    def __init__(self, tokenize: WordTokenizer, settings: SubwordSettings) -> None:
        self.tokenize, self.settings = tokenize, settings

    def prepare(self, sentences: Sequence[Sentence], context: Sequence[Sentence] = ()) -> list[Subwords]:
        """The subwords of every sentence. ``context`` has more sentences, of other splits for example, for document context."""
        if self.settings.context == "sentence":
            return self._prepare_sentences([sentence.words for sentence in sentences])
        all_sentences, order = with_context_sentences(sentences, context)
        tokenized = self.tokenize([sentence.words for sentence in all_sentences])
        all_ids = [ids for ids, _ in tokenized]
        prepared = []
        for (ids, counts), (document, position) in zip(tokenized[: len(sentences)], order, strict=True):
            before, after = context_subwords(all_ids, document, position, self.settings.capacity - len(ids))
            prepared.append(self._rows(ids, counts, before, after))
        return prepared

    def _prepare_sentences(self, texts: Sequence[Sequence[str]]) -> list[Subwords]:
        """The subwords of sentences without context. Their arrays are parts of a few common ones."""
        ids, counts, ends = self.tokenize.pack(texts)
        before, after = self.settings.before, self.settings.after
        special, capacity = len(before) + len(after), self.settings.capacity
        sizes = np.diff(ends, prepend=0)
        row_ends = ends + special * np.arange(1, len(texts) + 1)
        rows = np.empty(len(ids) + special * len(texts), np.int64)
        rows[(row_ends - sizes - special)[:, None] + np.arange(len(before))] = before
        rows[np.arange(len(ids)) + np.repeat(row_ends - ends - len(after), sizes)] = ids
        rows[row_ends[:, None] - np.arange(len(after), 0, -1)] = after
        columns = np.arange(min(int(sizes.max(initial=0)), capacity)) + len(before)
        first_row = np.zeros_like(columns)
        prepared = []
        sentence_counts = cut(counts, list(accumulate(map(len, texts))))
        for size, row, words in zip(sizes.tolist(), cut(rows, row_ends.tolist()), sentence_counts, strict=True):
            if 0 < size <= capacity:
                prepared.append(Subwords([row], first_row[:size], columns[:size], words))
            else:
                prepared.append(self._rows(row[len(before) : len(before) + size], words, NO_SUBWORDS, NO_SUBWORDS))
        return prepared

    def _rows(self, ids: Ints, counts: Ints, before: Ints, after: Ints) -> Subwords:
        """The row of a sentence and its context, ``before`` and ``after`` it, or the windows of a long sentence."""
        settings, size = self.settings, self.settings.capacity
        if len(ids) <= size:
            row = np.concatenate([settings.before, before, ids, after, settings.after]).astype(np.int64)
            # A row must not be empty, even for a sentence without words and a tokenizer without special tokens.
            rows = [row if len(row) else np.array([self.tokenize.unknown_id])]
            column = np.arange(len(ids), dtype=np.int64) + len(settings.before) + len(before)
            return Subwords(rows, np.zeros(len(ids), np.int64), column, counts)
        starts, row_index, column = windows(len(ids), size, size // 4)
        rows = [np.concatenate([settings.before, ids[s : s + size], settings.after]).astype(np.int64) for s in starts]
        return Subwords(rows, row_index, column + len(settings.before), counts)

    def cost(self, prepared: Subwords) -> int:
        """The number of subwords that the encoder reads for a sentence."""
        return sum(map(len, prepared.rows))

    def collate(self, prepared: Sequence[Subwords], *, multiple: int = 1, subwords: bool = False) -> Arrays:
        """The arrays of a batch: ``ids`` and ``seen`` [rows, length], ``cls`` [B] and those of ``word_index``.

        The length is padded to a ``multiple``, within the window. With ``subwords`` every subword
        counts as a word.
        """
        settings = self.settings
        if subwords:
            prepared = [replace(item, counts=np.ones_like(item.row)) for item in prepared]
        rows = [row for item in prepared for row in item.rows]
        length = max(map(len, rows))
        if multiple > 1:
            length = min(-(-length // multiple) * multiple, settings.window)
        ids, seen = padded(rows, length, settings.padding)
        first_row = np.cumsum([0, *(len(item.rows) for item in prepared[:-1])])
        # The sentence's state is that of the special token before it, or after it for tokenizers that put none before.
        cls = first_row * length + (0 if settings.before else np.array([len(item.rows[0]) - 1 for item in prepared]))
        index = word_index(prepared, length, settings.pooling == "first")
        return {"ids": ids, "seen": seen, "cls": np.ascontiguousarray(cls), **index}
