"""JSON of SpERT: tokens, entities as half-open word ranges, and relations between entity indices.

``[{"tokens": […], "entities": [{"type": "X", "start": 2, "end": 5}], "relations": [{"type": "R", "head": 0, "tail": 1}],
"orig_id": 83}]``, as an array or one record per line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NotRequired

from pydantic import ConfigDict, TypeAdapter
from typing_extensions import TypedDict

from spanwise.core.types import Entity, Sentence, Span
from spanwise.formats.base import Format, Ledger, fill_empty_words
from spanwise.formats.shared.records import (
    Id,
    RelationRecord,
    StrictFloat,
    StrictInt,
    add_extra,
    id_or_default,
    json_id,
    read_records,
    read_relations,
    score_field,
    unknown_keys,
    write_json_array,
    write_relations,
)
from spanwise.formats.shared.restriction import restrict
from spanwise.formats.shared.sample import Sample


class _Entity(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow", defer_build=True)  # type: ignore[misc]
    type: str
    start: StrictInt
    end: StrictInt
    score: NotRequired[StrictFloat | None]


class _Record(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow", defer_build=True)  # type: ignore[misc]
    tokens: list[str]
    entities: list[_Entity]
    relations: NotRequired[list[RelationRecord] | None]
    orig_id: NotRequired[Id | None]


_SHAPE: TypeAdapter[_Record] = TypeAdapter(_Record)
_KEYS = frozenset(_Record.__annotations__)
_ENTITY_KEYS = frozenset(_Entity.__annotations__)
_SUPPORTS = frozenset(("nested", "crossing", "several types", "relations"))


def read(path: Path, ledger: Ledger, /) -> Iterator[Sentence]:
    return read_records(path, _SHAPE, lambda record, default_id: _to_sentence(record, default_id, ledger))


def _to_sentence(record: dict[str, Any], default_id: str, ledger: Ledger) -> Sentence:
    entities = tuple(
        Entity(item["type"], (Span(item["start"], item["end"]),), item.get("score"), unknown_keys(item, _ENTITY_KEYS))
        for item in record["entities"]
    )
    return Sentence(
        id=id_or_default(record.get("orig_id"), default_id),
        words=fill_empty_words(record["tokens"], ledger),
        entities=entities,
        relations=read_relations(record),
        extra=unknown_keys(record, _KEYS),
    )


def write(sentences: Iterable[Sentence], path: Path, ledger: Ledger, /) -> None:
    write_json_array((_to_record(restrict(sentence, _SUPPORTS, ledger), ledger) for sentence in sentences), path)


def _to_record(sentence: Sentence, ledger: Ledger) -> dict[str, Any]:
    entities = [
        add_extra({"type": e.type, **e.range._asdict(), **score_field(e.score)}, e.extra, _ENTITY_KEYS, ledger)
        for e in sentence.entities
    ]
    record = {
        "tokens": list(sentence.words),
        "entities": entities,
        "relations": write_relations(sentence, ledger),
        "orig_id": json_id(sentence.id),
    }
    return add_extra(record, sentence.extra, _KEYS, ledger)


def sniff(sample: Sample) -> bool:
    entities = sample.list_items("entities")
    return (
        sample.all_have("tokens", "entities")
        and not any("spans" in record for record in sample.dicts)
        and all(isinstance(e, dict) and e.keys() >= {"type", "start", "end"} for e in entities)
        and all(isinstance(token, str) for token in sample.list_items("tokens"))
    )


FORMAT = Format(
    name="spert",
    summary="JSON of SpERT: tokens, entities (start, exclusive end), relations",
    read=read,
    write=write,
    sniff=sniff,
    extensions=(".json",),
    supports=_SUPPORTS,
    metadata=frozenset(("ids", "scores", "relation scores", "keys", "entity keys", "relation keys")),
)
