"""Discontinuous entities as fragments and links, and back.

A discontinuous entity becomes one span per fragment, and links between every two fragments. Each
link is stored as two spans: from the first word of the earlier fragment to the first word of the
later one, and from last word to last word. Decoding builds a graph with fragments as nodes and
links as edges; its maximal cliques are the entities. A fragment can belong to several entities: in
"left and right knee and hip pain", "pain" is linked with all four words before it, but "left" is
not linked with "right", nor "knee" with "hip". The graph ignores types, because discontinuous
entities are rare and fragments are learned from all of them together. A clique gets the type with
the highest joint probability of its fragments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spanwise.core.types import Entity, Sentence, Span
from spanwise.decoding.cliques import connected_components, maximal_cliques

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
LINK_LABELS = ("first words", "last words")  # the two spans of a link
# Only the most probable fragments are decoded if a model proposes too many:
MAX_FRAGMENTS = 256  # of a sentence; bounds the pairs
MAX_COMPONENT = 24  # of a connected component; bounds the cliques
DIGITS = 5  # of the probabilities compared, so that rounding errors do not decide
MIN_SHARE = 1e-9  # replaces a type share of zero


class PackedSpans(NamedTuple):
    """Scored spans, packed."""

    sentence: Ints
    start: Ints
    end: Ints
    label: Ints
    score: npt.NDArray[np.float32]


def discontinuous_types(sentences: Iterable[Sentence]) -> tuple[str, ...]:
    """Types with discontinuous entities, sorted."""
    return tuple(sorted({entity.type for sentence in sentences for entity in sentence.entities if entity.is_discontinuous}))


def discontinuous_share(sentences: Iterable[Sentence], types: Sequence[str]) -> float:
    """The share of the distinct entities that are discontinuous and of these types.

    >>> sentence = Sentence("s", ("a", "b", "c"), (Entity("X", ((0, 1), (2, 3))), Entity("X", ((1, 2),))))
    >>> discontinuous_share([sentence], ["X"]), discontinuous_share([], ["X"])
    (0.5, 0.0)
    """
    count, total = 0, 0
    for sentence in sentences:
        count += len(discontinuous_entities(sentence, types))
        total += len(set(sentence.entities))
    return count / max(total, 1)


def discontinuous_entities(
    sentence: Sentence, types: Sequence[str], max_width: int | None = None, link_width: int | None = None
) -> list[Entity]:
    """Distinct discontinuous entities of these types, without fragments and links that are too wide."""
    return [
        entity
        for entity in dict.fromkeys(sentence.entities)
        if entity.is_discontinuous
        and entity.type in types
        and (max_width is None or all(fragment.width <= max_width for fragment in entity.fragments))
        and (link_width is None or widest_link(entity) <= link_width)
    ]


def widest_link(entity: Entity) -> int:
    """The width of the widest fragment or span of a link.

    >>> widest_link(Entity("X", ((0, 2), (3, 7))))
    6
    """
    first, last = entity.fragments[0], entity.fragments[-1]
    widths = (fragment.width for fragment in entity.fragments)
    return max(last.start + 1 - first.start, last.end + 1 - first.end, *widths)


def fragment_rows(entities: Iterable[Entity], types: Sequence[str]) -> Ints:
    """Start, end and type index of every distinct fragment: [n, 3].

    >>> fragment_rows([Entity("X", ((0, 1), (3, 4))), Entity("X", ((1, 2), (3, 4)))], ["W", "X"]).tolist()
    [[0, 1, 1], [1, 2, 1], [3, 4, 1]]
    """
    rows = {(*fragment, types.index(entity.type)) for entity in entities for fragment in entity.fragments}
    return np.array(sorted(rows), np.int64).reshape(-1, 3)


def link_rows(entities: Iterable[Entity]) -> Ints:
    """Start, end (exclusive) and index in ``LINK_LABELS`` of every distinct link span: [n, 3].

    >>> link_rows([Entity("X", ((0, 2), (3, 5)))]).tolist()
    [[0, 4, 0], [1, 5, 1]]
    """
    rows = set()
    for entity in entities:
        for one, other in combinations(entity.fragments, 2):
            rows |= {(one.start, other.start + 1, 0), (one.end - 1, other.end, 1)}
    return np.array(sorted(rows), np.int64).reshape(-1, 3)


def join_fragments(fragments: PackedSpans, links: PackedSpans, *, count: int, types: Sequence[str]) -> list[list[Entity]]:
    """Decode fragments and links into the discontinuous entities of ``count`` sentences.

    Fragments have a row per type, whose score is the type's share of the probability that the span
    is a fragment. An entity gets the type with the largest product of its fragments' shares. Its
    score is the lowest of its fragments, its links and its type.

    Two fragments are linked if both spans of the link are present. Overlapping or adjacent
    fragments are never linked, so the entities are valid for all scores.
    """
    link_scores: tuple[dict[tuple[int, int, int], float], ...] = ({}, {})
    for index, start, end, label, score in zip(*(column.tolist() for column in links), strict=True):
        link_scores[label][index, start, end - 1] = score
    type_shares: dict[int, dict[Span, Floats]] = {}
    for index, start, end, label, score in zip(*(column.tolist() for column in fragments), strict=True):
        type_shares.setdefault(index, {}).setdefault(Span(start, end), np.zeros(len(types)))[label] = score
    entities: list[list[Entity]] = [[] for _ in range(count)]
    for index, shares in type_shares.items():
        probabilities = {span: float(values.sum()) for span, values in shares.items()}
        edges = {}
        for one, other in combinations(sorted(_most_probable(shares, probabilities, MAX_FRAGMENTS)), 2):
            if one.end < other.start:
                first = link_scores[0].get((index, one.start, other.start))
                last = link_scores[1].get((index, one.end - 1, other.end - 1))
                if first is not None and last is not None:
                    edges[one, other] = min(first, last)
        components = connected_components(edges)
        nodes = {span for spans in components for span in _most_probable(spans, probabilities, MAX_COMPONENT)}
        for clique in maximal_cliques(edge for edge in edges if nodes.issuperset(edge)):
            log_shares = sum(np.log(np.maximum(shares[span], MIN_SHARE)) for span in clique)
            type_probabilities = np.exp(log_shares - np.logaddexp.reduce(log_shares))
            best = int(type_probabilities.argmax())
            scores = [probabilities[span] for span in clique] + [edges[pair] for pair in combinations(clique, 2)]
            score = round(min(*scores, float(type_probabilities[best]), 1.0), 6)
            entities[index].append(Entity(types[best], clique, score=score))
    return entities


def _most_probable(spans: Iterable[Span], probabilities: Mapping[Span, float], count: int) -> list[Span]:
    return sorted(spans, key=lambda span: (-round(probabilities[span], DIGITS), span))[:count]


def recoverable_entities(entities: Iterable[Entity], types: Sequence[str]) -> set[Entity]:
    """Entities decoded from the gold fragments and links; a clique within a larger one is lost.

    >>> a, b = Entity("X", ((0, 1), (3, 4))), Entity("X", ((0, 1), (3, 4), (6, 7)))
    >>> recoverable_entities([a, b], ["X"]) == {b}
    True
    """
    entities = list(entities)
    fragments, links = (
        PackedSpans(np.zeros(len(rows), np.int64), rows[:, 0], rows[:, 1], rows[:, 2], np.ones(len(rows), np.float32))
        for rows in (fragment_rows(entities, types), link_rows(entities))
    )
    # The types of a fragment share its probability equally.
    _, inverse, counts = np.unique(np.stack(fragments[1:3]), axis=1, return_inverse=True, return_counts=True)
    fragments = fragments._replace(score=(1 / counts[inverse.reshape(-1)]).astype(np.float32))
    return set(join_fragments(fragments, links, count=1, types=types)[0])
