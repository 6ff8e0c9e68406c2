"""The inventory of labels: which split has which types, and which types are perhaps one type written in two ways."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from spanwise.core.types import Link, Relation, Sentence
from spanwise.description.counts import by_count
from spanwise.description.overlap import EXAMPLES, Example, example
from spanwise.description.suspicions import Suspicion

_SEPARATORS = re.compile(r"[\s_./:\\|-]+")


@dataclass(frozen=True)
class Inventory:
    """How the types of the splits differ. A split without any label has no part in it: it is not labelled.

    ``unseen_in_train`` lists for every other split what a model cannot learn; ``missing`` lists for every split what other
    splits have and it has not. Splits without such types are left out.
    """

    unseen_in_train: dict[str, list[str]]
    missing: dict[str, list[str]]

    def to_json(self) -> dict[str, Any]:
        return {"unseen_in_train": self.unseen_in_train, "missing": self.missing}


def inventory(splits: Mapping[str, Mapping[str, int]]) -> Inventory:
    """Compares the types of the splits, given with their counts; the commonest come first.

    >>> inventory({"train": {"A": 1, "B": 2}, "test": {"B": 1, "C": 1, "D": 2}})
    Inventory(unseen_in_train={'test': ['D', 'C']}, missing={'train': ['D', 'C'], 'test': ['A']})
    """
    labelled = {split: counts for split, counts in splits.items() if counts}
    total: Counter[str] = Counter()
    for counts in labelled.values():
        total.update(counts)
    missing = {split: [name for name in by_count(total) if name not in counts] for split, counts in labelled.items()}
    unseen: dict[str, list[str]] = {}
    if "train" in labelled:
        for split, counts in labelled.items():
            unseen[split] = [name for name in by_count(counts) if name not in labelled["train"]]
    return Inventory(
        {split: names for split, names in unseen.items() if names},
        {split: names for split, names in missing.items() if names},
    )


def look_alikes(types: Iterable[str]) -> list[list[str]]:
    """Groups of types that differ only by case, white space or separators.

    >>> look_alikes(["PER", "Per", "cell_line", "cell line", "DNA"])
    [['PER', 'Per'], ['cell line', 'cell_line']]
    """
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for name in sorted(set(types)):
        groups[_SEPARATORS.sub("", name).casefold()].append(name)
    return [group for group in groups.values() if len(group) > 1]


class Types:
    """All types of a corpus, entities and relations apart, with the place where each was seen first."""

    def __init__(self) -> None:
        self.counts: dict[str, Counter[str]] = {"entity": Counter(), "relation": Counter()}
        self.first: dict[tuple[str, str], Example] = {}

    def add(self, split: str, sentence: Sentence) -> None:
        entities = sentence.entities
        for entity in entities:
            self.counts["entity"][entity.type] += 1
            if ("entity", entity.type) not in self.first:
                self.first["entity", entity.type] = example(split, sentence, entity)
        joins: list[Relation | Link] = [*sentence.relations, *sentence.links]
        for relation in joins:
            self.counts["relation"][relation.type] += 1
            if ("relation", relation.type) not in self.first:
                self.first["relation", relation.type] = example(split, sentence, entities[relation.head])

    def found(self) -> Iterator[Suspicion]:
        """Types that look alike, and types that occur only once; an example of a relation is its head."""
        for kind, counts in self.counts.items():
            for group in look_alikes(counts):
                names = " and ".join(f"“{name}” ({counts[name]:,})" for name in group)
                message = f"the {kind} types {names} differ only in how they are written"
                yield Suspicion(f"{kind} types that look alike", None, len(group), message, self._examples(kind, group))
        for kind, counts in self.counts.items():
            once = sorted(name for name, count in counts.items() if count == 1)
            if once:
                what = f"1 {kind} type occurs" if len(once) == 1 else f"{len(once)} {kind} types occur"
                message = f"{what} only once: {listed(once)}"
                yield Suspicion(f"{kind} types seen once", None, len(once), message, self._examples(kind, once))

    def _examples(self, kind: str, names: list[str]) -> list[Example]:
        return [{**self.first[kind, name], "type": name} for name in names[:EXAMPLES]]


def listed(names: list[str], most: int = EXAMPLES) -> str:
    """Names in a row, the rest counted.

    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    shown, rest = names[:most], len(names) - most
    return ", ".join(shown) + (f" and {rest} more" if rest > 0 else "")
