"""JSON of W2NER: each entity is a list of word indices, so it may be discontinuous.

``[{"sentence": […], "ner": [{"index": [2, 3, 6], "type": "X"}]}]``, as an array or one record per line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, NotRequired

from pydantic import ConfigDict, TypeAdapter
from typing_extensions import TypedDict

from spanwise.core.types import Entity, Sentence, Span
from spanwise.files.writing import JsonArray, open_output, to_json
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
)
from spanwise.formats.shared.restriction import restrict
from spanwise.formats.shared.sample import Sample


class _Entity(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow", defer_build=True)  # type: ignore[misc]
    index: list[StrictInt]
    type: str
    score: NotRequired[StrictFloat | None]


class _Record(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow", defer_build=True)  # type: ignore[misc]
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
    with open_output(path) as file, JsonArray(file) as array:
        for sentence in sentences:
            array.add_pieces(_json_pieces(restrict(sentence, _SUPPORTS, ledger), ledger))


def _json_pieces(sentence: Sentence, ledger: Ledger) -> Iterator[str]:
    """Yield the record of a sentence as JSON text, entity by entity.

    Nested entities repeat the indices of their words. Parts of one text of all indices are much faster
    than lists of numbers, and are never in memory together.
    """
    numbers = [f"{index}, " for index in range(len(sentence.words))]
    text, ends = "".join(numbers), list(accumulate(map(len, numbers), initial=0))
    record = to_json(add_extra({"id": json_id(sentence.id)}, sentence.extra, _KEYS, ledger))
    yield f'{{"sentence": {to_json(list(sentence.words))}, "ner": ['
    for count, entity in enumerate(sentence.entities):
        indices = "".join(text[ends[start] : ends[end]] for start, end in entity.fragments).removesuffix(", ")
        item = to_json(add_extra({"type": entity.type, **score_field(entity.score)}, entity.extra, _ENTITY_KEYS, ledger))
        yield f'{", " * bool(count)}{{"index": [{indices}], {item.removeprefix("{")}'
    yield f"], {record.removeprefix('{')}"


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
