"""Annotations: spans, entities, relations within a sentence and links between sentences.

Frozen values, validated on construction. Spans are half-open and count words: ``Span(2, 5)`` covers
the words 2, 3 and 4.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Extra = Mapping[str, Any]
_LARGEST = sys.float_info.max


class Span(NamedTuple):
    """A half-open range of words (or of characters, where noted).
    >>> Span(2, 5).width
    3
    >>> Span(2, 5).contains(Span(3, 5)), Span(2, 5).crosses(Span(4, 7))
    (True, True)
    """

    start: int
    end: int

    @property
    def width(self) -> int:
        return self.end - self.start

    def contains(self, other: Span) -> bool:
        """Return True if the other span is inside or equal to this one."""
        return self.start <= other.start and other.end <= self.end

    def overlaps(self, other: Span) -> bool:
        return self.start < other.end and other.start < self.end

    def crosses(self, other: Span) -> bool:
        """Return True if the two overlap and neither contains the other."""
        return self.overlaps(other) and not self.contains(other) and not other.contains(self)


def _check(kind: str, type_: object, score: object, *indices: object) -> None:
    """Check that the type is a name, the score a finite number, and that indices are integers."""
    if not isinstance(type_, str) or not type_:
        raise ValueError(f"{kind}'s type must be a non-empty string, not {type_!r}")
    if score is not None and not (
        type(score) is not bool and isinstance(score, int | float) and -_LARGEST <= score <= _LARGEST
    ):
        raise ValueError(f"{kind}'s score must be a finite number, not {score!r:.60}")
    for index in indices:
        if type(index) is not int or index < 0:
            raise ValueError(f"{kind}'s indices of entities and sentences must be integers from 0, not {index!r:.60}")


def _span(fragment: Any) -> Span:
    try:
        return Span(*fragment)
    except TypeError:
        raise ValueError(f"{fragment!r:.60} is not a half-open range of words; expected a start and an end") from None


@dataclass(frozen=True, slots=True)
class Entity:
    """A typed mention of one fragment, or of several if it is discontinuous.

    Fragments must be in order and must not overlap. Adjacent fragments are joined, because they cover
    the same words as one fragment. Two entities are equal if type and fragments are equal. ``score``
    (any finite number) and ``extra`` (additional data of a format, such as brat's notes) are not compared.

    >>> Entity("Disease", ((3, 4), (6, 7))).is_discontinuous
    True
    >>> Entity("Disease", ((3, 4), (4, 7))).fragments
    (Span(start=3, end=7),)
    """

    type: str
    fragments: tuple[Span, ...]
    score: float | None = field(default=None, compare=False)
    extra: Extra | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        _check("an entity", self.type, self.score)
        fragments = tuple(fragment if type(fragment) is Span else _span(fragment) for fragment in self.fragments)
        if not fragments:
            raise ValueError(f"an entity of type {self.type!r} has no fragments")
        last_end = -1
        has_adjacent = False
        for start, end in fragments:
            if type(start) is not int or type(end) is not int:
                raise ValueError(f"[{start!r:.30}, {end!r:.30}] is not a half-open range of words; expected integers")
            if start < 0 or end <= start:
                raise ValueError(f"[{start}, {end}] is not a half-open range of words; expected 0 <= start < end")
            if start < last_end:
                raise ValueError(f"the fragments {[list(f) for f in fragments]} overlap or are out of order")
            has_adjacent = has_adjacent or start == last_end
            last_end = end
        object.__setattr__(self, "fragments", _join_adjacent(fragments) if has_adjacent else fragments)

    @property
    def range(self) -> Span:
        """The span from the first word of the first fragment to the last word of the last."""
        return Span(self.fragments[0].start, self.fragments[-1].end)

    @property
    def word_indices(self) -> tuple[int, ...]:
        """The indices of its words, in order, without the words between fragments.

        >>> Entity("Disease", ((3, 4), (6, 8))).word_indices
        (3, 6, 7)
        """
        return word_indices_in(self.fragments)

    @property
    def is_discontinuous(self) -> bool:
        return len(self.fragments) > 1


_SET_TYPE, _SET_FRAGMENTS, _SET_SCORE, _SET_EXTRA = (
    getattr(Entity, name).__set__ for name in ("type", "fragments", "score", "extra")
)  # several times as fast as the checks and assignments of a frozen dataclass


def trusted_entity(type: str, fragments: tuple[Span, ...], score: float | None, extra: Extra | None = None) -> Entity:
    """Return an entity. Nothing is checked: this is for predictions, of which there are many.

    >>> trusted_entity("Disease", (Span(3, 5),), 0.5) == Entity("Disease", ((3, 5),), 0.5)
    True
    """
    entity = object.__new__(Entity)
    _SET_TYPE(entity, type)
    _SET_FRAGMENTS(entity, fragments)
    _SET_SCORE(entity, score)
    _SET_EXTRA(entity, extra)
    return entity


def word_indices_in(fragments: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    """Return all indices in some half-open ranges."""
    return tuple(index for start, end in fragments for index in range(start, end))


def _join_adjacent(fragments: tuple[Span, ...]) -> tuple[Span, ...]:
    joined = [fragments[0]]
    for fragment in fragments[1:]:
        if fragment.start == joined[-1].end:
            joined[-1] = Span(joined[-1].start, fragment.end)
        else:
            joined.append(fragment)
    return tuple(joined)


@dataclass(frozen=True, slots=True)
class Relation:
    """A typed, directed pair of entities of one sentence, given by their indices in ``Sentence.entities``."""

    type: str
    head: int
    tail: int
    score: float | None = field(default=None, compare=False)
    extra: Extra | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        _check("a relation", self.type, self.score, self.head, self.tail)


@dataclass(frozen=True, slots=True)
class Link:
    """A relation between two sentences of a document.

    The tail is entity ``tail`` of the sentence at ``position`` in the document. The sentence of the
    head stores the link, so a stream of sentences contains all relations of a document.
    """

    type: str
    head: int
    position: int
    tail: int
    score: float | None = field(default=None, compare=False)
    extra: Extra | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        _check("a relation", self.type, self.score, self.head, self.tail, self.position)
