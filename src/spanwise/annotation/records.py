"""Predictions as plain records, with characters of the text instead of words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NotRequired, TypeAlias, TypedDict

from spanwise.core.types import Sentence

ENTITIES, RELATIONS = "entities", "relations"  # names of the added columns
Row: TypeAlias = dict[str, Any]


class FragmentRecord(TypedDict):
    start: int
    end: int


class EntityRecord(TypedDict):
    """An entity of a text. ``start`` and ``end`` are characters, from the first fragment to the last."""

    type: str
    text: str
    score: float | None
    start: int
    end: int
    fragments: list[FragmentRecord]


class RelationRecord(TypedDict):
    """A relation between two entities of a text, given by their indices in its list of entities."""

    type: str
    head: int
    tail: int
    score: float | None


@dataclass(slots=True)
class Annotation:
    """The predictions of one text, or the reason why there are none (``error``)."""

    entities: list[EntityRecord] = field(default_factory=list)
    relations: list[RelationRecord] = field(default_factory=list)
    words: int = 0
    error: str | None = None

    def add(self, sentence: Sentence) -> None:
        """Add the predictions of the next sentence of the text.

        >>> from spanwise.core.types import Entity
        >>> annotation = Annotation()
        >>> annotation.add(Sentence("s", ("in", "Oslo"), (Entity("Place", ((1, 2),), 0.9),), start=10, document="d"))
        >>> annotation.entities[0]["text"], annotation.entities[0]["start"]
        ('Oslo', 13)
        """
        self.words += len(sentence.words)
        if not sentence.entities:
            return
        count, offset = len(self.entities), sentence.start or 0
        text, words, starts = sentence.text, sentence.words, sentence.starts
        for entity in sentence.entities:
            ranges = [(starts[first], starts[last - 1] + len(words[last - 1])) for first, last in entity.fragments]
            self.entities.append(
                {
                    "type": entity.type,
                    "text": " ".join([text[start:end] for start, end in ranges]),
                    "score": entity.score,
                    "start": offset + ranges[0][0],
                    "end": offset + ranges[-1][1],
                    "fragments": [{"start": offset + start, "end": offset + end} for start, end in ranges],
                }
            )
        for relation in sentence.relations:
            self.relations.append(
                {
                    "type": relation.type,
                    "head": count + relation.head,
                    "tail": count + relation.tail,
                    "score": relation.score,
                }
            )


class Columns(TypedDict):
    """The columns that annotation adds to a table."""

    entities: list[list[EntityRecord] | None]
    relations: NotRequired[list[list[RelationRecord] | None]]
    error: NotRequired[list[str | None]]


def to_columns(annotations: Iterable[Annotation], *, with_relations: bool, with_errors: bool) -> Columns:
    """Return the added columns of some rows; entities and relations of failed rows are None."""
    annotations = list(annotations)
    columns: Columns = {"entities": [None if a.error else a.entities for a in annotations]}
    if with_relations:
        columns["relations"] = [None if a.error else a.relations for a in annotations]
    if with_errors:
        columns["error"] = [a.error for a in annotations]
    return columns
