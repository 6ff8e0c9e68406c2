"""The words everything else is written in: spans, entities, relations, sentences, corpora.

Plain frozen data, checked when made. Ranges are half-open and count words: ``Span(2, 5)`` is the words 2, 3 and 4.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from spanwise.core.word_starts import find_words, joined_starts

Extra = Mapping[str, Any]
_LARGEST = sys.float_info.max


class Span(NamedTuple):
    """A half-open range.

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
        """True when the other range lies inside this one (equal ranges included)."""
        return self.start <= other.start and other.end <= self.end

    def overlaps(self, other: Span) -> bool:
        return self.start < other.end and other.start < self.end

    def crosses(self, other: Span) -> bool:
        """True when the two overlap and neither contains the other."""
        return self.overlaps(other) and not self.contains(other) and not other.contains(self)


def _check(kind: str, type_: object, score: object, *numbers: object) -> None:
    """What holds of entities and relations alike: a name, a score that is a number, whole numbers for places."""
    if not isinstance(type_, str) or not type_:
        raise ValueError(f"{kind}'s type must be a non-empty string, not {type_!r}")
    if score is not None and not (
        type(score) is not bool and isinstance(score, int | float) and -_LARGEST <= score <= _LARGEST
    ):
        raise ValueError(f"{kind}'s score must be a finite number, not {score!r:.60}")
    for number in numbers:
        if type(number) is not int or number < 0:
            raise ValueError(f"{kind} names entities and sentences by whole numbers from 0, not by {number!r:.60}")


def _span(fragment: Any) -> Span:
    try:
        return Span(*fragment)
    except TypeError:
        raise ValueError(f"{fragment!r:.60} is not a half-open range of words: expected a start and an end") from None


@dataclass(frozen=True, slots=True)
class Entity:
    """A typed mention of one or more fragments (several for a discontinuous entity).

    Fragments are in order and do not overlap; fragments that touch are joined, for they name the same words.
    Two entities are equal when type and fragments are: ``score`` (any finite number) and ``extra`` (what a format knows
    besides, such as brat's notes) do not count.

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
        last = -1
        touching = False
        for start, end in fragments:
            if type(start) is not int or type(end) is not int:
                raise ValueError(f"[{start!r:.30}, {end!r:.30}] is not a half-open range of words: expected whole numbers")
            if start < 0 or end <= start:
                raise ValueError(f"[{start}, {end}] is not a half-open range of words: the end must exceed the start")
            if start < last:
                raise ValueError(f"the fragments {[list(f) for f in fragments]} overlap or are out of order")
            touching = touching or start == last
            last = end
        object.__setattr__(self, "fragments", _joined(fragments) if touching else fragments)

    @property
    def range(self) -> Span:
        """From the first word of the first fragment to the last word of the last."""
        return Span(self.fragments[0].start, self.fragments[-1].end)

    @property
    def places(self) -> tuple[int, ...]:
        """The numbers of its words, in order; those between its fragments are not its own.

        >>> Entity("Disease", ((3, 4), (6, 8))).places
        (3, 6, 7)
        """
        return places_in(self.fragments)

    @property
    def is_discontinuous(self) -> bool:
        return len(self.fragments) > 1


def places_in(fragments: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    """All numbers in some half-open ranges."""
    return tuple(place for start, end in fragments for place in range(start, end))


def _joined(fragments: tuple[Span, ...]) -> tuple[Span, ...]:
    joined = [fragments[0]]
    for fragment in fragments[1:]:
        if fragment.start == joined[-1].end:
            joined[-1] = Span(joined[-1].start, fragment.end)
        else:
            joined.append(fragment)
    return tuple(joined)


@dataclass(frozen=True, slots=True)
class Relation:
    """A typed, directed pair of entities of one sentence, named by their places in ``Sentence.entities``."""

    type: str
    head: int
    tail: int
    score: float | None = field(default=None, compare=False)
    extra: Extra | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        _check("a relation", self.type, self.score, self.head, self.tail)


@dataclass(frozen=True, slots=True)
class Link:
    """A relation that leaves its sentence: the tail is entity ``tail`` of the sentence at ``position`` of the document.

    It is kept on the sentence of its head, so a stream of sentences loses nothing of a document.
    """

    type: str
    head: int
    position: int
    tail: int
    score: float | None = field(default=None, compare=False)
    extra: Extra | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        _check("a relation", self.type, self.score, self.head, self.tail, self.position)


@dataclass(frozen=True, slots=True)
class Sentence:
    """Words with what is known of them.

    ``text`` is the words joined by single spaces unless given; ``starts`` says where each word begins in it. A sentence cut
    from a longer text keeps the white space behind it in ``text`` and its place in ``document``, ``position`` (its
    number there) and ``start`` (its first character there), so that the document can be put together again exactly.

    >>> s = Sentence("s1", ("Paris", "Hilton"), entities=(Entity("Person", ((0, 2),)), Entity("Place", ((0, 1),))))
    >>> s.text, s.offsets, s.text_of(s.entities[0])
    ('Paris Hilton', (Span(start=0, end=5), Span(start=6, end=12)), 'Paris Hilton')
    """

    id: str
    words: tuple[str, ...]
    entities: tuple[Entity, ...] = ()
    relations: tuple[Relation, ...] = ()
    links: tuple[Link, ...] = ()
    text: str = ""
    starts: tuple[int, ...] = ()
    pos: tuple[str, ...] | None = None
    document: str | None = None
    position: int | None = None
    start: int | None = None
    extra: Extra | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("words", "entities", "relations", "links", "starts", "pos"):
            value = getattr(self, name)
            if type(value) is not tuple and value is not None:
                if isinstance(value, str):
                    raise ValueError(f"{name} must be a sequence, not the string {value!r:.60}")
                object.__setattr__(self, name, tuple(value))
        self._check_names()
        words = self.words
        try:
            joined = " ".join(words)
        except TypeError:
            raise ValueError(f"words must be strings, found {next(w for w in words if not isinstance(w, str))!r:.60}") from None
        if not all(words):
            raise ValueError(f"word {words.index('')} is empty")
        if not self.text:
            object.__setattr__(self, "text", joined)
            object.__setattr__(self, "starts", joined_starts(words))
        elif not self.starts:
            object.__setattr__(self, "starts", find_words(words, self.text))
        else:
            self._check_starts()
        for entity in self.entities:
            if entity.fragments[-1].end > len(words):
                raise ValueError(
                    f"entity {entity.type!r} ends at word {entity.fragments[-1].end}, the sentence has {len(words)} words"
                )
        for relation in self.relations:
            self._check_ends(relation.type, relation.head, relation.tail)
        for link in self.links:
            self._check_ends(link.type, link.head, link.head)
            if self.document is None or self.position is None:
                raise ValueError(f"a link ({link.type!r}) needs a sentence with a document and a position")
        if self.pos is not None:
            if len(self.pos) != len(words):
                raise ValueError(f"{len(self.pos)} part-of-speech tags for {len(words)} words")
            if not all(isinstance(tag, str) for tag in self.pos):
                raise ValueError("part-of-speech tags must be strings")

    def _check_names(self) -> None:
        for name, value in (("id", self.id), ("text", self.text), ("document", self.document or "")):
            if not isinstance(value, str):
                raise ValueError(f"a sentence's {name} must be a string, not {value!r:.60}")
        for name, number in (("position", self.position), ("start", self.start)):
            if number is not None and (type(number) is not int or number < 0):
                raise ValueError(f"a sentence's {name} must be a whole number from 0, not {number!r:.60}")

    def _check_ends(self, kind: str, head: int, tail: int) -> None:
        for number in (head, tail):
            if not 0 <= number < len(self.entities):
                raise ValueError(f"relation {kind!r} names entity {number}, the sentence has {len(self.entities)}")

    def _check_starts(self) -> None:
        if len(self.starts) != len(self.words):
            raise ValueError(f"{len(self.starts)} word starts for {len(self.words)} words")
        last = 0
        for word, start in zip(self.words, self.starts, strict=True):
            if type(start) is not int or start < last or not self.text.startswith(word, start):
                raise ValueError(f"word {word!r} does not stand at character {start} of the text")
            last = start + len(word)

    @property
    def offsets(self) -> tuple[Span, ...]:
        """The characters of each word in ``text``."""
        return tuple(Span(s, s + len(w)) for s, w in zip(self.starts, self.words, strict=True))

    def characters(self, span: Span) -> Span:
        """The characters of a range of words in ``text``; in the document it is of, they begin ``start`` later.

        >>> sentence = Sentence("s", ("Tokyo", "rose"), document="d", start=5)  # of "One. Tokyo rose"
        >>> sentence.characters(Span(1, 2))
        Span(start=6, end=10)
        """
        return Span(self.starts[span.start], self.starts[span.end - 1] + len(self.words[span.end - 1]))

    def text_of(self, entity: Entity) -> str:
        """What the entity says, as it stands in the text; fragments joined by single spaces."""
        return " ".join(self.text[slice(*self.characters(fragment))] for fragment in entity.fragments)

    def words_of(self, entity: Entity) -> tuple[str, ...]:
        return tuple(self.words[place] for place in entity.places)


@dataclass(frozen=True)
class Corpus:
    """Splits by name (``train``, ``dev``, ``test``), each a tuple of sentences.

    >>> corpus = Corpus({"train": (Sentence("s1", ("Hello",)),)})
    >>> len(corpus["train"]), corpus.types
    (1, ())
    """

    splits: Mapping[str, tuple[Sentence, ...]]
    name: str = ""

    def __getitem__(self, split: str) -> tuple[Sentence, ...]:
        return self.splits[split]

    def __contains__(self, split: str) -> bool:
        return split in self.splits

    def __iter__(self) -> Iterator[str]:
        return iter(self.splits)

    @property
    def types(self) -> tuple[str, ...]:
        """The entity types of all splits, sorted."""
        return tuple(sorted({e.type for sentences in self.splits.values() for s in sentences for e in s.entities}))

    @property
    def relation_types(self) -> tuple[str, ...]:
        """The relation types of all splits, sorted."""
        sentences = [s for split in self.splits.values() for s in split]
        return tuple(sorted({r.type for s in sentences for r in s.relations} | {k.type for s in sentences for k in s.links}))
