"""CMeEE's JSON: characters, entities with inclusive ends and their text.

``[{"text": "头痛三天", "entities": [{"start_idx": 0, "end_idx": 1, "type": "sym", "entity": "头痛"}]}]``. In some copies the
ends are exclusive: the text of each entity tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NotRequired

from pydantic import ConfigDict, TypeAdapter
from typing_extensions import TypedDict

from spanwise.core.types import Entity, Sentence, Span
from spanwise.formats.base import Format, Ledger
from spanwise.formats.shared.characters import mention, of_characters, to_characters
from spanwise.formats.shared.fitting import fitted
from spanwise.formats.shared.records import (
    Id,
    Number,
    Whole,
    id_value,
    own_id,
    read_records,
    rest,
    scored,
    with_rest,
    write_array,
)
from spanwise.formats.shared.sample import Sample


class _Entity(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
    start_idx: Whole
    end_idx: Whole
    type: str
    entity: str
    score: NotRequired[Number | None]


class _Record(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
    text: str
    entities: NotRequired[list[_Entity] | None]
    id: NotRequired[Id | None]


_SHAPE: TypeAdapter[_Record] = TypeAdapter(_Record)
_KEYS = frozenset(_Record.__annotations__)
_ENTITY_KEYS = frozenset(_Entity.__annotations__)
_HOLDS = frozenset(("nested", "crossing", "several types"))


def read(path: Path, ledger: Ledger, /) -> Iterator[Sentence]:
    def build(record: dict[str, Any], default_id: str) -> Sentence:
        items = record.get("entities")
        ledger.note("records without entities, not annotated", int(items is None))
        entities = [_entity(record["text"], item, ledger) for item in items or ()]
        return of_characters(own_id(record.get("id"), default_id), record["text"], entities, rest(record, _KEYS))

    return read_records(path, _SHAPE, build)


def _entity(text: str, item: dict[str, Any], ledger: Ledger) -> Entity:
    start, last, said = item["start_idx"], item["end_idx"], item["entity"]
    # Its length alone tells which end is meant.
    end = last if len(said) == last - start else last + 1
    found = mention(text, start, end)
    if found != said:
        raise ValueError(f"{item['type']} {said!r} is said to stand at [{start}, {last}], where the text has {found!r}")
    ledger.note("entities whose end is exclusive", int(end == last))
    return Entity(item["type"], (Span(start, end),), item.get("score"), rest(item, _ENTITY_KEYS))


def write(sentences: Iterable[Sentence], path: Path, ledger: Ledger, /) -> None:
    write_array((_record(fitted(to_characters(s, ledger), _HOLDS, ledger), ledger) for s in sentences), path)


def _record(sentence: Sentence, ledger: Ledger) -> dict[str, Any]:
    entities = []
    for entity in sentence.entities:
        start, end = entity.range
        item = {"start_idx": start, "end_idx": end - 1, "type": entity.type, "entity": sentence.text[start:end]}
        entities.append(with_rest(item | scored(entity.score), entity.extra, _ENTITY_KEYS, ledger))
    record = {"id": id_value(sentence.id), "text": sentence.text, "entities": entities}
    return with_rest(record, sentence.extra, _KEYS, ledger)


def sniff(sample: Sample) -> bool:
    entities = sample.items("entities")
    return (
        sample.have("text")
        and bool(entities)
        and all(isinstance(item, dict) and item.keys() >= {"start_idx", "end_idx"} for item in entities)
    )


FORMAT = Format(
    name="cmeee",
    summary="CMeEE's JSON: characters, entities with start_idx and end_idx (inclusive)",
    read=read,
    write=write,
    sniff=sniff,
    extensions=(".json",),
    holds=_HOLDS,
    keeps=frozenset(("ids", "scores", "keys", "entity keys")),
)
