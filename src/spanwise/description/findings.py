"""Findings about a corpus as sentences, most important first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING

from spanwise.core.counting import counted, join_names
from spanwise.description.boundaries import VERDICTS
from spanwise.description.duplicates import MAX_EXAMPLES, Example
from spanwise.description.issues import KINDS, Issue, format_issue
from spanwise.description.labels import LabelDifferences

if TYPE_CHECKING:
    from spanwise.description.describe import Description


@dataclass
class Finding:
    """A sentence about the corpus, with examples."""

    message: str
    examples: list[Example] = field(default_factory=list)


def findings(description: Description) -> list[Finding]:
    """Return the findings about a corpus; none if there are no problems."""
    issues = description.issues
    return [
        *_ends(issues),
        *_unlabelled(description),
        *_shared(description),
        *_conflicts(description),
        *_unseen("entity", description.entity_types),
        *_unseen("relation", description.relation_types),
        *_of_kind(issues, "look alike"),
        *_of_kind(issues, "never seen"),
        *(finding for kind in KINDS for finding in _summed_over_splits(kind, description)),
        *_duplicates(description),
        *_missing("entity", description.entity_types),
        *_missing("relation", description.relation_types),
        *_of_kind(issues, "seen once"),
    ]


def _ends(issues: list[Issue]) -> Iterator[Finding]:
    for verdict, message in VERDICTS.items():
        matching = [issue for issue in issues if issue.kind == f"ends too {verdict}"]
        if matching:
            splits = ", ".join(issue.split or "" for issue in matching)
            yield Finding(f"{splits}: {message}", _examples(matching))


def _of_kind(issues: list[Issue], kind: str) -> Iterator[Finding]:
    return (Finding(issue.message, issue.examples) for issue in issues if kind in issue.kind)


def _unlabelled(description: Description) -> Iterator[Finding]:
    splits = description.splits
    has_relations = any(counts.relation_types for counts in splits.values())
    for name, counts in splits.items():
        if not counts.sentences:
            yield Finding(f"{name} has no sentences")
        elif not counts.entities:
            yield Finding(f"{name} has no entities")
        elif has_relations and not counts.relation_types:
            yield Finding(f"{name} has no relations, but another split has some")


def _shared(description: Description) -> Iterator[Finding]:
    for name, count in description.also_in_train.items():
        if count:
            total = description.splits[name].sentences
            verb = "is" if count == 1 else "are"
            yield Finding(f"{count:,} of the {total:,} sentences of {name} ({count / total:.1%}) {verb} also in train")
    shared = zip(combinations(description.splits, 2), description.shared.values(), strict=True)
    others = [f"{a} and {b} {count:,}" for (a, b), count in shared if count and "train" not in (a, b)]
    if others:
        yield Finding(f"splits share sentences: {join_names(others, MAX_EXAMPLES)}")


def _conflicts(description: Description) -> Iterator[Finding]:
    conflicts = description.conflicts
    if conflicts.sequences:
        pairs = (f"{a} and {b}" for a, b in combinations(description.splits, 2))
        counts = {f"within {name}": count for name, count in conflicts.within.items()}
        counts |= dict(zip(pairs, conflicts.across.values(), strict=True))
        subject = "sentence occurs" if conflicts.sequences == 1 else "sentences occur"
        yield Finding(
            f"{conflicts.sequences:,} {subject} several times with different labels{_per_split(counts)}", conflicts.examples
        )


def _unseen(kind: str, compare_labels: LabelDifferences) -> Iterator[Finding]:
    for split, names in compare_labels.unseen_in_train.items():
        listed = join_names(names, MAX_EXAMPLES)
        yield Finding(f"{split} has {counted(len(names), f'{kind} type')} that train does not have: {listed}")


def _missing(kind: str, compare_labels: LabelDifferences) -> Iterator[Finding]:
    for split, names in compare_labels.missing.items():
        if split != "train":  # types that train lacks are reported by _unseen
            listed = join_names(names, MAX_EXAMPLES)
            yield Finding(f"{split} lacks {counted(len(names), f'{kind} type')} that another split has: {listed}")


def _summed_over_splits(kind: str, description: Description) -> Iterator[Finding]:
    matching = [issue for issue in description.issues if issue.kind == kind]
    if matching:
        counts = {issue.split or "": issue.count for issue in matching}
        details = _per_split(counts) if len(description.splits) > 1 else ""
        yield Finding(f"{format_issue(kind, sum(counts.values()))}{details}", _examples(matching))


def _examples(issues: list[Issue]) -> list[Example]:
    return [example for issue in issues for example in issue.examples]


def _duplicates(description: Description) -> Iterator[Finding]:
    counts = {name: split.duplicate_sentences for name, split in description.splits.items()}
    total = sum(counts.values())
    if total:
        details = _per_split(counts) if len(counts) > 1 else ""
        subject = (
            "sentence repeats an earlier one of its split" if total == 1 else "sentences repeat an earlier one of their split"
        )
        yield Finding(f"{total:,} {subject}{details}")


def _per_split(counts: Mapping[str, int]) -> str:
    return f" ({', '.join(f'{name} {count:,}' for name, count in counts.items() if count)})"
