"""TablERT's JSON: tokens with BILOU tags, relations between the entities by their numbers in the order of the text.

``[{"tokens": […], "tags": ["B-X", "L-X", "O"], "relations": [{"type": "R", "head": 0, "tail": 1}], "orig_id": 83}]``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NotRequired

from pydantic import ConfigDict, TypeAdapter
from typing_extensions import TypedDict

from spanwise.core import tags
from spanwise.core.types import Sentence
from spanwise.formats.base import Format, Ledger
from spanwise.formats.shared.fitting import fitted
from spanwise.formats.shared.records import (
    Id,
    RelationRecord,
    id_value,
    own_id,
    read_records,
    read_relations,
    rest,
    with_rest,
    write_array,
    write_relations,
)
from spanwise.formats.shared.sample import Sample


class _Record(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
    tokens: list[str]
    tags: list[str]
    relations: NotRequired[list[RelationRecord] | None]
    orig_id: NotRequired[Id | None]


_SHAPE: TypeAdapter[_Record] = TypeAdapter(_Record)
_KEYS = frozenset(_Record.__annotations__)
_HOLDS = frozenset(("relations",))


def read(path: Path, ledger: Ledger, /) -> Iterator[Sentence]:
    def build(record: dict[str, Any], default_id: str) -> Sentence:
        if len(record["tags"]) != len(record["tokens"]):
            raise ValueError(f"{len(record['tags'])} tags for {len(record['tokens'])} tokens")
        entities, repairs = tags.decode(record["tags"])
        ledger.note(tags.REPAIRED, repairs)
        return Sentence(
            id=own_id(record.get("orig_id"), default_id),
            words=tuple(record["tokens"]),
            entities=tuple(entities),
            relations=read_relations(record),
            extra=rest(record, _KEYS),
        )

    return read_records(path, _SHAPE, build)


def write(sentences: Iterable[Sentence], path: Path, ledger: Ledger, /) -> None:
    write_array((_record(fitted(sentence, _HOLDS, ledger), ledger) for sentence in sentences), path)


def _record(sentence: Sentence, ledger: Ledger) -> dict[str, Any]:
    record = {
        "tokens": list(sentence.words),
        "tags": tags.encode(sentence.entities, len(sentence.words), "bilou"),
        "relations": write_relations(sentence, ledger),
        "orig_id": id_value(sentence.id),
    }
    return with_rest(record, sentence.extra, _KEYS, ledger)


def sniff(sample: Sample) -> bool:
    found = sample.items("tags")
    return sample.have("tokens", "tags", "relations") and all(isinstance(tag, str) and tags.is_tag(tag) for tag in found)


FORMAT = Format(
    name="tablert",
    summary="TablERT's JSON: tokens, BILOU tags, relations between the entities in order",
    read=read,
    write=write,
    sniff=sniff,
    extensions=(".json",),
    holds=_HOLDS,
    keeps=frozenset(("ids", "relation scores", "keys", "relation keys")),
)
