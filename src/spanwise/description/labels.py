"""Types per split, and types that may be two spellings of one."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from spanwise.core.counting import join_names
from spanwise.core.errors import did_you_mean
from spanwise.core.partial import known_types
from spanwise.core.types import Link, Relation, Sentence
from spanwise.description.counts import sort_by_count
from spanwise.description.duplicates import MAX_EXAMPLES, Example, make_example
from spanwise.description.issues import Issue

_SEPARATORS = re.compile(r"[\s_./:\\|-]+")


@dataclass(frozen=True)
class LabelDifferences:
    """Differences between the types of the splits; splits without labels are ignored.

    ``unseen_in_train`` lists the types of each other split that a model cannot learn. ``missing`` lists
    the types that a split lacks and other splits have. Splits without such types are not listed.
    """

    unseen_in_train: dict[str, list[str]]
    missing: dict[str, list[str]]

    def to_json(self) -> dict[str, Any]:
        return {"unseen_in_train": self.unseen_in_train, "missing": self.missing}


def compare_labels(splits: Mapping[str, Mapping[str, int]]) -> LabelDifferences:
    """Compare the types of the splits, given with their counts; the most frequent come first.

    >>> compare_labels({"train": {"A": 1, "B": 2}, "test": {"B": 1, "C": 1, "D": 2}})
    LabelDifferences(unseen_in_train={'test': ['D', 'C']}, missing={'train': ['D', 'C'], 'test': ['A']})
    """
    labelled = {split: counts for split, counts in splits.items() if counts}
    total: Counter[str] = Counter()
    for counts in labelled.values():
        total.update(counts)
    missing = {split: [name for name in sort_by_count(total) if name not in counts] for split, counts in labelled.items()}
    unseen: dict[str, list[str]] = {}
    if "train" in labelled:
        for split, counts in labelled.items():
            unseen[split] = [name for name in sort_by_count(counts) if name not in labelled["train"]]
    return LabelDifferences(
        {split: names for split, names in unseen.items() if names},
        {split: names for split, names in missing.items() if names},
    )


def look_alikes(types: Iterable[str]) -> list[list[str]]:
    """Return groups of types that differ only in case, white space or separators.

    >>> look_alikes(["PER", "Per", "cell_line", "cell line", "DNA"])
    [['PER', 'Per'], ['cell line', 'cell_line']]
    """
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for name in sorted(set(types)):
        groups[_SEPARATORS.sub("", name).casefold()].append(name)
    return [group for group in groups.values() if len(group) > 1]


class TypeCounts:
    """Counts of all entity types and relation types of a corpus, with the first example of each.

    ``annotated`` counts the sentences that list a type as annotated, whether they have such entities or not.
    """

    def __init__(self) -> None:
        self.annotated: Counter[str] = Counter()
        self.counts: dict[str, Counter[str]] = {"entity": Counter(), "relation": Counter()}
        self.first: dict[tuple[str, str], Example] = {}

    def add(self, split: str, sentence: Sentence) -> None:
        entities = sentence.entities
        for name in known_types(sentence) or ():
            self.annotated[name] += 1
            self.first.setdefault(("annotated", name), make_example(split, sentence, ""))
        for entity in entities:
            self.counts["entity"][entity.type] += 1
            if ("entity", entity.type) not in self.first:
                self.first["entity", entity.type] = make_example(split, sentence, entity)
        relations: list[Relation | Link] = [*sentence.relations, *sentence.links]
        for relation in relations:
            self.counts["relation"][relation.type] += 1
            if ("relation", relation.type) not in self.first:
                self.first["relation", relation.type] = make_example(split, sentence, entities[relation.head])

    def issues(self) -> Iterator[Issue]:
        """Yield types that look alike, that occur once or never; the example of a relation is its head."""
        for kind, counts in self.counts.items():
            for group in look_alikes(counts):
                names = " and ".join(f"“{name}” ({counts[name]:,})" for name in group)
                message = f"the {kind} types {names} differ only in spelling"
                yield Issue(f"{kind} types that look alike", None, len(group), message, self._examples(kind, group))
        for kind, counts in self.counts.items():
            once = sorted(name for name, count in counts.items() if count == 1)
            if once:
                subject = f"1 {kind} type occurs" if len(once) == 1 else f"{len(once)} {kind} types occur"
                message = f"{subject} only once: {join_names(once, MAX_EXAMPLES)}"
                yield Issue(f"{kind} types seen once", None, len(once), message, self._examples(kind, once))

        if never := sorted(self.annotated.keys() - self.counts["entity"].keys()):
            subject = "1 type is" if len(never) == 1 else f"{len(never)} types are"
            listed = join_names([f"{name}{did_you_mean(name, self.counts['entity'])}" for name in never], MAX_EXAMPLES)
            message = f'{subject} listed in "annotated", but no entity has {"it" if len(never) == 1 else "them"}: {listed}'
            yield Issue("entity types never seen", None, len(never), message, self._examples("annotated", never))

    def _examples(self, kind: str, names: list[str]) -> list[Example]:
        return [{**self.first[kind, name], "type": name} for name in names[:MAX_EXAMPLES]]
