"""JSON lines of CLUENER: character offsets with inclusive ends, by type and mention.

``{"text": "去北京", "label": {"address": {"北京": [[1, 2]]}}}``. A record without ``label`` is not annotated.
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
    StrictInt,
    add_extra,
    id_or_default,
    json_id,
    read_records,
    unknown_keys,
    write_json_lines,
)
from spanwise.formats.shared.restriction import restrict
from spanwise.formats.shared.sample import Sample


class _Record(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow", defer_build=True)  # type: ignore[misc]
    text: str
    label: NotRequired[dict[str, dict[str, list[tuple[StrictInt, StrictInt]]]] | None]
    id: NotRequired[Id | None]


_SHAPE: TypeAdapter[_Record] = TypeAdapter(_Record)
_KEYS = frozenset(_Record.__annotations__)
_SUPPORTS = frozenset(("nested", "crossing", "several types"))


def read(path: Path, ledger: Ledger, /) -> Iterator[Sentence]:
    def build(record: dict[str, Any], default_id: str) -> Sentence:
        label = record.get("label")
        ledger.note("records without a label, read without entities", int(label is None))
        entities = [
            _to_entity(record["text"], type, mention, start, last)
            for type, mentions in (label or {}).items()
            for mention, ranges in mentions.items()
            for start, last in ranges
        ]
        # Text order instead of the file's order by type, which is easier to compare with other formats.
        entities.sort(key=lambda entity: entity.range)
        id = id_or_default(record.get("id"), default_id)
        return character_sentence(id, record["text"], entities, unknown_keys(record, _KEYS))

    return read_records(path, _SHAPE, build)


def _to_entity(text: str, type: str, mention: str, start: int, last: int) -> Entity:
    actual = slice_text(text, start, last + 1)
    if actual != mention:
        raise ValueError(f"{type} [{start}, {last}]: expected {mention!r}, found {actual!r} in the text")
    return Entity(type, (Span(start, last + 1),))


def write(sentences: Iterable[Sentence], path: Path, ledger: Ledger, /) -> None:
    write_json_lines((_to_record(restrict(split_characters(s, ledger), _SUPPORTS, ledger), ledger) for s in sentences), path)


def _to_record(sentence: Sentence, ledger: Ledger) -> dict[str, Any]:
    label: dict[str, dict[str, list[list[int]]]] = {}
    for entity in sentence.entities:
        start, end = entity.range
        label.setdefault(entity.type, {}).setdefault(sentence.text[start:end], []).append([start, end - 1])
    record = {"id": json_id(sentence.id), "text": sentence.text, "label": label}
    return add_extra(record, sentence.extra, _KEYS, ledger)


def sniff(sample: Sample) -> bool:
    labels = [record["label"] for record in sample.dicts if "label" in record]
    return sample.all_have("text") and bool(labels) and all(_is_label(label) for label in labels)


def _is_label(label: Any) -> bool:
    return isinstance(label, dict) and all(isinstance(mentions, dict) for mentions in label.values())


FORMAT = Format(
    name="cluener",
    summary="JSON lines of CLUENER: characters, entities by type and mention, inclusive ends",
    read=read,
    write=write,
    sniff=sniff,
    extensions=(".json",),
    supports=_SUPPORTS,
    metadata=frozenset(("ids", "keys")),
)
