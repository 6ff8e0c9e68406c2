"""Simulated errors: what a disagreement looks like if gold is wrong.

The models have not seen the sentences that they score. An error in the gold of a sentence would
therefore not change their scores: it can be simulated after training, by changing gold alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from spanwise.audit.candidates import Candidate, Key, overlap
from spanwise.audit.probes import neighbours, random_spans
from spanwise.audit.view import AuditView
from spanwise.core.types import Span

MAX_ERRORS = 4000  # simulated errors of each kind


def simulate_errors(view: AuditView, seed: int) -> Iterator[tuple[int, Candidate]]:
    """Yield the candidates that simulated errors lead to, each with the index of its sentence.

    Each error changes one entity: it is removed (*missing*), gets another type (*type*, drawn by
    frequency), or one of its ends moves by a word (*boundary*). For *spurious*, a random span gets a
    type. An error for which the audit would not find its candidate yields nothing.
    """
    random = Random(seed)
    entities = [(index, key) for index, keys in enumerate(view.gold) for key in keys]
    labels = [label for _, (_, _, label) in entities]
    others = {label: [other for other in labels if other != label] for label in set(labels)}
    spans = [
        (index, span) for index, sentence_spans in enumerate(random_spans(view.sentences, seed)) for span in sentence_spans
    ]
    added: list[tuple[int, Key]] = [(index, (*span, random.choice(labels))) for index, span in spans]
    for kind, pool in (("missing", entities), ("type", entities), ("boundary", entities), ("spurious", added)):
        for index, key in random.sample(pool, min(MAX_ERRORS, len(pool))):
            changed = key if kind == "spurious" else _change(view, kind, index, key, others, random)
            if changed is not None or kind == "missing":
                yield from _find(view, index, None if kind == "spurious" else key, changed)


def _change(
    view: AuditView, kind: str, index: int, key: Key, others: dict[int, list[int]], random: Random
) -> Key | None:  # fmt: skip
    """The entity that replaces ``key``; None if it is removed, or if there is no possible change."""
    start, end, label = key
    if kind == "type":
        return (start, end, random.choice(others[label])) if others[label] else None
    if kind == "boundary":
        moved = neighbours(Span(start, end), len(view.sentences[index].words))
        return (*random.choice(moved), label) if moved else None
    return None


def _find(view: AuditView, index: int, before: Key | None, after: Key | None) -> Iterator[tuple[int, Candidate]]:
    """Replace an entity of gold by another, and yield the candidate that refers to it.

    If spans do not overlap, the new entity must not overlap another span; further types of the same span may stay.
    """
    rest = [key for key in view.gold[index] if key != before]
    other_spans = [key for key in rest if before is None or key[:2] != before[:2]]
    if after is not None and (after in rest or (view.is_flat and any(overlap(after, other) for other in other_spans))):
        return
    for candidate in view.find_candidates(index, [*rest, after] if after is not None else rest):
        if candidate.gold == after if after is not None else candidate.suggestion == before:
            yield index, candidate
            return
