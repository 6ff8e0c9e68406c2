"""Shared code of the JSON formats: records, unknown keys, ids, relations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from pathlib import Path
from typing import Annotated, Any, NotRequired

from pydantic import ConfigDict, Field, TypeAdapter
from typing_extensions import TypedDict

from spanwise.core.errors import FormatError
from spanwise.core.types import Extra, Relation, Sentence
from spanwise.files.names import default_id
from spanwise.files.reading import read_json_records, validate_record
from spanwise.files.writing import JsonArray, open_output, to_json
from spanwise.formats.base import Ledger

# Without conversion from strings and booleans.
StrictInt = Annotated[int, Field(strict=True)]
StrictFloat = Annotated[float, Field(strict=True)]
Id = str | StrictInt


class RelationRecord(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow", defer_build=True)  # type: ignore[misc]
    type: str
    head: StrictInt
    tail: StrictInt
    score: NotRequired[StrictFloat | None]


RELATION_KEYS = frozenset(RelationRecord.__annotations__)


def read_relations(record: Mapping[str, Any]) -> tuple[Relation, ...]:
    """Return the relations of a record; ``head`` and ``tail`` are entity indices."""
    return tuple(
        Relation(item["type"], item["head"], item["tail"], item.get("score"), unknown_keys(item, RELATION_KEYS))
        for item in record.get("relations") or ()
    )


def write_relations(sentence: Sentence, ledger: Ledger) -> list[dict[str, Any]]:
    return [
        add_extra({"type": r.type, "head": r.head, "tail": r.tail, **score_field(r.score)}, r.extra, RELATION_KEYS, ledger)
        for r in sentence.relations
    ]


def read_records(path: Path, shape: TypeAdapter[Any], build: Callable[[dict[str, Any], str], Sentence]) -> Iterator[Sentence]:
    """Yield ``build(record, default id)`` for each record of a file."""
    for number, (line, raw) in enumerate(read_json_records(path)):
        record = validate_record(shape, raw, path, line)
        try:
            sentence = build(record, default_id(path, number))
        except ValueError as error:
            raise FormatError(path, line, str(error)) from None
        yield sentence


def unknown_keys(item: Mapping[str, Any], known: Set[str]) -> Extra | None:
    """Return the keys that a format does not define, or None if there are none.

    >>> unknown_keys({"text": "Oslo", "source": "map"}, {"text"})
    {'source': 'map'}
    """
    return {key: value for key, value in item.items() if key not in known} or None


def add_extra(record: dict[str, Any], extra: Extra | None, known: Set[str], ledger: Ledger) -> dict[str, Any]:
    """Add extra keys to a record, except those that the format itself defines.

    >>> add_extra({"text": "Oslo"}, {"source": "map"}, {"text"}, Ledger())
    {'text': 'Oslo', 'source': 'map'}
    """
    for key, value in (extra or {}).items():
        if key in known:
            ledger.note(f"keys dropped: {key!r} has another meaning in this format")
        else:
            record[key] = value
    return record


def without_keys(record: Any, keys: Iterable[str]) -> Any:
    """Return the record without these keys, so that their values are not validated."""
    return {key: value for key, value in record.items() if key not in keys} if isinstance(record, dict) else record


def score_field(score: float | None) -> dict[str, float]:
    return {} if score is None else {"score": score}


def id_or_default(value: str | int | None, default: str) -> str:
    return default if value is None else str(value)


def json_id(text: str) -> str | int:
    """Return a numeric id as an integer, because most formats number their records.

    >>> json_id("83"), json_id("083"), json_id("dev-83")
    (83, '083', 'dev-83')
    """
    is_number = text.isascii() and text.isdecimal() and len(text) < 19 and (text == "0" or text[0] != "0")
    return int(text) if is_number else text


def write_json_array(records: Iterable[dict[str, Any]], path: Path) -> None:
    with open_output(path) as file, JsonArray(file) as array:
        for record in records:
            array.add(record)


def write_json_lines(records: Iterable[dict[str, Any]], path: Path) -> None:
    with open_output(path) as file:
        for record in records:
            file.write(to_json(record) + "\n")
