"""Groups of sentences by their longest entity or their density, as in Table 6 of GlobalPointer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spanwise.core.types import Sentence
from spanwise.evaluation.scores import Score, Tally, entity_items


def longest(sentence: Sentence) -> float:
    """The number of words of the longest entity."""
    return max((len(entity.word_indices) for entity in sentence.entities), default=0)


def density(sentence: Sentence) -> float:
    """The share of words inside entities."""
    words = {word for entity in sentence.entities for word in entity.word_indices}
    return len(words) / max(len(sentence.words), 1)


def score_groups(
    gold: Sequence[Sentence], predicted: Sequence[Sentence], measure: Callable[[Sentence], float], cuts: Sequence[float]
) -> list[tuple[Score, int]]:
    """Score sentences grouped by a measure of their gold entities; return the score and the size of each group.

    ``cuts`` are the highest values of all groups except the last.
    """
    tallies, counts = [Tally() for _ in range(len(cuts) + 1)], [0] * (len(cuts) + 1)
    for expected, actual in zip(gold, predicted, strict=True):
        group = sum(measure(expected) > cut for cut in cuts)
        tallies[group].add(entity_items(expected), entity_items(actual))
        counts[group] += 1
    return [(tally.scores.micro, count) for tally, count in zip(tallies, counts, strict=True)]
