"""Spans that are given and only want a type: the typing task of SNG, where a model need not find the entities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from spanwise.core.types import Entity, Sentence, Span, places_in
from spanwise.decoding.decode import Predictions
from spanwise.heads.base import ScoredSpans
from spanwise.spans.reading import reading

Ints = npt.NDArray[np.int64]
Fragments = tuple[Span, ...]


@dataclass(slots=True)
class TypedSpans(ScoredSpans):
    """The fragments of the given entities, each with the type that it got; ``entity`` numbers the entities that they are of."""

    entity: Tensor

    def read(self, count: int, types: Sequence[str]) -> list[Predictions]:
        """The given entities with their types. One whose fragments got different types has none, and is left out."""
        found: list[list[Entity]] = [[] for _ in range(count)]
        columns = (column.tolist() for column in (self.entity, *self.columns))
        pieces: dict[int, list[tuple[int, int, int, int, float]]] = {}
        for entity, *piece in zip(*columns, strict=True):
            pieces.setdefault(entity, []).append((*piece,))
        for own in pieces.values():
            where, _, _, kind, _ = own[0]
            if all(piece[3] == kind for piece in own):
                fragments = tuple(Span(start, end) for _, start, end, _, _ in own)
                found[where].append(Entity(types[kind], fragments, score=round(min(piece[4] for piece in own), 6)))
        return [Predictions(tuple(entities)) for entities in found]


def given_targets(
    sentences: Sequence[Sentence], places: dict[str, int] | None, *, is_apart: bool, is_context_free: bool
) -> dict[str, Tensor]:
    """The given spans of a batch as a ``SpanReader`` reads them; with ``places``, the numbers of the types, to learn from.

    An entity's words are those of all its fragments, in order, or ``is_apart``, each fragment is read by itself. Where a word's
    state depends on nothing but the word, spans of the same words are read once. The words that are read are numbered in a
    row: ``word_sentence`` and ``word`` say where they stand. ``read`` is the number, among the spans that are read, of each
    instance: an entity with its ``label``, or without labels a fragment ``sentence``, ``start``, ``end`` of an ``entity``.
    """
    numbers: dict[object, int] = {}  # of the spans that are read
    words: list[tuple[int, int]] = []
    widths: list[int] = []
    rows: list[tuple[int, ...]] = []
    for entity, (owner, fragments, kind) in enumerate(_given(sentences, places)):
        sentence = sentences[owner].words
        for piece in ((fragment,) for fragment in fragments) if is_apart else (fragments,):
            own = places_in(piece)
            number = numbers.setdefault(tuple(sentence[p] for p in own) if is_context_free else (owner, piece), len(widths))
            if number == len(widths):
                words += [(owner, place) for place in own]
                widths.append(len(own))
            if places is None:
                rows += [(number, owner, start, end, entity) for start, end in piece]
            else:
                rows.append((number, owner, kind))
    width = np.array(widths, np.int64)
    names = ("read", "sentence", "start", "end", "entity") if places is None else ("read", "sentence", "label")
    return {
        **_columns(words, ("word_sentence", "word")),
        **_columns(rows, names),
        **reading(np.cumsum(width) - width, width),
    }


def words_of_entities(sentence: Sentence) -> Sentence:
    """The sentence without the words that are in none of its entities; one stays behind each fragment, to keep them apart.

    >>> words_of_entities(Sentence("s", tuple("abcdefg"), (Entity("X", ((1, 2), (5, 6))),))).words
    ('b', 'c', 'f', 'g')
    """
    ends = range(len(sentence.words) + 1)
    kept = sorted({place for entity in sentence.entities for a, b in entity.fragments for place in ends[a : b + 1]})
    place = {word: number for number, word in enumerate(kept)}
    entities = tuple(
        Entity(entity.type, tuple(Span(place[a], place[b]) for a, b in entity.fragments)) for entity in sentence.entities
    )
    return Sentence(sentence.id, tuple(sentence.words[word] for word in kept if word < len(sentence.words)), entities)


def _given(sentences: Sequence[Sentence], places: dict[str, int] | None) -> Iterator[tuple[int, Fragments, int]]:
    """What is to be typed: sentence, fragments and, where types are looked at, the number of the type."""
    for owner, sentence in enumerate(sentences):
        if places is None:
            for fragments in dict.fromkeys(entity.fragments for entity in sentence.entities):
                yield owner, fragments, -1
        else:
            for entity in dict.fromkeys(sentence.entities):
                if entity.type in places:
                    yield owner, entity.fragments, places[entity.type]


def _columns(rows: Sequence[tuple[int, ...]], names: Sequence[str]) -> dict[str, Tensor]:
    table = np.array(rows, np.int64).reshape(-1, len(names))
    return {name: torch.from_numpy(np.ascontiguousarray(table[:, at])) for at, name in enumerate(names)}
