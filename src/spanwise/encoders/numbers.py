"""The host's part of the static encoder: sentences to numbers of words, tags and characters. NumPy only, for every runtime."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from spanwise.core.types import Sentence
from spanwise.encoders.vocabulary import Ints, Vocabulary

Array: TypeAlias = npt.NDArray[Any]
FILE = "static_encoder.json"  # where the encoder's settings and vocabulary are kept


@dataclass(slots=True)
class NumberedWords:
    """A sentence in numbers."""

    words: Ints
    tags: Ints | None
    spellings: tuple[bytes, ...]  # of each word, see Vocabulary.spelling; empty without characters


class Numbers:
    """Prepares sentences and lays out batches; each sentence is read alone."""

    def __init__(self, vocabulary: Vocabulary, *, characters: bool, tags: bool) -> None:
        self.vocabulary, self.characters, self.tags = vocabulary, characters, tags

    @classmethod
    def load(cls, folder: Path) -> Numbers:
        """As the encoder that was saved there has them."""
        record = json.loads((folder / FILE).read_text(encoding="utf-8"))
        settings, vocabulary = record["settings"], Vocabulary.from_json(record["vocabulary"])
        return cls(vocabulary, characters=bool(settings["char_hidden"]), tags=bool(settings["pos_size"]))

    def prepare(self, sentences: Sequence[Sentence], context: Sequence[Sentence] = ()) -> list[NumberedWords]:
        """Numbers of words, tags and characters; ``context`` is not used."""
        vocabulary, spelled = self.vocabulary, dict[str, bytes]()
        if self.characters:
            for word in {word for sentence in sentences for word in sentence.words}:
                spelled[word] = vocabulary.spelling(word)
        return [
            NumberedWords(
                vocabulary.word_numbers(sentence.words),
                vocabulary.tag_numbers(sentence) if self.tags else None,
                tuple(map(spelled.__getitem__, sentence.words)) if self.characters else (),
            )
            for sentence in sentences
        ]

    def cost(self, prepared: NumberedWords) -> int:
        return len(prepared.words)

    def collate(self, prepared: Sequence[NumberedWords]) -> dict[str, Array]:
        """``mask``, ``words`` and, where there are, ``tags`` [B, T]; ``spelling`` [B, T] are rows of ``short`` and ``long``."""
        lengths = np.array([len(item.words) for item in prepared], np.int64)
        mask = np.arange(max(lengths.max(initial=0), 1)) < lengths[:, None]
        arrays = {"mask": mask, "words": _padded(mask, np.concatenate([item.words for item in prepared]))}
        if self.tags:
            arrays["tags"] = _padded(mask, np.concatenate([item.tags for item in prepared if item.tags is not None]))
        if self.characters:
            # In order of occurrence, not a set's, which differs between processes: sums must not.
            spellings = sorted(dict.fromkeys(spelling for item in prepared for spelling in item.spellings), key=len)
            places = {spelling: place for place, spelling in enumerate(spellings)}
            flat = np.fromiter((places[s] for item in prepared for s in item.spellings), np.int64, int(lengths.sum()))
            arrays["spelling"] = _padded(mask, flat)
            arrays["short"], arrays["long"] = _tables(spellings)
        return arrays


def _padded(mask: Array, flat: Array) -> Array:
    rows = np.zeros(mask.shape, np.int64)
    rows[mask] = flat
    return rows


def _tables(spellings: list[bytes]) -> tuple[Array, Array]:
    """The spellings, shortest first, as two padded tables, cut where these are smallest: few words are long."""
    lengths = np.array([len(s) // 4 for s in spellings] or [0])
    numbers = np.frombuffer(b"".join(spellings), np.int32)
    count = np.arange(len(lengths))  # of spellings in the first table
    cut = int((count * lengths[count - 1] + (len(lengths) - count) * lengths[-1]).argmin())
    middle = int(lengths[:cut].sum())
    return _rows(lengths[:cut], numbers[:middle]), _rows(lengths[cut:], numbers[middle:])


def _rows(lengths: Array, numbers: Array) -> Array:
    return _padded(np.arange(max(lengths.max(initial=0), 1)) < lengths[:, None], numbers)
