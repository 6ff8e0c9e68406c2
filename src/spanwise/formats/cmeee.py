"""JSON of CMeEE: character offsets with inclusive ends, and the text of each entity.

``[{"text": "头痛三天", "entities": [{"start_idx": 0, "end_idx": 1, "type": "sym", "entity": "头痛"}]}]``.
Ends are exclusive in some copies, as the length of the entity text shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NotRequired

from pydantic import ConfigDict, TypeAdapter
from typing_extensions import TypedDict

from spanwise.core.types import Entity, Sentence, Span
from spanwise.formats.base import Format, Ledger
from spanwise.formats.shared.characters import character_sentence, slice_text, split_characters
from spanwise.formats.shared.records import (
    Id,
    StrictFloat,
    StrictInt,
    add_extra,
    id_or_default,
    json_id,
    read_records,
    score_field,
    unknown_keys,
    write_json_array,
)
from spanwise.formats.shared.restriction import restrict
from spanwise.formats.shared.sample import Sample


class _Entity(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow", defer_build=True)  # type: ignore[misc]
    start_idx: StrictInt
    end_idx: StrictInt
    type: str
    entity: str
    score: NotRequired[StrictFloat | None]


class _Record(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow", defer_build=True)  # type: ignore[misc]
    text: str
    entities: NotRequired[list[_Entity] | None]
    id: NotRequired[Id | None]


_SHAPE: TypeAdapter[_Record] = TypeAdapter(_Record)
_KEYS = frozenset(_Record.__annotations__)
_ENTITY_KEYS = frozenset(_Entity.__annotations__)
_SUPPORTS = frozenset(("nested", "crossing", "several types"))


def read(path: Path, ledger: Ledger, /) -> Iterator[Sentence]:
    def build(record: dict[str, Any], default_id: str) -> Sentence:
        items = record.get("entities")
        ledger.note("records without annotations", int(items is None))
        entities = [_to_entity(record["text"], item, ledger) for item in items or ()]
        id = id_or_default(record.get("id"), default_id)
        return character_sentence(id, record["text"], entities, unknown_keys(record, _KEYS))

    return read_records(path, _SHAPE, build)


def _to_entity(text: str, item: dict[str, Any], ledger: Ledger) -> Entity:
    start, last, expected = item["start_idx"], item["end_idx"], item["entity"]
    end = last if len(expected) == last - start else last + 1
    actual = slice_text(text, start, end)
    if actual != expected:
        raise ValueError(f"{item['type']} [{start}, {last}]: expected {expected!r}, found {actual!r} in the text")
    ledger.note("entities with an exclusive end", int(end == last))
    return Entity(item["type"], (Span(start, end),), item.get("score"), unknown_keys(item, _ENTITY_KEYS))


def write(sentences: Iterable[Sentence], path: Path, ledger: Ledger, /) -> None:
    write_json_array((_to_record(restrict(split_characters(s, ledger), _SUPPORTS, ledger), ledger) for s in sentences), path)


def _to_record(sentence: Sentence, ledger: Ledger) -> dict[str, Any]:
    entities = []
    for entity in sentence.entities:
        start, end = entity.range
        item = {"start_idx": start, "end_idx": end - 1, "type": entity.type, "entity": sentence.text[start:end]}
        entities.append(add_extra(item | score_field(entity.score), entity.extra, _ENTITY_KEYS, ledger))
    record = {"id": json_id(sentence.id), "text": sentence.text, "entities": entities}
    return add_extra(record, sentence.extra, _KEYS, ledger)


def sniff(sample: Sample) -> bool:
    entities = sample.list_items("entities")
    return (
        sample.all_have("text")
        and bool(entities)
        and all(isinstance(item, dict) and item.keys() >= {"start_idx", "end_idx"} for item in entities)
    )


FORMAT = Format(
    name="cmeee",
    summary="JSON of CMeEE: characters, entities with start_idx and end_idx (inclusive)",
    read=read,
    write=write,
    sniff=sniff,
    extensions=(".json",),
    supports=_SUPPORTS,
    metadata=frozenset(("ids", "scores", "keys", "entity keys")),
)
