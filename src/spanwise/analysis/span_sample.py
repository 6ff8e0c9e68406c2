"""A sample of a model's span vectors: those of gold entities, some of other spans, and how alike neighbours are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spanwise.analysis.cosines import OVERLAPS, overlap_cosines
from spanwise.analysis.sample import Predictions, chosen, contiguous_entities
from spanwise.core.types import Sentence
from spanwise.models.model import Model
from spanwise.prediction.span_vectors import span_vectors

Floats = npt.NDArray[np.float64]
SENTENCES = 300
CHUNK = 50  # sentences of which the vectors of all spans are in memory


@dataclass(frozen=True)
class SpanSample:
    """The vectors of n gold entities with their types, and those of other spans, which are no entities.

    ``cosines`` are those of entities with the other spans of their sentence, by the place among ``OVERLAPS``.
    """

    sentences: int
    vectors: npt.NDArray[np.float32]
    types: tuple[str, ...]
    found: npt.NDArray[np.bool_]  # whether the model predicted the entity
    others: npt.NDArray[np.float32]
    cosines: tuple[Floats, ...]


def span_sample(
    model: Model, gold: Sequence[Sentence], found: Predictions, *, context: Sequence[Sentence] = (), seed: int = 0
) -> SpanSample:
    """From at most ``SENTENCES`` sentences with entities; of other spans, as many as there are entities, drawn at random."""
    generator = np.random.default_rng(seed)
    places = chosen(gold, SENTENCES, seed)
    vectors, others, types, is_found = [], [], [], []
    cosines: list[list[Floats]] = [[np.empty(0)] for _ in OVERLAPS]
    for first in range(0, len(places), CHUNK):
        own = places[first : first + CHUNK]
        every = span_vectors(model, [gold[place] for place in own], batch_size=16, context=context)
        for place, (spans, values) in zip(own, every, strict=True):
            number = {(start, end): row for row, (start, end) in enumerate(spans.tolist())}
            entities = [entity for entity in contiguous_entities(gold[place]) if entity.range in number]
            rows = [number[entity.range] for entity in entities]
            vectors.append(values[rows])
            types += [entity.type for entity in entities]
            is_found += [(place, entity) in found for entity in entities]
            is_entity = np.isin(np.arange(len(spans)), rows)
            rest = np.flatnonzero(~is_entity)
            others.append(values[generator.choice(rest, min(len(rows), len(rest)), replace=False)])
            level, cosine = overlap_cosines(spans, values, is_entity)
            for at, kept in enumerate(cosines):
                kept.append(cosine[level == at])
    return SpanSample(
        len(places),
        _joined(vectors),
        tuple(types),
        np.array(is_found, bool),
        _joined(others),
        tuple(map(np.concatenate, cosines)),
    )


def _joined(rows: Sequence[npt.NDArray[np.float32]]) -> npt.NDArray[np.float32]:
    return np.concatenate(rows) if rows else np.empty((0, 0), np.float32)
