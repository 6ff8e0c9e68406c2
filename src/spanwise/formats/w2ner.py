"""W2NER's JSON: each entity lists the numbers of its words, so a discontinuous one leaves some out.

``[{"sentence": […], "ner": [{"index": [2, 3, 6], "type": "X"}]}]``, as an array or one record a line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NotRequired

from pydantic import ConfigDict, TypeAdapter
from typing_extensions import TypedDict

from spanwise.core.types import Entity, Sentence, Span
from spanwise.formats.base import Format, Ledger
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
    index: list[Whole]
    type: str
    score: NotRequired[Number | None]


class _Record(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
    sentence: list[str]
    ner: NotRequired[list[_Entity] | None]
    id: NotRequired[Id | None]


_SHAPE: TypeAdapter[_Record] = TypeAdapter(_Record)
_KEYS = frozenset(_Record.__annotations__)
_ENTITY_KEYS = frozenset(_Entity.__annotations__)
_HOLDS = frozenset(("nested", "crossing", "discontinuous", "several types"))


def read(path: Path, ledger: Ledger, /) -> Iterator[Sentence]:
    def build(record: dict[str, Any], default_id: str) -> Sentence:
        entities = []
        for item in record.get("ner") or ():
            index = sorted(item["index"])
            ledger.note("entities whose word numbers are out of order, sorted", int(index != item["index"]))
            entities.append(Entity(item["type"], _runs(index), item.get("score"), rest(item, _ENTITY_KEYS)))
        return Sentence(
            id=own_id(record.get("id"), default_id),
            words=tuple(record["sentence"]),
            entities=tuple(entities),
            extra=rest(record, _KEYS),
        )

    return read_records(path, _SHAPE, build)


def _runs(numbers: list[int]) -> tuple[Span, ...]:
    """Numbers in order as ranges.

    >>> _runs([2, 3, 6])
    (Span(start=2, end=4), Span(start=6, end=7))
    """
    borders = [place for place, (a, b) in enumerate(pairwise(numbers), 1) if b != a + 1]
    starts, ends = [0, *borders], [*borders, len(numbers)]
    return tuple(Span(numbers[a], numbers[b - 1] + 1) for a, b in zip(starts, ends, strict=True) if a < b)


def write(sentences: Iterable[Sentence], path: Path, ledger: Ledger, /) -> None:
    write_array((_record(fitted(sentence, _HOLDS, ledger), ledger) for sentence in sentences), path)


def _record(sentence: Sentence, ledger: Ledger) -> dict[str, Any]:
    entities = []
    for entity in sentence.entities:
        item = {"index": list(entity.places), "type": entity.type, **scored(entity.score)}
        entities.append(with_rest(item, entity.extra, _ENTITY_KEYS, ledger))
    record = {"sentence": list(sentence.words), "ner": entities, "id": id_value(sentence.id)}
    return with_rest(record, sentence.extra, _KEYS, ledger)


def sniff(sample: Sample) -> bool:
    return (
        sample.have("sentence", "ner")
        and all(isinstance(word, str) for word in sample.items("sentence"))
        and all(isinstance(record["sentence"], list) for record in sample.dicts)
        and all(isinstance(item, dict) and "index" in item for item in sample.items("ner"))
    )


FORMAT = Format(
    name="w2ner",
    summary="W2NER's JSON: sentences, entities as lists of word numbers (discontinuous too)",
    read=read,
    write=write,
    sniff=sniff,
    extensions=(".json",),
    holds=_HOLDS,
    keeps=frozenset(("ids", "scores", "keys", "entity keys")),
)
