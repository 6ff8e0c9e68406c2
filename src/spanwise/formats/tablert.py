"""JSON of TablERT: tokens with BILOU tags, and relations between entity indices in text order.

``[{"tokens": […], "tags": ["B-X", "L-X", "O"], "relations": [{"type": "R", "head": 0, "tail": 1}], "orig_id": 83}]``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NotRequired

from pydantic import ConfigDict, TypeAdapter
from typing_extensions import TypedDict

from spanwise.core import tags
from spanwise.core.counting import counted
from spanwise.core.types import Sentence
from spanwise.formats.base import Format, Ledger, fill_empty_words
from spanwise.formats.shared.records import (
    Id,
    RelationRecord,
    add_extra,
    id_or_default,
    json_id,
    read_records,
    read_relations,
    unknown_keys,
    write_json_array,
    write_relations,
)
from spanwise.formats.shared.restriction import restrict
from spanwise.formats.shared.sample import Sample


class _Record(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow", defer_build=True)  # type: ignore[misc]
    tokens: list[str]
    tags: list[str]
    relations: NotRequired[list[RelationRecord] | None]
    orig_id: NotRequired[Id | None]


_SHAPE: TypeAdapter[_Record] = TypeAdapter(_Record)
_KEYS = frozenset(_Record.__annotations__)
_SUPPORTS = frozenset(("relations",))


def read(path: Path, ledger: Ledger, /) -> Iterator[Sentence]:
    def build(record: dict[str, Any], default_id: str) -> Sentence:
        if len(record["tags"]) != len(record["tokens"]):
            raise ValueError(f"{counted(len(record['tags']), 'tag')} for {counted(len(record['tokens']), 'token')}")
        entities, repairs = tags.decode(record["tags"])
        ledger.note(tags.REPAIRED, repairs)
        return Sentence(
            id=id_or_default(record.get("orig_id"), default_id),
            words=fill_empty_words(record["tokens"], ledger),
            entities=tuple(entities),
            relations=read_relations(record),
            extra=unknown_keys(record, _KEYS),
        )

    return read_records(path, _SHAPE, build)


def write(sentences: Iterable[Sentence], path: Path, ledger: Ledger, /) -> None:
    write_json_array((_to_record(restrict(sentence, _SUPPORTS, ledger), ledger) for sentence in sentences), path)


def _to_record(sentence: Sentence, ledger: Ledger) -> dict[str, Any]:
    record = {
        "tokens": list(sentence.words),
        "tags": tags.encode(sentence.entities, len(sentence.words), "bilou"),
        "relations": write_relations(sentence, ledger),
        "orig_id": json_id(sentence.id),
    }
    return add_extra(record, sentence.extra, _KEYS, ledger)


def sniff(sample: Sample) -> bool:
    values = sample.list_items("tags")
    return sample.all_have("tokens", "tags", "relations") and all(isinstance(tag, str) and tags.is_tag(tag) for tag in values)


FORMAT = Format(
    name="tablert",
    summary="JSON of TablERT: tokens, BILOU tags, relations between entities in text order",
    read=read,
    write=write,
    sniff=sniff,
    extensions=(".json",),
    supports=_SUPPORTS,
    metadata=frozenset(("ids", "relation scores", "keys", "relation keys")),
)
