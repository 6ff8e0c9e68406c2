"""Confusion matrix of entity types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from typing import Any

from spanwise.core.types import Span
from spanwise.evaluation.scores import EntityItem


@dataclass
class Confusion:
    """Counts of gold types against predicted types of entities with the same fragments.

    ``missed`` counts gold entities without a matching prediction, ``spurious`` predictions without a
    matching gold entity; a wrong boundary adds one to each. An entity matches at most one other,
    preferably one of the same type. A row plus its ``missed`` therefore sums to the type's support,
    and a column plus its ``spurious`` to the number of predictions. Several wrong types on the same
    words are matched in alphabetical order.

    >>> confusion = Confusion()
    >>> confusion.add({("Place", ((0, 1),)), ("Food", ((3, 4),))}, {("State", ((0, 1),)), ("Food", ((3, 5),))})
    >>> confusion.counts, confusion.missed, confusion.spurious
    (Counter({('Place', 'State'): 1}), Counter({'Food': 1}), Counter({'Food': 1}))
    """

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    spurious: Counter[str] = field(default_factory=Counter)

    def add(self, gold: Set[EntityItem], predicted: Set[EntityItem]) -> None:
        for type, _ in gold & predicted:
            self.counts[type, type] += 1
        missed, wrong = _types_by_fragments(gold - predicted), _types_by_fragments(predicted - gold)
        for fragments, types in missed.items():
            predicted_types = wrong.get(fragments, [])
            self.counts.update(zip(types, predicted_types, strict=False))
            self.missed.update(types[len(predicted_types) :])
        for fragments, types in wrong.items():
            self.spurious.update(types[len(missed.get(fragments, [])) :])

    @property
    def type_errors(self) -> list[tuple[str, str, int]]:
        """Gold type, wrong predicted type and count, the most frequent first."""
        wrong = [(gold, predicted, count) for (gold, predicted), count in self.counts.items() if gold != predicted]
        return sorted(wrong, key=lambda row: (-row[2], row[:2]))

    def to_json(self) -> dict[str, Any]:
        counts: dict[str, dict[str, int]] = {}
        for (gold, predicted), count in sorted(self.counts.items()):
            counts.setdefault(gold, {})[predicted] = count
        return {"counts": counts, "missed": dict(sorted(self.missed.items())), "spurious": dict(sorted(self.spurious.items()))}


def _types_by_fragments(items: Iterable[EntityItem]) -> dict[tuple[Span, ...], list[str]]:
    types: dict[tuple[Span, ...], list[str]] = {}
    for type, fragments in sorted(items):
        types.setdefault(fragments, []).append(type)
    return types
