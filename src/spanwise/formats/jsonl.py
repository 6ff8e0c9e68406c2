"""The interchange format: one sentence a line, half-open word ranges, unknown keys kept.

``{"id": "s1", "tokens": […], "entities": [{"type": "X", "spans": [[2, 5]]}], "relations": [{"type": "R", "head": 0,
"tail": 1}]}``. Optional: ``text`` (when it is not the tokens joined by single spaces), ``starts`` (where each token begins in
the text, when looking from left to right would find another place), ``pos``, ``document``, ``position``, ``start``,
``links`` (relations to a sentence at another ``position`` of the document), ``score`` on entities, relations and links.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NotRequired

from pydantic import ConfigDict, TypeAdapter
from typing_extensions import TypedDict

from spanwise.core.errors import FormatError
from spanwise.core.types import Entity, Link, Sentence, Span
from spanwise.core.word_starts import find_words, joined_starts
from spanwise.files.names import default_id
from spanwise.files.reading import json_records, validate_record
from spanwise.formats.base import EVERYTHING, Format, Ledger, one_of
from spanwise.formats.shared.records import (
    RELATION_KEYS,
    Id,
    Number,
    RelationRecord,
    Whole,
    own_id,
    read_relations,
    rest,
    scored,
    with_rest,
    write_lines,
    write_relations,
)
from spanwise.formats.shared.sample import Sample


class _Entity(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
    type: str
    spans: list[tuple[Whole, Whole]]
    score: NotRequired[Number | None]


class _Link(RelationRecord):
    position: Whole


class _Record(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
    tokens: list[str]
    id: NotRequired[Id | None]
    text: NotRequired[str | None]
    starts: NotRequired[list[Whole] | None]
    entities: NotRequired[list[_Entity] | None]
    relations: NotRequired[list[RelationRecord] | None]
    links: NotRequired[list[_Link] | None]
    pos: NotRequired[list[str] | None]
    document: NotRequired[Id | None]
    position: NotRequired[Whole | None]
    start: NotRequired[Whole | None]


_SHAPE: TypeAdapter[_Record] = TypeAdapter(_Record)
_KEYS = frozenset(_Record.__annotations__)
_ENTITY_KEYS = frozenset(_Entity.__annotations__)
_LINK_KEYS = frozenset(_Link.__annotations__) | RELATION_KEYS


def read(path: Path, ledger: Ledger, /, *, ends: str = "exclusive") -> Iterator[Sentence]:
    """``ends="inclusive"`` reads files whose ranges name their last word."""
    extend = ends == "inclusive"
    for count, (number, raw) in enumerate(json_records(path)):
        record = validate_record(_SHAPE, raw, path, number)
        try:
            sentence = _sentence(record, default_id(path, count), extend)
        except ValueError as error:
            hint = "" if extend or "half-open" not in str(error) else "; are these ends inclusive (jsonl:ends=inclusive)?"
            raise FormatError(path, number, f"{error}{hint}") from None
        yield sentence


def _sentence(record: dict[str, Any], default_id: str, extend: bool) -> Sentence:
    entities = []
    for item in record.get("entities") or ():
        spans = tuple(Span(a, b + extend) for a, b in item["spans"])
        entities.append(Entity(item["type"], spans, item.get("score"), rest(item, _ENTITY_KEYS)))
    links = [
        Link(k["type"], k["head"], k["position"], k["tail"], k.get("score"), rest(k, _LINK_KEYS))
        for k in record.get("links") or ()
    ]
    pos, document = record.get("pos"), record.get("document")
    return Sentence(
        id=own_id(record.get("id"), default_id),
        words=tuple(record["tokens"]),
        entities=tuple(entities),
        relations=read_relations(record),
        links=tuple(links),
        text=record.get("text") or "",
        starts=tuple(record.get("starts") or ()),
        pos=None if pos is None else tuple(pos),
        document=None if document is None else str(document),
        position=record.get("position"),
        start=record.get("start"),
        extra=rest(record, _KEYS),
    )


def write(sentences: Iterable[Sentence], path: Path, ledger: Ledger, /) -> None:
    write_lines((to_record(sentence, ledger) for sentence in sentences), path)


def to_record(sentence: Sentence, ledger: Ledger | None = None) -> dict[str, Any]:
    """The sentence as a JSON object of the interchange format; what is kept besides may not have one of its own keys.

    >>> to_record(Sentence("s1", ("Oslo", "."), entities=(Entity("Place", ((0, 1),)),)))
    {'id': 's1', 'tokens': ['Oslo', '.'], 'entities': [{'type': 'Place', 'spans': [[0, 1]]}]}
    """
    ledger = Ledger() if ledger is None else ledger
    record: dict[str, Any] = {"id": sentence.id}
    for key in ("document", "position", "start"):
        if (value := getattr(sentence, key)) is not None:
            record[key] = value
    record["tokens"] = list(sentence.words)
    if sentence.text != " ".join(sentence.words) or sentence.starts != joined_starts(sentence.words):
        record["text"] = sentence.text
        if find_words(sentence.words, sentence.text) != sentence.starts:
            record["starts"] = list(sentence.starts)
    if sentence.pos is not None:
        record["pos"] = list(sentence.pos)
    record["entities"] = [
        with_rest({"type": e.type, "spans": [list(f) for f in e.fragments], **scored(e.score)}, e.extra, _ENTITY_KEYS, ledger)
        for e in sentence.entities
    ]
    if sentence.relations:
        record["relations"] = write_relations(sentence, ledger)
    if sentence.links:
        record["links"] = [
            with_rest(
                {"type": k.type, "head": k.head, "position": k.position, "tail": k.tail, **scored(k.score)},
                k.extra,
                _LINK_KEYS,
                ledger,
            )
            for k in sentence.links
        ]
    return with_rest(record, sentence.extra, _KEYS, ledger)


def sniff(sample: Sample) -> bool:
    if not sample.have("tokens"):
        return False
    if not all(isinstance(token, str) for token in sample.items("tokens")):
        return False  # Prodigy's
    if not all(isinstance(e, dict) and "spans" in e and "type" in e for e in sample.items("entities")):
        return False
    if sample.have("orig_id") and not sample.have("id") and not sample.items("entities"):
        return False  # SpERT's, of sentences without entities
    others = ("spans", "tags", "ner_tags", "ner")  # where a file of another format has what we have under "entities"
    return sample.have("entities") or not any(key in record for record in sample.dicts for key in others)


FORMAT = Format(
    name="jsonl",
    summary="the interchange format of Spanwise: one sentence a line, word ranges",
    read=read,
    write=write,
    sniff=sniff,
    extensions=(".jsonl",),
    holds=frozenset(("nested", "crossing", "discontinuous", "several types", "relations", "links")),
    keeps=EVERYTHING,
    read_options={"ends": one_of("exclusive", "inclusive")},
)
