"""Reproducible samples of sentences, and the gold entities that were predicted correctly."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import TypeAlias

import numpy as np

from spanwise.core.types import Entity, Sentence
from spanwise.evaluation.errors import analyze_errors

NO_ENTITY = "no entity"  # the name of the class after the types
CorrectEntities: TypeAlias = Set[tuple[int, Entity]]  # gold entities predicted correctly, with their sentence index


def sample_sentences(sentences: Sequence[Sentence], limit: int, seed: int) -> list[int]:
    """Return the sorted indices of at most ``limit`` sentences with contiguous entities.

    >>> sample_sentences([Sentence("s1", ("a",)), Sentence("s2", ("b",), (Entity("X", ((0, 1),)),))], 10, seed=0)
    [1]
    """
    indices = [index for index, sentence in enumerate(sentences) if contiguous_entities(sentence)]
    if len(indices) <= limit:
        return indices
    return sorted(np.random.default_rng(seed).choice(indices, limit, replace=False).tolist())


def correct_entities(gold: Sequence[Sentence], predicted: Sequence[Sentence]) -> CorrectEntities:
    """Return the gold entities that were predicted; the predictions may be tokenised or split differently.

    >>> gold = [Sentence("s1", ("Oslo", "rained"), (Entity("Place", ((0, 1),)), Entity("Event", ((1, 2),))))]
    >>> correct_entities(gold, [Sentence("s1", ("Oslo", "rain", "ed"), gold[0].entities, text="Oslo rained")])
    {(0, Entity(type='Place', fragments=(Span(start=0, end=1),), score=None))}
    """
    matches = analyze_errors(gold, predicted).matches
    return {(match.sentence_index, match.mention.entity) for match in matches if match.outcome == "correct"}


def contiguous_entities(sentence: Sentence) -> list[Entity]:
    """Return the distinct entities with a single fragment."""
    return [entity for entity in dict.fromkeys(sentence.entities) if not entity.is_discontinuous]
