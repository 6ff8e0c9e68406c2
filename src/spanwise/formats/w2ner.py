"""JSON of W2NER: each entity is a list of word indices, so it may be discontinuous.

``[{"sentence": […], "ner": [{"index": [2, 3, 6], "type": "X"}]}]``, as an array or one record per line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NotRequired

from pydantic import ConfigDict, TypeAdapter
from typing_extensions import TypedDict

from spanwise.core.types import Entity, Sentence, Span
from spanwise.formats.base import Format, Ledger, fill_empty_words
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
    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
    index: list[StrictInt]
    type: str
    score: NotRequired[StrictFloat | None]


class _Record(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
    sentence: list[str]
    ner: NotRequired[list[_Entity] | None]
    id: NotRequired[Id | None]


_SHAPE: TypeAdapter[_Record] = TypeAdapter(_Record)
_KEYS = frozenset(_Record.__annotations__)
_ENTITY_KEYS = frozenset(_Entity.__annotations__)
_SUPPORTS = frozenset(("nested", "crossing", "discontinuous", "several types"))


def read(path: Path, ledger: Ledger, /) -> Iterator[Sentence]:
    def build(record: dict[str, Any], default_id: str) -> Sentence:
        entities = []
        for item in record.get("ner") or ():
            index = sorted(item["index"])
            ledger.note("entities with unsorted word indices, sorted", int(index != item["index"]))
            entities.append(Entity(item["type"], _runs(index), item.get("score"), unknown_keys(item, _ENTITY_KEYS)))
        return Sentence(
            id=id_or_default(record.get("id"), default_id),
            words=fill_empty_words(record["sentence"], ledger),
            entities=tuple(entities),
            extra=unknown_keys(record, _KEYS),
        )

    return read_records(path, _SHAPE, build)


def _runs(numbers: list[int]) -> tuple[Span, ...]:
    """Return sorted numbers as ranges.

    >>> _runs([2, 3, 6])
    (Span(start=2, end=4), Span(start=6, end=7))
    """
    breaks = [index for index, (a, b) in enumerate(pairwise(numbers), 1) if b != a + 1]
    starts, ends = [0, *breaks], [*breaks, len(numbers)]
    return tuple(Span(numbers[a], numbers[b - 1] + 1) for a, b in zip(starts, ends, strict=True) if a < b)


def write(sentences: Iterable[Sentence], path: Path, ledger: Ledger, /) -> None:
    write_json_array((_to_record(restrict(sentence, _SUPPORTS, ledger), ledger) for sentence in sentences), path)


def _to_record(sentence: Sentence, ledger: Ledger) -> dict[str, Any]:
    entities = []
    for entity in sentence.entities:
        item = {"index": list(entity.word_indices), "type": entity.type, **score_field(entity.score)}
        entities.append(add_extra(item, entity.extra, _ENTITY_KEYS, ledger))
    record = {"sentence": list(sentence.words), "ner": entities, "id": json_id(sentence.id)}
    return add_extra(record, sentence.extra, _KEYS, ledger)


def sniff(sample: Sample) -> bool:
    return (
        sample.all_have("sentence", "ner")
        and all(isinstance(word, str) for word in sample.list_items("sentence"))
        and all(isinstance(record["sentence"], list) for record in sample.dicts)
        and all(isinstance(item, dict) and "index" in item for item in sample.list_items("ner"))
    )


FORMAT = Format(
    name="w2ner",
    summary="JSON of W2NER: sentences, entities as lists of word indices",
    read=read,
    write=write,
    sniff=sniff,
    extensions=(".json",),
    supports=_SUPPORTS,
    metadata=frozenset(("ids", "scores", "keys", "entity keys")),
)
