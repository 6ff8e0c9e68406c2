"""Disagreements between gold and the models in one sentence: missing, spurious, wrong type, wrong boundary."""

from __future__ import annotations

from collections.abc import Collection, Container
from dataclasses import dataclass
from typing import TypeAlias

from spanwise.audit.evidence import UNSCORED, SentenceOdds
from spanwise.core.types import Span

KINDS = ("missing", "spurious", "type", "boundary")
MIN_ALTERNATIVE = -1.5  # log-odds from which a span counts as an alternative to gold (a probability of 0.18)

#: An entity as start, end and index of the type.
Key: TypeAlias = tuple[int, int, int]
#: Two types that a span may have together, as indices.
TypePair: TypeAlias = frozenset[int]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A possible error: replace ``gold`` (None: nothing) by ``suggestion`` (None: nothing).

    ``gold_odds`` and ``suggestion_odds`` are the log-odds that the models give to the two; those of
    nothing are 0.
    """

    kind: str
    gold: Key | None
    suggestion: Key | None
    gold_odds: float = 0.0
    suggestion_odds: float = 0.0


def find_candidates(
    gold: Collection[Key], odds: SentenceOdds, *, is_flat: bool, type_pairs: Container[TypePair] = frozenset()
) -> list[Candidate]:  # fmt: skip
    """All disagreements in a sentence.

    An *alternative* is a span and type that gold does not have and that the models find plausible. A gold
    entity that the models rather reject (negative log-odds) is paired with the most plausible alternative
    that shares a word with it and is more plausible than the entity: one with the same words is a *type*
    error, another one a *boundary* error, which keeps the type if that is plausible as well. Without such an
    alternative the entity is *spurious*. All other alternatives are *missing* entities.

    An alternative is dropped if a more plausible gold entity or alternative excludes it: one with the same
    words and another type, and one that crosses it or, if spans do not overlap (``is_flat``), shares a word
    with it. Entities with the same words whose types spans have together (``type_pairs``) neither exclude nor
    replace each other.
    """
    gold_set = set(gold)
    doubtful = sorted((odds.get(key, UNSCORED), key) for key in gold_set if odds.get(key, UNSCORED) < 0)
    alternatives = _plausible(gold_set, odds, is_flat=is_flat, type_pairs=type_pairs)
    candidates = []
    for gold_odds, key in doubtful:
        partners = {
            other: value
            for other, value in alternatives.items()
            if value > gold_odds and overlap(key, other) and not _share_span(key, other, type_pairs)
        }
        if not partners:
            candidates.append(Candidate("spurious", key, None, gold_odds))
            continue
        start, end, label = max(partners, key=lambda other: (other[:2] == key[:2], partners[other], other))
        partner = (start, end, key[2] if (start, end, key[2]) in partners else label)
        value = alternatives.pop(partner)
        kind = "type" if partner[:2] == key[:2] else "boundary"
        candidates.append(Candidate(kind, key, partner, gold_odds, value))
    candidates += [Candidate("missing", None, key, 0.0, value) for key, value in alternatives.items()]
    return candidates


def _plausible(
    gold: Collection[Key], odds: SentenceOdds, *, is_flat: bool, type_pairs: Container[TypePair]
) -> dict[Key, float]:  # fmt: skip
    """The alternatives to gold that no more plausible entity excludes, the most plausible first."""
    ranked = sorted(((-value, key) for key, value in odds.items() if key in gold or value >= MIN_ALTERNATIVE))
    accepted: list[Key] = []
    result = {}
    for negative, key in ranked:
        if any(_excludes(other, key, is_flat=is_flat, type_pairs=type_pairs) for other in accepted):
            continue
        if -negative >= 0 or key not in gold:  # a doubtful gold entity excludes nothing
            accepted.append(key)
        if key not in gold:
            result[key] = -negative
    return result


def _excludes(first: Key, second: Key, *, is_flat: bool, type_pairs: Container[TypePair]) -> bool:
    if _share_span(first, second, type_pairs):
        return False
    one, two = Span(*first[:2]), Span(*second[:2])
    return one.overlaps(two) if is_flat else one == two or one.crosses(two)


def _share_span(first: Key, second: Key, type_pairs: Container[TypePair]) -> bool:
    """Whether two entities have the same words, and types that spans have together."""
    return first[:2] == second[:2] and frozenset((first[2], second[2])) in type_pairs


def overlap(first: Key, second: Key) -> bool:
    """Whether two entities share a word."""
    return first[0] < second[1] and second[0] < first[1]
