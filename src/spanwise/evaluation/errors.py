"""Error analysis: counts and rates of error types, most confident and most frequent errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from spanwise.core.types import Sentence
from spanwise.evaluation.confusion import Confusion
from spanwise.evaluation.matching import ERROR_TYPES, OUTCOMES, Match, Mention, match_entities, words_of
from spanwise.evaluation.pairing import SystemOutput, gold_indices, pair
from spanwise.evaluation.scores import EntityItem, Score, entity_items, ratio

MAX_LISTED = 50  # errors in a list


@dataclass(frozen=True, slots=True)
class FrequentError:
    """An error that occurs ``count`` times with the same types and texts, and its first occurrence."""

    outcome: str
    count: int
    example: Match

    def to_json(self) -> dict[str, Any]:
        def type_and_text(mention: Mention | None) -> dict[str, str] | None:
            return None if mention is None else {"type": mention.type, "text": mention.text}

        return {
            "outcome": self.outcome,
            "count": self.count,
            "gold": type_and_text(self.example.gold),
            "predicted": type_and_text(self.example.predicted),
            "sentence": self.example.sentence.id,
            "text": self.example.sentence.text,
        }


@dataclass(frozen=True)
class ErrorAnalysis:
    """Every gold entity and every prediction, each in exactly one of the ``matches``, in the order of gold.

    ``published_boundary`` and ``published_type`` follow the paper's definition, which does not match
    entities one to one: wrong predictions that overlap some gold entity without having its words, and
    wrong predictions with the words of a gold entity.
    """

    matches: tuple[Match, ...]
    score: Score
    confusion: Confusion
    published_boundary: int
    published_type: int

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """Number of matches per outcome. A matched error is a false positive and a false negative."""
        counts = Counter(match.outcome for match in self.matches)
        return {outcome: counts[outcome] for outcome in OUTCOMES}

    @property
    def false_count(self) -> int:
        """False positives plus false negatives, the denominator of Eq. 24."""
        return self.score.predicted + self.score.support - 2 * self.score.correct

    @property
    def rates(self) -> Mapping[str, float]:
        """Errors of each type divided by false positives plus false negatives (Eq. 24)."""
        return {type: ratio(self.counts[type], self.false_count) for type in ERROR_TYPES}

    @property
    def published_rates(self) -> Mapping[str, float]:
        """BE-Rate and TE-Rate with the paper's counts."""
        return {
            "boundary": ratio(self.published_boundary, self.false_count),
            "type": ratio(self.published_type, self.false_count),
        }

    @property
    def errors(self) -> list[Match]:
        """All matches that are not correct."""
        return [match for match in self.matches if match.outcome != "correct"]

    @property
    def has_scores(self) -> bool:
        """Whether any prediction has a score."""
        return any(match.predicted and match.predicted.score is not None for match in self.matches)

    def most_confident(self, limit: int = MAX_LISTED) -> list[Match]:
        """Return the wrong predictions with the highest scores; empty if the predictions have no scores."""
        scored = [
            (-mention.score, match)
            for match in self.errors
            if (mention := match.predicted) is not None and mention.score is not None
        ]
        return [match for _, match in sorted(scored, key=lambda row: row[0])[:limit]]

    def most_frequent(self, limit: int = MAX_LISTED) -> list[FrequentError]:
        """Return the errors that occur most often with the same types and texts."""
        groups: dict[tuple[object, ...], list[Match]] = {}
        for match in self.errors:
            names = ((mention.type, mention.text) if mention else None for mention in (match.gold, match.predicted))
            groups.setdefault((match.outcome, *names), []).append(match)
        largest = sorted(groups.values(), key=lambda group: -len(group))[:limit]
        return [FrequentError(group[0].outcome, len(group), group[0]) for group in largest]

    def to_json(self) -> dict[str, Any]:
        """Return the numbers and the two lists, without the ``matches``."""
        return {
            **self.score.to_json(),
            "counts": dict(self.counts),
            "rates": dict(self.rates),
            "published_rates": dict(self.published_rates),
            "confusion": self.confusion.to_json(),
            "has_scores": self.has_scores,
            "most_confident": [match.to_json() for match in self.most_confident()],
            "most_frequent": [error.to_json() for error in self.most_frequent()],
        }


def analyze_errors(gold: Iterable[Sentence], predicted: SystemOutput) -> ErrorAnalysis:
    """Match predicted entities with gold entities and classify the errors; sentences are paired by ``pair``.

    >>> from spanwise.core.types import Entity
    >>> words = ("Oslo", "and", "New", "York")
    >>> gold = Sentence("s1", words, (Entity("Place", ((0, 1),)), Entity("Place", ((2, 4),))))
    >>> predicted = Sentence("s1", words, (Entity("Team", ((0, 1),)), Entity("Place", ((3, 4),)), Entity("Food", ((1, 2),))))
    >>> {outcome: count for outcome, count in analyze_errors([gold], [predicted]).counts.items() if count}
    {'type': 1, 'boundary': 1, 'spurious': 1}
    """
    gold = list(gold)
    pairing = pair(gold, predicted)
    matches: list[Match] = []
    confusion = Confusion()
    support = predictions = correct = boundary_errors = type_errors = 0
    for sentence_pair, indices in zip(pairing.pairs, gold_indices(gold, pairing), strict=True):
        gold_items, predicted_items = entity_items(sentence_pair.gold), entity_items(sentence_pair.predicted)
        support += len(gold_items)
        predictions += len(predicted_items)
        correct += len(gold_items & predicted_items)
        boundary, type = _published_counts(gold_items, predicted_items)
        boundary_errors += boundary
        type_errors += type
        confusion.add(gold_items, predicted_items)
        matches += match_entities(sentence_pair, indices)
    return ErrorAnalysis(tuple(matches), Score(support, predictions, correct), confusion, boundary_errors, type_errors)


def _published_counts(gold: set[EntityItem], predicted: set[EntityItem]) -> tuple[int, int]:
    """Count boundary errors and type errors as the paper defines them."""
    gold_words = {word for item in gold for word in words_of(item)}
    gold_fragments = {fragments for _, fragments in gold}
    wrong = predicted - gold
    types = sum(fragments in gold_fragments for _, fragments in wrong)
    return sum(not gold_words.isdisjoint(words_of(item)) for item in wrong) - types, types
