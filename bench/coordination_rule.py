"""The rule of ``bench/coordinations.py``: which entities a coordination of terms stands for.

**A shared noun at the end**: ``M1 (, M2)* and M H``, with "and", "or" or "and/or" before the last modifier
``M``, and modifiers ``M1`` of one to four words.

1. ``H`` ends with a *head noun*: a word that is the last one of at least ``MIN_HEAD`` entities of several
   words, and of at least two of them in both numbers ("cell", "cells"), or that ends in RNA or DNA.
2. ``M H`` is a gold entity, the end of a gold entity that contains the coordination or, where no gold
   entity of several words starts after the coordinator, the words up to the next head noun and the
   head nouns after it. In this last case, a gold entity must start with ``M`` somewhere.
3. Each ``M1`` is attested: a gold entity of the type of ``M H`` starts with it and ends with the noun of
   ``H`` at most three words later. It is enough that some gold entity starts with ``M1`` if a gold
   entity contains the coordination, or if nothing is annotated in it, ``H`` is plural and ``M H`` is a
   gold entity elsewhere. The longest such words, or those of a gold entity that ends there, are taken.
4. ``M1`` is not a complete term: its last word is no head noun (unless ``M`` has the same word: "T cell
   and B cell lines") and, if ``H`` is singular, it is no gold entity of the type of ``M H``. A plural is
   shared ("Jurkat and HeLa cells"), a singular need not be ("AP1 and serum response factor").
5. ``M`` has as many words as the last ``M1`` if the two are parallel ("ER-negative and ER-positive breast
   cancer cells", "human and mouse GATA-3 genes"). Else ``H`` is the longest gold entity that ends
   ``M H``; else the longest end of ``M H`` for which some ``M1 H`` is a gold entity elsewhere; else ``M`` is
   the longest gold entity that starts ``M H``; else ``H`` consists of the head nouns that end ``M H``.

**A shared noun at the start**: ``H X (, Y)* and Z``, where ``H X`` is a gold entity, and ``X``, ``Y`` and ``Z`` are
enumerators of the same kind: numbers, Roman numerals, Greek or single capital letters. "spinocerebellar
ataxias 1 and 2" becomes "spinocerebellar ataxias 1" and "spinocerebellar ataxias ... 2".

Annotated are ``M1 ... H`` for each ``M1``, and ``M H``, with the type of ``M H``: its own gold type, or the
most frequent gold type of the same words, or of its head noun. Removed are gold entities that contain
the coordination and end with it, and those of the same type on ``M1`` or ``Z`` alone (on ``M`` alone, if
``M H`` was not annotated); all others stay ("IL-2" in "IL-2 ... genes").
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from coordination_lexicon import COORDINATORS, MAX_MODIFIER, Lexicon, normal, singular

from spanwise.core.types import Entity, Sentence, Span

MAX_TERM = 7  # words of an unannotated M H
STOP = set("""a an the this that these those of in on at to from with by for as is are was were be been not but and or and/or
both either neither nor than into between via using through its their which who also only same other another such two three four
several many various including all each any some more most like when while where whether we our can may did do does has have had
respectively""".split())  # fmt: skip
SPECIES = set("human murine mouse rat bovine porcine simian avian chicken rabbit monkey drosophila xenopus yeast".split())
ENUMERATORS = [
    re.compile(pattern)
    for pattern in (r"-?\d+[a-z]?", r"[ivx]+", r"alpha|beta|gamma|delta|epsilon|zeta|kappa|lambda|theta|eta|mu", r"[a-z]")
]


class Coordination(NamedTuple):
    """The spans of a coordination: each entity that it stands for, and the ones that it replaces."""

    type: str
    terms: tuple[tuple[Span, ...], ...]
    replaced: frozenset[Span]  # by its type only
    whole: Span  # replaced, with any type


class Rule:
    """The rule for one sentence; see the module docstring."""

    def __init__(self, sentence: Sentence, lexicon: Lexicon) -> None:
        self.words, self.lexicon = sentence.words, lexicon
        self.normals = [normal(word) for word in sentence.words]
        self.gold = {(entity.range, entity.type) for entity in sentence.entities if not entity.is_discontinuous}
        self.spans = {span for span, _ in self.gold}

    def coordinations(self) -> Iterator[Coordination]:
        for place, word in enumerate(self.normals):
            if word in COORDINATORS and 0 < place < len(self.words) - 1:
                coordination = self.shared_end(place) or self.shared_start(place)
                if coordination is not None:
                    yield coordination

    def shared_end(self, place: int) -> Coordination | None:
        """``M1 (, M2)* and M H`` with "and" at ``place``."""
        term = self._last_term(place)
        if term is None:
            return None
        container = self._container(place, term)
        noun = singular(self.normals[term.end - 1])
        is_plural = self.normals[term.end - 1] != noun
        type = self._type(term, noun)
        starts: list[Span] = []
        limit, end = (container.start if container else 0), place
        while (modifier := self._modifier(end, limit, term, noun, type, is_plural, container)) is not None:
            starts.insert(0, modifier)
            if modifier.start - 1 <= limit or self.normals[modifier.start - 1] != ",":
                break
            end = modifier.start
        if not starts or (container is not None and starts[0].start != container.start):
            return None
        shared = self._shared(starts, term)
        last = self.words[term.start : shared.start]
        if self.normals[slice(*starts[-1])] == [normal(word) for word in last]:
            return None
        if container is None and term not in self.spans and not self.lexicon.is_modifier(last):
            return None
        terms = tuple((modifier, shared) for modifier in starts)
        replaced = {*starts} if term in self.spans else {*starts, Span(term.start, shared.start)}
        return Coordination(type, (*terms, (term,)), frozenset(replaced), Span(starts[0].start, term.end))

    def shared_start(self, place: int) -> Coordination | None:
        """``H X (, Y)* and Z`` with "and" at ``place``."""
        last, first = place + 1, place - 1
        kind = self._enumerator(last)
        others = [last]
        while self.normals[first] == "," or (first > 1 and self.normals[first - 1] == "," and self._enumerator(first) == kind):
            if self.normals[first] != ",":
                others.append(first)
            first -= 1
            if first < 1:
                return None
        if kind is None or self._enumerator(first) != kind or self.normals[last] == self.normals[first]:
            return None
        named = [(span, type) for span, type in self.gold if span.end in (first + 1, last + 1) and span.start < first]
        if not named or any(span.start <= last < span.end and span.end > last + 1 for span in self.spans):
            return None
        span, type = min(named)
        shared = Span(span.start, first)
        if not shared.width or any(word in STOP or word in "(),;" for word in self.normals[slice(*shared)]):
            return None
        terms = tuple((shared, Span(index, index + 1)) for index in sorted(others))
        replaced = frozenset(Span(index, index + 1) for index in others)
        return Coordination(type, ((Span(span.start, first + 1),), *terms), replaced, Span(span.start, last + 1))

    def _enumerator(self, index: int) -> int | None:
        """Which kind of enumerator a word is."""
        word = self.normals[index]
        if len(word) == 1 and word.isalpha() and not self.words[index][0].isupper():
            return None
        return next((kind for kind, pattern in enumerate(ENUMERATORS) if pattern.fullmatch(word)), None)

    def _last_term(self, place: int) -> Span | None:
        """``M H``, which starts after the coordinator."""
        start = place + 1
        ends = [span.end for span in self.spans if span.start == start]
        containers = [span.end for span in self.spans if span.start < place and span.end > start]
        if any(end - start > 1 for end in ends):
            end = max(ends)
        elif containers:
            end = min(containers)
        else:
            end = start
            while end < min(len(self.words), start + MAX_TERM) and self._is_content(end):
                end += 1
                if end - start > 1 and self.lexicon.is_head(self.words[end - 1]):
                    break
            while end < len(self.words) and not self._ends_clause(end - 1) and self.lexicon.is_head(self.words[end]):
                end += 1
        term = Span(start, end)
        if term.width < 2 or not self.lexicon.is_head(self.words[end - 1]) or not all(map(self._is_content, range(start, end))):
            return None
        return None if any(span.crosses(term) and span.start >= start for span in self.spans) else term

    def _is_content(self, index: int) -> bool:
        word = self.words[index]
        return normal(word) not in STOP and (word[0].isalnum() or word[0] in "-+") and not self._ends_clause(index - 1)

    def _ends_clause(self, index: int) -> bool:
        word = self.words[index]
        return len(word) > 2 and word[-1] in ".,;:" and index != len(self.words) - 1 and self.normals[index] not in COORDINATORS

    def _container(self, place: int, term: Span) -> Span | None:
        """The gold entity that contains the coordination and ends with it."""
        spans = [span for span in self.spans if span.start < place and span.end == term.end]
        return min(spans, key=lambda span: span.width, default=None)

    def _type(self, term: Span, noun: str) -> str:
        gold = sorted(type for span, type in self.gold if span == term)
        if gold:
            return gold[0]
        containers = sorted(type for span, type in self.gold if span.end == term.end and span.start < term.start)
        if containers:
            return containers[0]
        counts = self.lexicon.term_types(self.words[slice(*term)])
        return most_common(counts or self.lexicon.head_types[noun])

    def _modifier(
        self, end: int, limit: int, term: Span, noun: str, type: str, is_plural: bool, container: Span | None
    ) -> Span | None:
        """The modifier that ends before ``end`` or before a comma there."""
        if end > 0 and self.normals[end - 1] == ",":
            end -= 1
        named = [span for span in self.spans if span.end == end and span.width <= MAX_MODIFIER and span.start >= limit]
        starts = [max(named, key=lambda span: span.width).start] if named else range(max(limit, end - MAX_MODIFIER), end)
        is_free = not any(span.start < term.end and span.end > end - 1 for span in self.spans)
        is_known = is_free and is_plural and bool(self.lexicon.term_types(self.words[slice(*term)]))
        for span in (Span(start, end) for start in starts):
            words = self.words[slice(*span)]
            is_complete = not is_plural and (span, type) in self.gold and container is None
            if (
                not is_complete
                and self._can_modify(span, term)
                and (
                    self.lexicon.is_modifier(words, noun, type)
                    or ((container is not None or is_known) and self.lexicon.is_modifier(words))
                )
            ):
                return span
        return None

    def _can_modify(self, span: Span, term: Span) -> bool:
        """Whether the words are a phrase that lacks its noun."""
        words = self.words[slice(*span)]
        if not words or not all(map(self._is_content, range(*span))) or any(map(span.crosses, self.spans)):
            return False
        if span.width == 1 and words[0][0].isdigit() and self._enumerator(span.start) is not None:
            return False
        return not self.lexicon.is_head(words[-1]) or normal(words[-1]) in self.normals[term.start : term.end - 1]

    def _shared(self, starts: Sequence[Span], term: Span) -> Span:
        """``H`` in ``M H``."""
        first, width = starts[-1], starts[-1].width
        if width < term.width - 1 and are_parallel(self.normals[first.end - 1], self.normals[term.start + width - 1]):
            return Span(term.start + width, term.end)
        inner = [span.start for span in self.spans if span.end == term.end and span.start > term.start]
        if inner:
            return Span(min(inner), term.end)
        for begin in range(term.start + 1, term.end):
            if any(self.lexicon.term_types([*self.words[slice(*span)], *self.words[begin : term.end]]) for span in starts):
                return Span(begin, term.end)
        for begin in range(term.end - 1, term.start, -1):
            if Span(term.start, begin) in self.spans or self.lexicon.term_types(self.words[term.start : begin]):
                return Span(begin, term.end)
        begin = term.end - 1
        while begin - 1 > term.start and self.lexicon.is_head(self.words[begin - 1]):
            begin -= 1
        return Span(begin, term.end)


def are_parallel(one: str, other: str) -> bool:
    """Whether two modifiers contrast: two species, or words with three letters in common at their start or end.

    >>> are_parallel("human", "tumor"), are_parallel("human", "mouse"), are_parallel("leukaemic", "non-leukaemic")
    (False, True, True)
    """
    if one in SPECIES and other in SPECIES:
        return True
    size = min(3, len(one) - 1, len(other) - 1)
    return size > 0 and (one[:size] == other[:size] or one[-size:] == other[-size:])


def most_common(counts: Counter[str]) -> str:
    """The most frequent type; the first in the alphabet among equals."""
    return min(counts, key=lambda name: (-counts[name], name))


def annotate(sentence: Sentence, lexicon: Lexicon) -> Sentence:
    """The sentence with the entities of its coordinations."""
    entities = set(sentence.entities)
    for coordination in Rule(sentence, lexicon).coordinations():
        entities = {
            entity
            for entity in entities
            if entity.is_discontinuous
            or not (
                (entity.range.contains(coordination.whole) and entity.range.end == coordination.whole.end)
                or (entity.range in coordination.replaced and entity.type == coordination.type)
            )
        }
        entities |= {Entity(coordination.type, fragments) for fragments in coordination.terms}
    return replace(sentence, entities=tuple(sorted(entities, key=lambda entity: (entity.fragments, entity.type))), relations=())
