"""Which sentences are looked at closely: some of those with entities, the same ones every time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spanwise.types import Entity, Sentence

NONE = "no entity"  # what the class behind the types is called


def chosen(sentences: Sequence[Sentence], most: int, seed: int) -> list[int]:
    """The places of at most so many sentences with contiguous entities, in order.

    >>> chosen([Sentence("s1", ("a",)), Sentence("s2", ("b",), (Entity("X", ((0, 1),)),))], 10, seed=0)
    [1]
    """
    places = [place for place, sentence in enumerate(sentences) if contiguous_entities(sentence)]
    if len(places) <= most:
        return places
    return sorted(np.random.default_rng(seed).choice(places, most, replace=False).tolist())


def contiguous_entities(sentence: Sentence) -> list[Entity]:
    """The distinct entities that are one span."""
    return [entity for entity in dict.fromkeys(sentence.entities) if not entity.is_discontinuous]
