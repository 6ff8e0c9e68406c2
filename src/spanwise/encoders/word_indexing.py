"""Sentences as indices of words, tags and characters: the host part of the static encoder. NumPy only, for every runtime."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field

from spanwise.config.validation import validate_settings
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.encoders.pos_tagging import tag_sentences
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
    """A sentence as vocabulary indices."""

    words: Ints
    tags: Ints | None
    spellings: tuple[bytes, ...]  # one per word, see Vocabulary.spelling; empty without characters


class WordIndexer:
    """Prepares sentences and collates batches. Sentences do not depend on each other."""

    def __init__(self, vocabulary: Vocabulary, *, characters: bool, tags: bool, tagger: str | None = None) -> None:
        self.vocabulary, self.characters, self.tags, self.tagger = vocabulary, characters, tags, tagger

    @classmethod
    def load(cls, folder: Path) -> WordIndexer:
        """The indexer of a saved encoder."""
        record = StaticRecord.read(folder)
        characters, tags = (bool(record.settings.get(name)) for name in ("char_hidden", "pos_size"))
        return cls(record.vocabulary.build(), characters=characters, tags=tags, tagger=record.settings.get("tagger"))

    def prepare(self, sentences: Sequence[Sentence], context: Sequence[Sentence] = ()) -> list[IndexedWords]:
        """Indices of words, tags and characters; ``context`` is not used."""
        vocabulary, spellings = self.vocabulary, dict[str, bytes]()
        if self.tags and self.tagger is not None:
            sentences = tag_sentences(self.tagger, sentences)
        if self.characters:
            for word in {word for sentence in sentences for word in sentence.words}:
                spellings[word] = vocabulary.spelling(word)
        return [
            IndexedWords(
                vocabulary.word_indices(sentence.words),
                vocabulary.tag_indices(sentence) if self.tags else None,
                tuple(map(spellings.__getitem__, sentence.words)) if self.characters else (),
            )
            for sentence in sentences
        ]

    def cost(self, prepared: IndexedWords) -> int:
        return len(prepared.words)

    def collate(self, prepared: Sequence[IndexedWords]) -> dict[str, Array]:
        """``mask``, ``words`` and, if used, ``tags`` [B, T]; ``spelling`` [B, T] indexes the rows of ``short`` and ``long``."""
        lengths = np.array([len(item.words) for item in prepared], np.int64)
        mask = np.arange(max(lengths.max(initial=0), 1)) < lengths[:, None]
        arrays = {"mask": mask, "words": _padded(mask, np.concatenate([item.words for item in prepared]))}
        if self.tags:
            arrays["tags"] = _padded(mask, np.concatenate([item.tags for item in prepared if item.tags is not None]))
        if self.characters:
            # In order of occurrence: the order of a set differs between processes and would change
            # floating-point sums.
            spellings = sorted(dict.fromkeys(spelling for item in prepared for spelling in item.spellings), key=len)
            rows = {spelling: row for row, spelling in enumerate(spellings)}
            flat = np.fromiter((rows[s] for item in prepared for s in item.spellings), np.int64, int(lengths.sum()))
            arrays["spelling"] = _padded(mask, flat)
            arrays["short"], arrays["long"] = _tables(spellings)
        return arrays


def _padded(mask: Array, flat: Array) -> Array:
    rows = np.zeros(mask.shape, np.int64)
    rows[mask] = flat
    return rows


def _tables(spellings: list[bytes]) -> tuple[Array, Array]:
    """The spellings, shortest first, as two padded tables split where padding is least, because few words are long."""
    lengths = np.array([len(s) // 4 for s in spellings] or [0])
    characters = np.frombuffer(b"".join(spellings), np.int32)
    short_count = np.arange(len(lengths))  # candidates for the number of rows of the first table
    sizes = short_count * lengths[short_count - 1] + (len(lengths) - short_count) * lengths[-1]
    split = int(sizes.argmin())
    middle = int(lengths[:split].sum())
    return _table(lengths[:split], characters[:middle]), _table(lengths[split:], characters[middle:])


def _table(lengths: Array, characters: Array) -> Array:
    return _padded(np.arange(max(lengths.max(initial=0), 1)) < lengths[:, None], characters)
