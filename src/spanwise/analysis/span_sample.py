"""Sample a model's span vectors: gold entities, random other spans, and cosines of neighbouring spans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spanwise.analysis.cosines import OVERLAPS, overlap_cosines
from spanwise.analysis.sample import CorrectEntities, contiguous_entities, sample_sentences
from spanwise.core.types import Sentence
from spanwise.models.model import Model
from spanwise.prediction.span_vectors import span_vectors

Floats = npt.NDArray[np.float64]
MAX_SENTENCES = 300
CHUNK_SIZE = 50  # sentences whose span vectors are in memory at the same time


@dataclass(frozen=True)
class SpanSample:
    """Vectors of gold entities with their types, and vectors of spans that are not entities.

    ``cosines`` holds the cosines of entities with other spans of their sentence, for each of ``OVERLAPS``.
    """

    sentences: int
    vectors: npt.NDArray[np.float32]
    types: tuple[str, ...]
    is_correct: npt.NDArray[np.bool_]  # whether the model predicted the entity
    other_vectors: npt.NDArray[np.float32]
    cosines: tuple[Floats, ...]


def span_sample(
    model: Model, gold: Sequence[Sentence], correct: CorrectEntities, *, context: Sequence[Sentence] = (), seed: int = 0
) -> SpanSample:
    """Sample at most ``MAX_SENTENCES`` sentences, and as many random other spans as entities."""
    generator = np.random.default_rng(seed)
    indices = sample_sentences(gold, MAX_SENTENCES, seed)
    vectors, other_vectors, types, is_correct = [], [], [], []
    cosines: list[list[Floats]] = [[np.empty(0)] for _ in OVERLAPS]
    for first in range(0, len(indices), CHUNK_SIZE):
        chunk = indices[first : first + CHUNK_SIZE]
        chunk_vectors = span_vectors(model, [gold[index] for index in chunk], batch_size=16, context=context)
        for index, (spans, values) in zip(chunk, chunk_vectors, strict=True):
            row_of = {(start, end): row for row, (start, end) in enumerate(spans.tolist())}
            entities = [entity for entity in contiguous_entities(gold[index]) if entity.range in row_of]
            rows = [row_of[entity.range] for entity in entities]
            vectors.append(values[rows])
            types += [entity.type for entity in entities]
            is_correct += [(index, entity) in correct for entity in entities]
            is_entity = np.isin(np.arange(len(spans)), rows)
            others = np.flatnonzero(~is_entity)
            other_vectors.append(values[generator.choice(others, min(len(rows), len(others)), replace=False)])
            levels, span_cosines = overlap_cosines(spans, values, is_entity)
            for level, level_cosines in enumerate(cosines):
                level_cosines.append(span_cosines[levels == level])
    return SpanSample(
        len(indices),
        _concatenate(vectors),
        tuple(types),
        np.array(is_correct, bool),
        _concatenate(other_vectors),
        tuple(map(np.concatenate, cosines)),
    )


def _concatenate(rows: Sequence[npt.NDArray[np.float32]]) -> npt.NDArray[np.float32]:
    return np.concatenate(rows) if rows else np.empty((0, 0), np.float32)
