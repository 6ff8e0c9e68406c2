"""What deserves attention, in plain sentences, the most important first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING

from spanwise.description.ends import VERDICTS
from spanwise.description.labels import Inventory, listed
from spanwise.description.overlap import Example
from spanwise.description.suspicions import KINDS, Suspicion, format_suspicion

if TYPE_CHECKING:
    from spanwise.description.describe import Description


@dataclass
class Finding:
    """A sentence, and places to look at."""

    message: str
    examples: list[Example] = field(default_factory=list)


def findings(description: Description) -> list[Finding]:
    """All there is to say of a corpus, nothing when all is well."""
    suspicious = description.suspicious
    return [
        *_ends(suspicious),
        *_unlabelled(description),
        *_shared(description),
        *_conflicts(description),
        *_unseen("entity", description.entity_types),
        *_unseen("relation", description.relation_types),
        *_as_they_are(suspicious, "look alike"),
        *(finding for kind in KINDS for finding in _over_splits(kind, description)),
        *_repeated(description),
        *_missing("entity", description.entity_types),
        *_missing("relation", description.relation_types),
        *_as_they_are(suspicious, "seen once"),
    ]


def _ends(suspicious: list[Suspicion]) -> Iterator[Finding]:
    for verdict, message in VERDICTS.items():
        found = [suspicion for suspicion in suspicious if suspicion.kind == f"ends too {verdict}"]
        if found:
            splits = ", ".join(suspicion.split or "" for suspicion in found)
            yield Finding(f"{splits}: {message}", _gathered(found))


def _as_they_are(suspicious: list[Suspicion], kind: str) -> Iterator[Finding]:
    return (Finding(suspicion.message, suspicion.examples) for suspicion in suspicious if kind in suspicion.kind)


def _unlabelled(description: Description) -> Iterator[Finding]:
    splits = description.splits
    some_relations = any(counts.relation_types for counts in splits.values())
    for name, counts in splits.items():
        if not counts.sentences:
            yield Finding(f"{name} has no sentences")
        elif not counts.entities:
            yield Finding(f"{name} has no entities")
        elif some_relations and not counts.relation_types:
            yield Finding(f"{name} has no relations, though another split has")


def _shared(description: Description) -> Iterator[Finding]:
    for name, count in description.also_in_train.items():
        if count:
            total = description.splits[name].sentences
            occur = "occurs" if count == 1 else "occur"
            yield Finding(
                f"{count:,} of the {total:,} sentences of {name} ({count / total:.1%}) {occur} word for word in train"
            )
    shared = zip(combinations(description.splits, 2), description.shared.values(), strict=True)
    others = [f"{a} and {b} {count:,}" for (a, b), count in shared if count and "train" not in (a, b)]
    if others:
        yield Finding(f"splits share sentences: {listed(others)}")


def _conflicts(description: Description) -> Iterator[Finding]:
    conflicts = description.conflicts
    if conflicts.sequences:
        pairs = (f"{a} and {b}" for a, b in combinations(description.splits, 2))
        places = {f"within {name}": count for name, count in conflicts.within.items()}
        places |= dict(zip(pairs, conflicts.across.values(), strict=True))
        what = "sentence occurs" if conflicts.sequences == 1 else "sentences occur"
        yield Finding(
            f"{conflicts.sequences:,} {what} several times with different labels{_places(places)}", conflicts.examples
        )


def _unseen(kind: str, inventory: Inventory) -> Iterator[Finding]:
    for split, names in inventory.unseen_in_train.items():
        yield Finding(f"{split} has {_counted(len(names), f'{kind} type')} that train has not: {listed(names)}")


def _missing(kind: str, inventory: Inventory) -> Iterator[Finding]:
    for split, names in inventory.missing.items():
        if split != "train":  # what train lacks has been said above
            yield Finding(f"{split} lacks {_counted(len(names), f'{kind} type')} that another split has: {listed(names)}")


def _over_splits(kind: str, description: Description) -> Iterator[Finding]:
    found = [suspicion for suspicion in description.suspicious if suspicion.kind == kind]
    if found:
        counts = {suspicion.split or "": suspicion.count for suspicion in found}
        places = _places(counts) if len(description.splits) > 1 else ""
        yield Finding(f"{format_suspicion(kind, sum(counts.values()))}{places}", _gathered(found))


def _gathered(found: list[Suspicion]) -> list[Example]:
    return [example for suspicion in found for example in suspicion.examples]


def _repeated(description: Description) -> Iterator[Finding]:
    counts = {name: split.duplicate_sentences for name, split in description.splits.items()}
    total = sum(counts.values())
    if total:
        places = _places(counts) if len(counts) > 1 else ""
        what = (
            "sentence repeats an earlier one of its split" if total == 1 else "sentences repeat an earlier one of their split"
        )
        yield Finding(f"{total:,} {what}{places}")


def _places(counts: Mapping[str, int]) -> str:
    return f" ({', '.join(f'{name} {count:,}' for name, count in counts.items() if count)})"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
