"""Sentences with their annotations."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from importlib import import_module

from spanwise.core.annotations import Entity, Extra, Link, Relation, Span
from spanwise.core.counting import counted
from spanwise.core.partial import check_annotated
from spanwise.core.word_starts import find_words, joined_starts


@dataclass(frozen=True, slots=True)
class Sentence:
    """The words of a sentence and their annotations.

    ``text`` defaults to the words joined by single spaces; ``starts`` holds the first character of
    each word in it. A sentence of a longer text keeps the white space that follows it in ``text``. Its
    place there is ``document``, ``position`` (its index) and ``start`` (its first character), so the
    document can be restored exactly.

    ``annotated`` marks a partial annotation: ranges of words that were annotated completely, or the
    entity types that were. Other spans or types may be entities without a mark; they count neither
    for nor against a model (``spanwise.core.partial``). An empty tuple: nothing was annotated
    completely. None: everything was.

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
    annotated: tuple[Span, ...] | tuple[str, ...] | None = None
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
            wrong = next(word for word in words if not isinstance(word, str))
            raise ValueError(f"words must be strings, found {wrong!r:.60}") from None
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
                end, length = entity.fragments[-1].end, counted(len(words), "word")
                raise ValueError(f"entity {entity.type!r} ends at word {end}, but the sentence has {length}")
        for relation in self.relations:
            self._check_arguments(relation.type, relation.head, relation.tail)
        for link in self.links:
            self._check_arguments(link.type, link.head, link.head)
            if self.document is None or self.position is None:
                raise ValueError(f"the sentence of a link ({link.type!r}) must have a document and a position")
        if self.pos is not None:
            if len(self.pos) != len(words):
                raise ValueError(f"{counted(len(self.pos), 'part-of-speech tag')} for {counted(len(words), 'word')}")
            if not all(isinstance(tag, str) for tag in self.pos):
                raise ValueError("part-of-speech tags must be strings")
        if self.annotated is not None:
            object.__setattr__(self, "annotated", check_annotated(self.annotated, len(words)))

    def _check_names(self) -> None:
        for name, value in (("id", self.id), ("text", self.text), ("document", self.document or "")):
            if not isinstance(value, str):
                raise ValueError(f"a sentence's {name} must be a string, not {value!r:.60}")
        for name, number in (("position", self.position), ("start", self.start)):
            if number is not None and (type(number) is not int or number < 0):
                raise ValueError(f"a sentence's {name} must be an integer from 0, not {number!r:.60}")

    def _check_arguments(self, relation: str, head: int, tail: int) -> None:
        for index in (head, tail):
            if not 0 <= index < len(self.entities):
                raise ValueError(f"relation {relation!r} refers to entity {index}, but the sentence has {len(self.entities)}")

    def _check_starts(self) -> None:
        if len(self.starts) != len(self.words):
            raise ValueError(f"{counted(len(self.starts), 'word start')} for {counted(len(self.words), 'word')}")
        last_end = 0
        for word, start in zip(self.words, self.starts, strict=True):
            if type(start) is not int or start < last_end or not self.text.startswith(word, start):
                raise ValueError(f"word {word!r} is not at character {start} of the text")
            last_end = start + len(word)

    def with_predictions(self, entities: tuple[Entity, ...], relations: tuple[Relation, ...] = ()) -> Sentence:
        """Return a copy with other entities and relations, without links and without marks of partial annotation.

        Nothing is checked: this is for predictions, which are made from the words of the sentence.

        >>> Sentence("s", ("in", "Oslo")).with_predictions((Entity("Place", ((1, 2),)),)).entities[0].type
        'Place'
        """
        is_same = not (entities or relations or self.entities or self.relations or self.links) and self.annotated is None
        if is_same:
            return self
        copy = object.__new__(Sentence)
        for name in _SLOTS:
            object.__setattr__(copy, name, getattr(self, name))
        object.__setattr__(copy, "entities", entities)
        object.__setattr__(copy, "relations", relations)
        object.__setattr__(copy, "links", ())
        object.__setattr__(copy, "annotated", None)
        return copy

    @property
    def offsets(self) -> tuple[Span, ...]:
        """The characters of each word in ``text``."""
        return tuple(Span(s, s + len(w)) for s, w in zip(self.starts, self.words, strict=True))

    def characters(self, span: Span) -> Span:
        """Return the characters of a span of words in ``text``; add ``start`` for those in the document.
        >>> sentence = Sentence("s", ("Tokyo", "rose"), document="d", start=5)  # of "One. Tokyo rose"
        >>> sentence.characters(Span(1, 2))
        Span(start=6, end=10)
        """
        return Span(self.starts[span.start], self.starts[span.end - 1] + len(self.words[span.end - 1]))

    def text_of(self, entity: Entity) -> str:
        """Return the entity's text, with fragments joined by single spaces."""
        return " ".join(self.text[slice(*self.characters(fragment))] for fragment in entity.fragments)

    def words_of(self, entity: Entity) -> tuple[str, ...]:
        return tuple(self.words[index] for index in entity.word_indices)

    def _repr_html_(self) -> str:
        """Return the sentence with its entities drawn, for notebooks."""
        return _draw([self])


_SLOTS = tuple(item.name for item in fields(Sentence))
_DEFAULTS = {item.name: item.default for item in fields(Sentence) if item.default is not MISSING}


def trusted_sentence(
    id: str, words: tuple[str, ...], text: str, starts: tuple[int, ...], document: str, position: int, start: int
) -> Sentence:
    """Return a sentence of a split text. Nothing is checked, because its words were cut from its text.

    >>> trusted_sentence("s", ("in", "Oslo"), "in Oslo", (0, 3), "d", 0, 0) == Sentence(
    ...     "s", ("in", "Oslo"), text="in Oslo", starts=(0, 3), document="d", position=0, start=0
    ... )
    True
    """
    sentence = object.__new__(Sentence)
    values = {
        **_DEFAULTS, "id": id, "words": words, "text": text, "starts": starts, "document": document, "position": position,
        "start": start,
    }  # fmt: skip
    for name, value in values.items():
        object.__setattr__(sentence, name, value)
    return sentence


class SentenceList(list[Sentence]):
    """A list of sentences that a notebook draws with their entities."""

    def _repr_html_(self) -> str:
        return _draw(self)


def _draw(sentences: list[Sentence]) -> str:
    """Draw sentences as HTML. The subpackage for this is above core, so it is loaded by name and only in notebooks."""
    html: str = import_module("spanwise.drawing.notebook").draw_cell(sentences)
    return html
