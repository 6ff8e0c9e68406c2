"""Folds of a cross-validation in which every type is spread over all folds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

from spanwise.core.types import Sentence


def assign_folds(sentences: Sequence[Sentence], folds: int, seed: int) -> list[int]:
    """Return the fold of each sentence, from 0; folds have about equal sizes.

    Sentences are grouped by their rarest type and dealt out in random order, so that each fold gets
    its share of every type.

    >>> assign_folds([Sentence(str(index), ("a",)) for index in range(6)], 3, seed=1)
    [0, 2, 1, 1, 0, 2]
    """
    counts = Counter(entity.type for sentence in sentences for entity in sentence.entities)
    random = Random(seed)
    keys = []
    for index, sentence in enumerate(sentences):
        rarest = min(((counts[entity.type], entity.type) for entity in sentence.entities), default=(0, ""))
        keys.append((rarest, random.random(), index))
    result = [0] * len(sentences)
    for position, (_, _, index) in enumerate(sorted(keys)):
        result[index] = position % folds
    return result
