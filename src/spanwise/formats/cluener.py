"""CLUENER's JSON lines: characters, entities by type and mention with inclusive ends.

``{"text": "去北京", "label": {"address": {"北京": [[1, 2]]}}}``; a record without ``label`` is not annotated.
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
from spanwise.formats.shared.records import Id, Whole, id_value, own_id, read_records, rest, with_rest, write_lines
from spanwise.formats.shared.sample import Sample


class _Record(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
    text: str
    label: NotRequired[dict[str, dict[str, list[tuple[Whole, Whole]]]] | None]
    id: NotRequired[Id | None]


_SHAPE: TypeAdapter[_Record] = TypeAdapter(_Record)
_KEYS = frozenset(_Record.__annotations__)
_HOLDS = frozenset(("nested", "crossing", "several types"))


def read(path: Path, ledger: Ledger, /) -> Iterator[Sentence]:
    def build(record: dict[str, Any], default_id: str) -> Sentence:
        label = record.get("label")
        ledger.note("records without a label, read as sentences without entities", int(label is None))
        entities = [
            _entity(record["text"], kind, said, start, last)
            for kind, mentions in (label or {}).items()
            for said, places in mentions.items()
            for start, last in places
        ]
        # The file sorts them by type; in the order of the text they are easier to compare with anything else.
        entities.sort(key=lambda entity: entity.range)
        return of_characters(own_id(record.get("id"), default_id), record["text"], entities, rest(record, _KEYS))

    return read_records(path, _SHAPE, build)


def _entity(text: str, kind: str, said: str, start: int, last: int) -> Entity:
    found = mention(text, start, last + 1)
    if found != said:
        raise ValueError(f"{kind} {said!r} is said to stand at [{start}, {last}], where the text has {found!r}")
    return Entity(kind, (Span(start, last + 1),))


def write(sentences: Iterable[Sentence], path: Path, ledger: Ledger, /) -> None:
    write_lines((_record(fitted(to_characters(s, ledger), _HOLDS, ledger), ledger) for s in sentences), path)


def _record(sentence: Sentence, ledger: Ledger) -> dict[str, Any]:
    label: dict[str, dict[str, list[list[int]]]] = {}
    for entity in sentence.entities:
        start, end = entity.range
        label.setdefault(entity.type, {}).setdefault(sentence.text[start:end], []).append([start, end - 1])
    record = {"id": id_value(sentence.id), "text": sentence.text, "label": label}
    return with_rest(record, sentence.extra, _KEYS, ledger)


def sniff(sample: Sample) -> bool:
    labels = [record["label"] for record in sample.dicts if "label" in record]
    return sample.have("text") and bool(labels) and all(_is_label(label) for label in labels)


def _is_label(label: Any) -> bool:
    return isinstance(label, dict) and all(isinstance(mentions, dict) for mentions in label.values())


FORMAT = Format(
    name="cluener",
    summary="CLUENER's JSON lines: characters, entities by type and mention, ends inclusive",
    read=read,
    write=write,
    sniff=sniff,
    extensions=(".json",),
    holds=_HOLDS,
    keeps=frozenset(("ids", "keys")),
)
