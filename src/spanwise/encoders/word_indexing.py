"""Sentences as indices of words, tags and characters: the host part of the static encoder. NumPy only, for every runtime."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, repeat
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field

from spanwise.config.validation import validate_settings
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.encoders.distinct_words import cut, number_words
from spanwise.encoders.pos_tagging import tag_sentences
from spanwise.encoders.spellings import Spellings, batch_tables, join
from spanwise.encoders.vocabulary import Ints, Vocabulary
from spanwise.files.reading import read_json

Array: TypeAlias = npt.NDArray[Any]
FILE = "static_encoder.json"  # the settings and the vocabulary of the encoder


class VocabularyRecord(BaseModel):
    """The words, characters and tags of a saved ``Vocabulary``."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    learned: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    characters: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()

    def build(self) -> Vocabulary:
        return Vocabulary(self.learned, self.given, self.characters, self.tags)


class StaticRecord(BaseModel):
    """The content of ``static_encoder.json``. ``settings`` are those of the encoder."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    settings: dict[str, Any]
    word_size: int = Field(ge=0)
    vocabulary: VocabularyRecord

    @classmethod
    def read(cls, folder: Path) -> StaticRecord:
        path = folder / FILE
        if not path.exists():
            raise SpanwiseError(f"{folder}: {FILE} is missing; the static encoder needs it")
        return validate_settings(cls, read_json(path), str(path))


@dataclass(slots=True)
class IndexedWords:
    """A sentence as vocabulary indices. Parts that the encoder does not have are None."""

    length: int  # in words
    words: Ints | None
    tags: Ints | None
    rows: Ints | None  # of ``spellings``, one per word
    spellings: Spellings | None  # shared by all sentences that were prepared together


class WordIndexer:
    """Indexer of words: prepare sentences, which do not depend on each other, and collate batches."""

    def __init__(
        self, vocabulary: Vocabulary, *, words: bool = True, characters: bool, tags: bool, tagger: str | None = None
    ) -> None:
        self.vocabulary, self.words, self.characters, self.tags, self.tagger = vocabulary, words, characters, tags, tagger

    @classmethod
    def load(cls, folder: Path) -> WordIndexer:
        """The indexer of a saved encoder."""
        record = StaticRecord.read(folder)
        characters, tags = (bool(record.settings.get(name)) for name in ("char_hidden", "pos_size"))
        tagger = record.settings.get("tagger")
        return cls(record.vocabulary.build(), words=record.word_size > 0, characters=characters, tags=tags, tagger=tagger)

    def prepare(self, sentences: Sequence[Sentence], context: Sequence[Sentence] = ()) -> list[IndexedWords]:
        """Indices of words, tags and characters; ``context`` is not used.

        Each distinct word is looked up once. The arrays of the sentences are parts of one array.
        """
        if self.tags and self.tagger is not None:
            sentences = tag_sentences(self.tagger, sentences)
        lengths = [len(sentence.words) for sentence in sentences]
        ends = list(accumulate(lengths))
        words: Iterable[Ints | None] = repeat(None)
        rows: Iterable[Ints | None] = repeat(None)
        spellings = None
        if self.words or self.characters:
            distinct, numbers = number_words([sentence.words for sentence in sentences])
            if self.words:
                words = cut(self.vocabulary.word_indices(distinct)[numbers], ends)
            if self.characters:
                spellings = Spellings.pack(*self.vocabulary.spell(distinct))
                rows = cut(spellings.rows_of_words[numbers], ends)
        tags = map(self.vocabulary.tag_indices, sentences) if self.tags else repeat(None)
        return list(map(IndexedWords, lengths, words, tags, rows, repeat(spellings)))

    def cost(self, prepared: IndexedWords) -> int:
        return prepared.length

    def collate(self, prepared: Sequence[IndexedWords], places: Array | None = None) -> dict[str, Array]:
        """``mask`` [B, T] and, if used, ``words``, ``tags`` and ``spelling``, which indexes rows of ``short`` and ``long``.

        With ``places`` of all spellings, ``spelling`` is the place of each word's, and there are no tables.
        """
        lengths = np.array([item.length for item in prepared], np.int64)
        mask = np.arange(max(lengths.max(initial=0), 1)) < lengths[:, None]
        arrays = {"mask": mask}
        if self.words:
            arrays["words"] = _padded(mask, np.concatenate([item.words for item in prepared if item.words is not None]))
        if self.tags:
            arrays["tags"] = _padded(mask, np.concatenate([item.tags for item in prepared if item.tags is not None]))
        if self.characters:
            tables = [item.spellings for item in prepared if item.spellings is not None]
            spellings, rows = join(tables, [item.rows for item in prepared if item.rows is not None])
            if places is None:
                arrays["short"], arrays["long"], numbers = batch_tables(spellings, rows)
            else:
                numbers = places[rows]
            arrays["spelling"] = _padded(mask, numbers)
        return arrays


def _padded(mask: Array, flat: Array) -> Array:
    rows = np.zeros(mask.shape, np.int64)
    rows[mask] = flat
    return rows
