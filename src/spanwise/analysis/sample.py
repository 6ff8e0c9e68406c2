"""Which sentences are looked at closely: some of those with entities, the same ones every time; and what was found in them."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import TypeAlias

import numpy as np

from spanwise.core.types import Entity, Sentence
from spanwise.evaluation.errors import errors

NONE = "no entity"  # what the class behind the types is called
Predictions: TypeAlias = Set[tuple[int, Entity]]  # gold entities that were predicted, each with the number of its sentence


def chosen(sentences: Sequence[Sentence], most: int, seed: int) -> list[int]:
    """The places of at most so many sentences with contiguous entities, in order.

    >>> chosen([Sentence("s1", ("a",)), Sentence("s2", ("b",), (Entity("X", ((0, 1),)),))], 10, seed=0)
    [1]
    """
    places = [place for place, sentence in enumerate(sentences) if contiguous_entities(sentence)]
    if len(places) <= most:
        return places
    return sorted(np.random.default_rng(seed).choice(places, most, replace=False).tolist())


def found_entities(gold: Sequence[Sentence], predicted: Sequence[Sentence]) -> Predictions:
    """What is right in the predictions, which may be cut into other sentences and words than gold is.

    >>> gold = [Sentence("s1", ("Oslo", "rained"), (Entity("Place", ((0, 1),)), Entity("Event", ((1, 2),))))]
    >>> found_entities(gold, [Sentence("s1", ("Oslo", "rain", "ed"), gold[0].entities, text="Oslo rained")])
    {(0, Entity(type='Place', fragments=(Span(start=0, end=1),), score=None))}
    """
    return {(one.number, one.claim.entity) for one in errors(gold, predicted).judgements if one.kind == "correct"}


def contiguous_entities(sentence: Sentence) -> list[Entity]:
    """The distinct entities that are one span."""
    return [entity for entity in dict.fromkeys(sentence.entities) if not entity.is_discontinuous]
