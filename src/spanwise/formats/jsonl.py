"""The interchange format: one sentence per line, half-open word ranges, unknown keys preserved.

``{"id": "s1", "tokens": […], "entities": [{"type": "X", "spans": [[2, 5]]}], "relations": [{"type":
"R", "head": 0, "tail": 1}]}``. Optional: ``text`` (default: tokens joined by single spaces), ``starts``
(character offsets of the tokens, if a search from left to right would find others), ``pos``,
``document``, ``position``, ``start``, ``links`` (relations to a sentence at another ``position`` of the
document), ``score`` on entities, relations and links, and ``annotated`` on sentences that are annotated
partially: ``[[0, 5]]`` (completely annotated word ranges) or ``["Drug"]`` (completely annotated types).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NotRequired

from pydantic import ConfigDict, TypeAdapter
from typing_extensions import TypedDict

from spanwise.core.errors import FormatError
from spanwise.core.tags import is_tag
from spanwise.core.types import Entity, Link, Sentence, Span
from spanwise.core.word_starts import find_words, joined_starts
from spanwise.files.names import default_id
from spanwise.files.reading import read_json_records, validate_record
from spanwise.formats.base import ALL_METADATA, Format, Ledger, fill_empty_words, one_of
from spanwise.formats.shared.records import (
    RELATION_KEYS,
    Id,
    RelationRecord,
    StrictFloat,
    StrictInt,
    add_extra,
    id_or_default,
    read_relations,
    score_field,
    unknown_keys,
    write_json_lines,
    write_relations,
)
from spanwise.formats.shared.sample import Sample


class _Entity(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow", defer_build=True)  # type: ignore[misc]
    type: str
    spans: list[tuple[StrictInt, StrictInt]]
    score: NotRequired[StrictFloat | None]


class _Link(RelationRecord):
    position: StrictInt


class _Record(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow", defer_build=True)  # type: ignore[misc]
    tokens: list[str]
    id: NotRequired[Id | None]
    text: NotRequired[str | None]
    starts: NotRequired[list[StrictInt] | None]
    entities: NotRequired[list[_Entity] | None]
    relations: NotRequired[list[RelationRecord] | None]
    links: NotRequired[list[_Link] | None]
    pos: NotRequired[list[str] | None]
    document: NotRequired[Id | None]
    position: NotRequired[StrictInt | None]
    start: NotRequired[StrictInt | None]
    annotated: NotRequired[list[tuple[StrictInt, StrictInt]] | list[str] | None]


_SHAPE: TypeAdapter[_Record] = TypeAdapter(_Record)
_KEYS = frozenset(_Record.__annotations__)
_ENTITY_KEYS = frozenset(_Entity.__annotations__)
_LINK_KEYS = frozenset(_Link.__annotations__) | RELATION_KEYS


def read(path: Path, ledger: Ledger, /, *, ends: str = "exclusive") -> Iterator[Sentence]:
    """Read sentences. With ``ends="inclusive"``, a range includes its last word."""
    is_inclusive = ends == "inclusive"
    for count, (number, raw) in enumerate(read_json_records(path)):
        record = validate_record(_SHAPE, raw, path, number)
        if "" in record["tokens"]:  # the text does not have the replaced words
            record |= {"tokens": fill_empty_words(record["tokens"], ledger), "text": None, "starts": None}
        try:
            sentence = _sentence(record, default_id(path, count), is_inclusive)
        except ValueError as error:
            is_range_error = "half-open" in str(error) and not is_inclusive
            hint = "; if the ends are inclusive, use jsonl:ends=inclusive" if is_range_error else ""
            raise FormatError(path, number, f"{error}{hint}") from None
        yield sentence


def _sentence(record: dict[str, Any], default_id: str, is_inclusive: bool) -> Sentence:
    entities = []
    for item in record.get("entities") or ():
        spans = tuple(Span(a, b + is_inclusive) for a, b in item["spans"])
        entities.append(Entity(item["type"], spans, item.get("score"), unknown_keys(item, _ENTITY_KEYS)))
    links = [
        Link(k["type"], k["head"], k["position"], k["tail"], k.get("score"), unknown_keys(k, _LINK_KEYS))
        for k in record.get("links") or ()
    ]
    pos, document, annotated = record.get("pos"), record.get("document"), record.get("annotated")
    if annotated and is_inclusive and not isinstance(annotated[0], str):
        annotated = [(start, end + 1) for start, end in annotated]
    return Sentence(
        id=id_or_default(record.get("id"), default_id),
        words=tuple(record["tokens"]),
        entities=tuple(entities),
        relations=read_relations(record),
        links=tuple(links),
        text=record.get("text") or "",
        starts=tuple(record.get("starts") or ()),
        pos=None if pos is None else tuple(pos),
        document=None if document is None else str(document),
        position=record.get("position"),
        start=record.get("start"),
        annotated=None if annotated is None else tuple(annotated),
        extra=unknown_keys(record, _KEYS),
    )


def write(sentences: Iterable[Sentence], path: Path, ledger: Ledger, /) -> None:
    write_json_lines((to_record(sentence, ledger) for sentence in sentences), path)


def to_record(sentence: Sentence, ledger: Ledger | None = None) -> dict[str, Any]:
    """Return the sentence as a JSON object of the interchange format.

    Extra keys that the format itself defines are dropped, with a note in the ledger.

    >>> to_record(Sentence("s1", ("Oslo", "."), entities=(Entity("Place", ((0, 1),)),)))
    {'id': 's1', 'tokens': ['Oslo', '.'], 'entities': [{'type': 'Place', 'spans': [[0, 1]]}]}
    """
    ledger = Ledger() if ledger is None else ledger
    record: dict[str, Any] = {"id": sentence.id}
    for key in ("document", "position", "start"):
        if (value := getattr(sentence, key)) is not None:
            record[key] = value
    record["tokens"] = list(sentence.words)
    if sentence.text != " ".join(sentence.words) or sentence.starts != joined_starts(sentence.words):
        record["text"] = sentence.text
        if find_words(sentence.words, sentence.text) != sentence.starts:
            record["starts"] = list(sentence.starts)
    if sentence.pos is not None:
        record["pos"] = list(sentence.pos)
    if sentence.annotated is not None:
        record["annotated"] = [mark if isinstance(mark, str) else list(mark) for mark in sentence.annotated]
    record["entities"] = [
        add_extra(
            {"type": e.type, "spans": [list(f) for f in e.fragments], **score_field(e.score)}, e.extra, _ENTITY_KEYS, ledger
        )
        for e in sentence.entities
    ]
    if sentence.relations:
        record["relations"] = write_relations(sentence, ledger)
    if sentence.links:
        record["links"] = [
            add_extra(
                {"type": k.type, "head": k.head, "position": k.position, "tail": k.tail, **score_field(k.score)},
                k.extra,
                _LINK_KEYS,
                ledger,
            )
            for k in sentence.links
        ]
    return add_extra(record, sentence.extra, _KEYS, ledger)


def sniff(sample: Sample) -> bool:
    if not sample.all_have("tokens"):
        return False
    if not all(isinstance(token, str) for token in sample.list_items("tokens")):
        return False  # Prodigy
    if not all(isinstance(e, dict) and "spans" in e and "type" in e for e in sample.list_items("entities")):
        return False
    if sample.all_have("orig_id") and not sample.all_have("id") and not sample.list_items("entities"):
        return False  # SpERT, without entities
    other_keys = ("spans", "tags", "ner_tags", "ner")  # the entities of other formats
    return sample.all_have("entities") or not any(
        not record.keys().isdisjoint(other_keys) or _has_other_annotations(record) for record in sample.dicts
    )


def _has_other_annotations(record: dict[str, Any]) -> bool:
    """Return True if a key of another format has a tag (B-X, I-X, O) or label for each token, or spans."""
    count = len(record["tokens"]) if isinstance(record["tokens"], list) else 0
    labels = record.get("labels")
    if count and isinstance(labels, list) and len(labels) == count:
        return True
    lists = [value for key, value in record.items() if key not in _KEYS and isinstance(value, list) and value]
    return any((len(value) == count and _are_tags(value)) or all(map(_is_span, value)) for value in lists)


def _are_tags(values: list[Any]) -> bool:
    return all(isinstance(value, str) and is_tag(value) for value in values) and any(value != "O" for value in values)


def _is_span(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() >= {"start", "end"}


FORMAT = Format(
    name="jsonl",
    summary="the interchange format of Spanwise: one sentence per line, word ranges",
    read=read,
    write=write,
    sniff=sniff,
    extensions=(".jsonl",),
    supports=frozenset(("nested", "crossing", "discontinuous", "several types", "relations", "links", "partial")),
    metadata=ALL_METADATA,
    read_options={"ends": one_of("exclusive", "inclusive")},
)
