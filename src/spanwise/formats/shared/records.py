"""What the JSON formats with one record a sentence share: reading, unknown keys, ids, writing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from pathlib import Path
from typing import Annotated, Any, NotRequired

from pydantic import ConfigDict, Field, TypeAdapter
from typing_extensions import TypedDict

from spanwise.core.errors import FormatError
from spanwise.core.types import Extra, Relation, Sentence
from spanwise.files.names import default_id
from spanwise.files.reading import json_records, validate_record
from spanwise.files.writing import JsonArray, to_json, writing
from spanwise.formats.base import Ledger

# Numbers as they are: no strings that look like numbers, no true and false.
Whole = Annotated[int, Field(strict=True)]
Number = Annotated[float, Field(strict=True)]
Id = str | Whole


class RelationRecord(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
    type: str
    head: Whole
    tail: Whole
    score: NotRequired[Number | None]


RELATION_KEYS = frozenset(RelationRecord.__annotations__)


def read_relations(record: Mapping[str, Any]) -> tuple[Relation, ...]:
    """The relations of a record, whose ``head`` and ``tail`` number the entities."""
    return tuple(
        Relation(item["type"], item["head"], item["tail"], item.get("score"), rest(item, RELATION_KEYS))
        for item in record.get("relations") or ()
    )


def write_relations(sentence: Sentence, ledger: Ledger) -> list[dict[str, Any]]:
    return [
        with_rest({"type": r.type, "head": r.head, "tail": r.tail, **scored(r.score)}, r.extra, RELATION_KEYS, ledger)
        for r in sentence.relations
    ]


def read_records(path: Path, shape: TypeAdapter[Any], build: Callable[[dict[str, Any], str], Sentence]) -> Iterator[Sentence]:
    """The sentences that ``build`` makes of the records of a file; it is given an id for those that have none."""
    for number, (line, raw) in enumerate(json_records(path)):
        record = validate_record(shape, raw, path, line)
        try:
            sentence = build(record, default_id(path, number))
        except ValueError as error:
            raise FormatError(path, line, str(error)) from None
        yield sentence


def rest(item: Mapping[str, Any], known: Set[str]) -> Extra | None:
    """The keys a format does not know, to be kept; None where there are none.

    >>> rest({"text": "Oslo", "source": "map"}, {"text"})
    {'source': 'map'}
    """
    return {key: value for key, value in item.items() if key not in known} or None


def with_rest(record: dict[str, Any], extra: Extra | None, known: Set[str], ledger: Ledger) -> dict[str, Any]:
    """The record with the keys that were kept; one that means something else in this format has no place in it.

    >>> with_rest({"text": "Oslo"}, {"source": "map"}, {"text"}, Ledger())
    {'text': 'Oslo', 'source': 'map'}
    """
    for key, value in (extra or {}).items():
        if key in known:
            ledger.note(f"keys left out: {key!r} means something else in this format")
        else:
            record[key] = value
    return record


def without(record: Any, keys: Iterable[str]) -> Any:
    """A record whose annotations are not looked at: whatever stands under the keys may be wrong."""
    return {key: value for key, value in record.items() if key not in keys} if isinstance(record, dict) else record


def scored(score: float | None) -> dict[str, float]:
    return {} if score is None else {"score": score}


def own_id(value: str | int | None, default: str) -> str:
    return default if value is None else str(value)


def id_value(text: str) -> str | int:
    """An id as it is written: a number where it looks like one, for most formats number their records.

    >>> id_value("83"), id_value("083"), id_value("dev-83")
    (83, '083', 'dev-83')
    """
    is_number = text.isascii() and text.isdecimal() and len(text) < 19 and (text == "0" or text[0] != "0")
    return int(text) if is_number else text


def write_array(records: Iterable[dict[str, Any]], path: Path) -> None:
    with writing(path) as file, JsonArray(file) as array:
        for record in records:
            array.add(record)


def write_lines(records: Iterable[dict[str, Any]], path: Path) -> None:
    with writing(path) as file:
        for record in records:
            file.write(to_json(record) + "\n")
