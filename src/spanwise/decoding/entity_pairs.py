"""Pairs of decoded entities and the relations between them. NumPy only, for every runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

import numpy as np
import numpy.typing as npt

from spanwise.core.types import Relation
from spanwise.decoding.decode import Predictions

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
MAX_PAIRED_ENTITIES = 100  # per sentence, by score: an untrained model may predict thousands


def entity_columns(predictions: Sequence[Predictions], entity_index: Mapping[str, int]) -> Floats:
    """The entities of a batch, packed: sentence, start, end, label and score [5, n].

    A discontinuous entity is represented by its first and last word.
    """
    rows = [
        (sentence, *entity.range, entity_index[entity.type], entity.score or 0.0)
        for sentence, prediction in enumerate(predictions)
        for entity in prediction.entities
    ]
    return np.array(rows, np.float64).reshape(-1, 5).T


def highest_scores(sentence: Floats, score: Floats, count: int) -> Ints:
    """The indices of the ``count`` items of each sentence with the highest scores, in order.

    >>> highest_scores(np.array([0, 0, 0, 1]), np.array([0.5, 0.7, 0.6, 0.1]), 2).tolist()
    [1, 2, 3]
    """
    order = np.lexsort((-score, sentence))
    ordered = sentence[order]
    return np.sort(order[np.arange(len(order)) - np.searchsorted(ordered, ordered) < count])


def all_pairs(counts: Ints) -> tuple[Ints, Ints]:
    """All pairs of spans of one sentence, each span with itself included; ``counts`` are the spans of each sentence.

    >>> [side.tolist() for side in all_pairs(np.array([2, 0, 1]))]
    [[0, 0, 1, 1, 2], [0, 1, 0, 1, 2]]
    """
    squares = counts**2
    sentence = np.repeat(np.arange(len(counts)), squares)
    offset, size = (np.cumsum(counts) - counts)[sentence], counts[sentence]
    pair = np.arange(squares.sum()) - (np.cumsum(squares) - squares)[sentence]
    return offset + pair // size, offset + pair % size


def add_relations(
    predictions: Sequence[Predictions],
    first: Ints,
    second: Ints,
    label: Ints,
    score: npt.NDArray[np.floating],
    types: Sequence[str],
) -> list[Predictions]:
    """Add relations between entities, which are given by their positions among those of all sentences."""
    counts = np.array([len(prediction.entities) for prediction in predictions], np.int64)
    ends = counts.cumsum()
    sentence = np.searchsorted(ends, first, side="right")
    offset = (ends - counts)[sentence]
    order = np.lexsort((label, second, first))
    columns = (sentence, label, first - offset, second - offset, score)
    rows = zip(*(column[order].tolist() for column in columns), strict=True)
    relations: list[tuple[Relation, ...]] = [()] * len(predictions)
    for index, group in groupby(rows, key=lambda row: row[0]):
        relations[index] = tuple(
            Relation(types[type], head, tail, score=round(value, 6)) for _, type, head, tail, value in group
        )
    return [
        Predictions(prediction.entities, sentence_relations)
        for prediction, sentence_relations in zip(predictions, relations, strict=True)
    ]
