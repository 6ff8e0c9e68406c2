"""The interchange format: one sentence a line, half-open word ranges, unknown keys kept.

``{"id": "s1", "tokens": […], "entities": [{"type": "X", "spans": [[2, 5]]}], "relations": [{"type": "R", "head": 0,
"tail": 1}]}``. Optional: ``text`` (when it is not the tokens joined by single spaces), ``starts`` (where each token begins in
the text, when looking from left to right would find another place), ``pos``, ``document``, ``position``, ``start``,
``links`` (relations to a sentence at another ``position`` of the document), ``score`` on entities and relations.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NotRequired

from pydantic import ConfigDict, TypeAdapter
from typing_extensions import TypedDict

from spanwise.errors import FormatError
from spanwise.formats.base import Format, Ledger, one_of
from spanwise.formats.files import checked, lines, parse_json, writing
from spanwise.formats.sample import Sample
from spanwise.types import Entity, Extra, Link, Relation, Sentence, Span, find_words


class _Entity(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
    type: str
    spans: list[tuple[int, int]]
    score: NotRequired[float | None]


class _Relation(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
    type: str
    head: int
    tail: int
    score: NotRequired[float | None]


class _Link(_Relation):
    position: int


class _Record(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
    tokens: list[str]
    id: NotRequired[str | int | None]
    text: NotRequired[str | None]
    starts: NotRequired[list[int] | None]
    entities: NotRequired[list[_Entity] | None]
    relations: NotRequired[list[_Relation] | None]
    links: NotRequired[list[_Link] | None]
    pos: NotRequired[list[str] | None]
    document: NotRequired[str | int | None]
    position: NotRequired[int | None]
    start: NotRequired[int | None]


_SHAPE: TypeAdapter[_Record] = TypeAdapter(_Record)
_ENTITY_KEYS = frozenset(("type", "spans", "score"))
_RELATION_KEYS = frozenset(("type", "head", "tail", "score", "position"))
_KEYS = frozenset(_Record.__annotations__)


def read(path: Path, ledger: Ledger, /, *, ends: str = "exclusive") -> Iterator[Sentence]:
    """``ends="inclusive"`` reads files whose ranges name their last word."""
    extend = ends == "inclusive"
    for number, line in lines(path):
        if not line.strip():
            continue
        record = checked(_SHAPE, parse_json(line, path, number), path, number)
        try:
            sentence = _sentence(record, f"{path.stem}-{number}", extend)
        except ValueError as error:
            hint = "" if extend or "half-open" not in str(error) else "; are these ends inclusive (jsonl:ends=inclusive)?"
            raise FormatError(path, number, f"{error}{hint}") from None
        yield sentence


def _sentence(record: dict[str, Any], default_id: str, extend: bool) -> Sentence:
    entities = []
    for item in record.get("entities") or ():
        spans = tuple(Span(a, b + extend) for a, b in item["spans"])
        entities.append(Entity(item["type"], spans, item.get("score"), _rest(item, _ENTITY_KEYS)))
    relations = [
        Relation(r["type"], r["head"], r["tail"], r.get("score"), _rest(r, _RELATION_KEYS))
        for r in record.get("relations") or ()
    ]
    links = [
        Link(link["type"], link["head"], link["position"], link["tail"], _rest(link, _RELATION_KEYS))
        for link in record.get("links") or ()
    ]
    name, pos, document = record.get("id"), record.get("pos"), record.get("document")
    return Sentence(
        id=default_id if name is None else str(name),
        words=tuple(record["tokens"]),
        entities=tuple(entities),
        relations=tuple(relations),
        links=tuple(links),
        text=record.get("text") or "",
        starts=tuple(record.get("starts") or ()),
        pos=None if pos is None else tuple(pos),
        document=None if document is None else str(document),
        position=record.get("position"),
        start=record.get("start"),
        extra=_rest(record, _KEYS),
    )


def _rest(item: dict[str, Any], known: frozenset[str]) -> Extra | None:
    return None if item.keys() <= known else {key: value for key, value in item.items() if key not in known}


def write(sentences: Iterable[Sentence], path: Path, ledger: Ledger, /) -> None:
    with writing(path) as file:
        for sentence in sentences:
            file.write(json.dumps(to_record(sentence), ensure_ascii=False))
            file.write("\n")


def to_record(sentence: Sentence) -> dict[str, Any]:
    """The sentence as a JSON object of the interchange format.

    >>> to_record(Sentence("s1", ("Oslo", "."), entities=(Entity("Place", ((0, 1),)),)))
    {'id': 's1', 'tokens': ['Oslo', '.'], 'entities': [{'type': 'Place', 'spans': [[0, 1]]}]}
    """
    record: dict[str, Any] = {"id": sentence.id}
    for key in ("document", "position", "start"):
        if (value := getattr(sentence, key)) is not None:
            record[key] = value
    record["tokens"] = list(sentence.words)
    if sentence.text != " ".join(sentence.words):
        record["text"] = sentence.text
        if find_words(sentence.words, sentence.text) != sentence.starts:
            record["starts"] = list(sentence.starts)
    if sentence.pos is not None:
        record["pos"] = list(sentence.pos)
    record["entities"] = [
        {**(e.extra or {}), "type": e.type, "spans": [list(f) for f in e.fragments], **_scored(e.score)}
        for e in sentence.entities
    ]
    if sentence.relations:
        record["relations"] = [
            {**(r.extra or {}), "type": r.type, "head": r.head, "tail": r.tail, **_scored(r.score)} for r in sentence.relations
        ]
    if sentence.links:
        record["links"] = [
            {**(k.extra or {}), "type": k.type, "head": k.head, "position": k.position, "tail": k.tail} for k in sentence.links
        ]
    return {**(sentence.extra or {}), **record} if sentence.extra else record


def _scored(score: float | None) -> dict[str, float]:
    return {} if score is None else {"score": score}


def sniff(sample: Sample) -> bool:
    if not sample.have("tokens") or sample.text.lstrip().startswith("["):
        return False
    if not all(isinstance(token, str) for token in sample.items("tokens")):
        return False  # Prodigy's
    entities = sample.items("entities")
    return all(isinstance(e, dict) and "spans" in e and "type" in e for e in entities) and not any(
        key in record for record in sample.dicts for key in ("spans", "tags", "ner_tags", "ner")
    )


FORMAT = Format(
    name="jsonl",
    summary="the interchange format of Spanwise: one sentence a line, word ranges",
    read=read,
    write=write,
    sniff=sniff,
    extensions=(".jsonl",),
    holds=frozenset(("nested", "crossing", "discontinuous", "several types", "relations", "links")),
    read_options={"ends": one_of("exclusive", "inclusive")},
)
