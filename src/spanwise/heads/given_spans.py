"""Given spans that only need a type: the typing task of SNG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from torch import Tensor

from spanwise.core.types import Entity, Sentence, Span, word_indices_in
from spanwise.decoding.decode import Predictions
from spanwise.heads.base import ScoredSpans
from spanwise.heads.span_head import to_tensors
from spanwise.spans.span_lstm import lstm_layout

Ints = npt.NDArray[np.int64]
Fragments = tuple[Span, ...]


@dataclass(slots=True)
class TypedSpans(ScoredSpans):
    """The fragments of given entities with predicted types; ``entity`` is the index of each fragment's entity."""

    entity: Tensor

    def decode(self, count: int, types: Sequence[str]) -> list[Predictions]:
        """The given entities with their types; entities whose fragments got different types are omitted."""
        entities: list[list[Entity]] = [[] for _ in range(count)]
        columns = (column.tolist() for column in (self.entity, *self.columns))
        fragments_of: dict[int, list[tuple[int, int, int, int, float]]] = {}
        for entity, *row in zip(*columns, strict=True):
            fragments_of.setdefault(entity, []).append((*row,))
        for rows in fragments_of.values():
            sentence, _, _, label, _ = rows[0]
            if all(row[3] == label for row in rows):
                fragments = tuple(Span(start, end) for _, start, end, _, _ in rows)
                entities[sentence].append(Entity(types[label], fragments, score=round(min(row[4] for row in rows), 6)))
        return [Predictions(tuple(sentence_entities)) for sentence_entities in entities]


def given_targets(
    sentences: Sequence[Sentence], type_index: dict[str, int] | None, *, splits_fragments: bool, is_context_free: bool
) -> dict[str, Tensor]:
    """The given spans of a batch as ``SpanLstm`` reads them, with gold labels if ``type_index`` is given.

    The LSTM reads the words of all fragments of an entity in order or, with ``splits_fragments``, each
    fragment separately. If a word's state depends on the word only (``is_context_free``), spans of
    equal words are read once. ``word_sentence`` and ``word`` are the positions of the words to read.
    ``read_span`` is the index, among the spans that are read, of each instance: an entity with its
    ``label`` or, without labels, a fragment ``sentence``, ``start``, ``end`` of an ``entity``.
    """
    read_spans: dict[object, int] = {}  # index of each span that is read
    words: list[tuple[int, int]] = []
    widths: list[int] = []
    rows: list[tuple[int, ...]] = []
    for entity, (sentence, fragments, label) in enumerate(_instances(sentences, type_index)):
        texts = sentences[sentence].words
        for span in ((fragment,) for fragment in fragments) if splits_fragments else (fragments,):
            indices = word_indices_in(span)
            key = tuple(texts[index] for index in indices) if is_context_free else (sentence, span)
            read_span = read_spans.setdefault(key, len(widths))
            if read_span == len(widths):
                words += [(sentence, index) for index in indices]
                widths.append(len(indices))
            if type_index is None:
                rows += [(read_span, sentence, start, end, entity) for start, end in span]
            else:
                rows.append((read_span, sentence, label))
    width = np.array(widths, np.int64)
    names = ("read_span", "sentence", "start", "end", "entity") if type_index is None else ("read_span", "sentence", "label")
    return {
        **_columns(words, ("word_sentence", "word")),
        **_columns(rows, names),
        **lstm_layout(np.cumsum(width) - width, width),
    }


def keep_entity_words(sentence: Sentence) -> Sentence:
    """Drop the words outside of entities, except one after each fragment, which separates it from the next.

    >>> keep_entity_words(Sentence("s", tuple("abcdefg"), (Entity("X", ((1, 2), (5, 6))),))).words
    ('b', 'c', 'f', 'g')
    """
    ends = range(len(sentence.words) + 1)
    remaining = sorted({index for entity in sentence.entities for a, b in entity.fragments for index in ends[a : b + 1]})
    new_index = {old: new for new, old in enumerate(remaining)}
    entities = tuple(
        Entity(entity.type, tuple(Span(new_index[a], new_index[b]) for a, b in entity.fragments))
        for entity in sentence.entities
    )
    words = tuple(sentence.words[index] for index in remaining if index < len(sentence.words))
    return Sentence(sentence.id, words, entities)


def _instances(sentences: Sequence[Sentence], type_index: dict[str, int] | None) -> Iterator[tuple[int, Fragments, int]]:
    """The distinct entities to type: sentence, fragments and, with ``type_index``, the index of the gold type."""
    for index, sentence in enumerate(sentences):
        if type_index is None:
            for fragments in dict.fromkeys(entity.fragments for entity in sentence.entities):
                yield index, fragments, -1
        else:
            for entity in dict.fromkeys(sentence.entities):
                if entity.type in type_index:
                    yield index, entity.fragments, type_index[entity.type]


def _columns(rows: Sequence[tuple[int, ...]], names: Sequence[str]) -> dict[str, Tensor]:
    table = np.array(rows, np.int64).reshape(-1, len(names))
    return to_tensors(dict(zip(names, table.T, strict=True)))
