"""SpERT's JSON: tokens, entities as half-open word ranges, relations between entities by their numbers.

``[{"tokens": […], "entities": [{"type": "X", "start": 2, "end": 5}], "relations": [{"type": "R", "head": 0, "tail": 1}],
"orig_id": 83}]``, as an array or one record a line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NotRequired

from pydantic import ConfigDict, TypeAdapter
from typing_extensions import TypedDict

from spanwise.core.types import Entity, Sentence, Span
from spanwise.formats.base import Format, Ledger
from spanwise.formats.shared.fitting import fitted
from spanwise.formats.shared.records import (
    Id,
    Number,
    RelationRecord,
    Whole,
    id_value,
    own_id,
    read_records,
    read_relations,
    rest,
    scored,
    with_rest,
    write_array,
    write_relations,
)
from spanwise.formats.shared.sample import Sample


class _Entity(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
    type: str
    start: Whole
    end: Whole
    score: NotRequired[Number | None]


class _Record(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
    tokens: list[str]
    entities: list[_Entity]
    relations: NotRequired[list[RelationRecord] | None]
    orig_id: NotRequired[Id | None]


_SHAPE: TypeAdapter[_Record] = TypeAdapter(_Record)
_KEYS = frozenset(_Record.__annotations__)
_ENTITY_KEYS = frozenset(_Entity.__annotations__)
_HOLDS = frozenset(("nested", "crossing", "several types", "relations"))


def read(path: Path, ledger: Ledger, /) -> Iterator[Sentence]:
    return read_records(path, _SHAPE, _sentence)


def _sentence(record: dict[str, Any], default_id: str) -> Sentence:
    entities = tuple(
        Entity(item["type"], (Span(item["start"], item["end"]),), item.get("score"), rest(item, _ENTITY_KEYS))
        for item in record["entities"]
    )
    return Sentence(
        id=own_id(record.get("orig_id"), default_id),
        words=tuple(record["tokens"]),
        entities=entities,
        relations=read_relations(record),
        extra=rest(record, _KEYS),
    )


def write(sentences: Iterable[Sentence], path: Path, ledger: Ledger, /) -> None:
    write_array((_record(fitted(sentence, _HOLDS, ledger), ledger) for sentence in sentences), path)


def _record(sentence: Sentence, ledger: Ledger) -> dict[str, Any]:
    entities = [
        with_rest({"type": e.type, **e.range._asdict(), **scored(e.score)}, e.extra, _ENTITY_KEYS, ledger)
        for e in sentence.entities
    ]
    record = {
        "tokens": list(sentence.words),
        "entities": entities,
        "relations": write_relations(sentence, ledger),
        "orig_id": id_value(sentence.id),
    }
    return with_rest(record, sentence.extra, _KEYS, ledger)


def sniff(sample: Sample) -> bool:
    entities = sample.items("entities")
    return (
        sample.have("tokens", "entities")
        and not any("spans" in record for record in sample.dicts)
        and all(isinstance(e, dict) and e.keys() >= {"type", "start", "end"} for e in entities)
        and all(isinstance(token, str) for token in sample.items("tokens"))
    )


FORMAT = Format(
    name="spert",
    summary="SpERT's JSON: tokens, entities (start, end exclusive), relations between them",
    read=read,
    write=write,
    sniff=sniff,
    extensions=(".json",),
    holds=_HOLDS,
    keeps=frozenset(("ids", "scores", "relation scores", "keys", "entity keys", "relation keys")),
)
