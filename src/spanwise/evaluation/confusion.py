"""Which types are taken for which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from typing import Any

from spanwise.core.types import Span
from spanwise.evaluation.scores import EntityItem


@dataclass
class Confusion:
    """Gold types against predicted types of entities with the same fragments.

    ``missed`` are gold entities with no partner among the predictions, ``spurious`` predicted ones with none in gold; wrong
    boundaries make one of each. An entity has one partner at most, one of its own type where there is one, so that a row with
    its ``missed`` sums to the type's support and a column with its ``spurious`` to what was predicted of it. Where the same
    words have several wrong types, they are paired in alphabetical order.

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
        rest, wrong = _types_by_fragments(gold - predicted), _types_by_fragments(predicted - gold)
        for fragments, types in rest.items():
            partners = wrong.get(fragments, [])
            self.counts.update(zip(types, partners, strict=False))
            self.missed.update(types[len(partners) :])
        for fragments, types in wrong.items():
            self.spurious.update(types[len(rest.get(fragments, [])) :])

    @property
    def mistakes(self) -> list[tuple[str, str, int]]:
        """Gold type, predicted type and how often the one was taken for the other, the commonest first."""
        wrong = [(gold, found, count) for (gold, found), count in self.counts.items() if gold != found]
        return sorted(wrong, key=lambda mistake: (-mistake[2], mistake[:2]))

    def to_json(self) -> dict[str, Any]:
        counts: dict[str, dict[str, int]] = {}
        for (gold, found), count in sorted(self.counts.items()):
            counts.setdefault(gold, {})[found] = count
        return {"counts": counts, "missed": dict(sorted(self.missed.items())), "spurious": dict(sorted(self.spurious.items()))}


def _types_by_fragments(items: Iterable[EntityItem]) -> dict[tuple[Span, ...], list[str]]:
    found: dict[tuple[Span, ...], list[str]] = {}
    for type, fragments in sorted(items):
        found.setdefault(fragments, []).append(type)
    return found
