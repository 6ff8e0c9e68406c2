"""JSON lines of doccano: a text with character ranges, and relations between them.

Reads both forms: ``{"id": 7, "text": "…", "label": [[0, 4, "Place"]]}`` and, with relations, ``{"id": 7, "text": "…",
"entities": [{"id": 1, "label": "Place", "start_offset": 0, "end_offset": 4}], "relations": [{"id": 9, "from_id": 1,
"to_id": 2, "type": "near"}]}``. The second is written unless ``form=labels`` is set.

doccano counts offsets in UTF-16 units, but most scripts that write its format count characters. The two
differ after an emoji, and a file does not show which it uses. The default is characters;
``offsets=utf16`` selects UTF-16 units.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, NotRequired

from pydantic import ConfigDict, TypeAdapter
from typing_extensions import TypedDict

from spanwise.core.counting import counted
from spanwise.core.errors import FormatError
from spanwise.core.types import Sentence, Span
from spanwise.files.names import default_id
from spanwise.files.reading import read_json_records, validate_record
from spanwise.formats.base import YES_OR_NO, Format, Ledger, one_of
from spanwise.formats.shared.documents import Document, Mention, MentionRelation, drop_discontinuous, to_documents
from spanwise.formats.shared.records import (
    Id,
    StrictFloat,
    StrictInt,
    add_extra,
    id_or_default,
    json_id,
    score_field,
    unknown_keys,
    without_keys,
    write_json_lines,
)
from spanwise.formats.shared.sample import Sample
from spanwise.formats.shared.splitting import to_sentences
from spanwise.text.utf16 import Utf16, is_wide


class _Entity(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow", defer_build=True)  # type: ignore[misc]
    label: str
    start_offset: StrictInt
    end_offset: StrictInt
    id: NotRequired[Id | None]
    score: NotRequired[StrictFloat | None]


class _Relation(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow", defer_build=True)  # type: ignore[misc]
    from_id: Id
    to_id: Id
    type: str
    id: NotRequired[Id | None]
    score: NotRequired[StrictFloat | None]


class _Record(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow", defer_build=True)  # type: ignore[misc]
    text: str
    id: NotRequired[Id | None]
    label: NotRequired[list[tuple[StrictInt, StrictInt, str]] | None]
    labels: NotRequired[list[tuple[StrictInt, StrictInt, str]] | None]
    entities: NotRequired[list[_Entity] | None]
    relations: NotRequired[list[_Relation] | None]


_SHAPE: TypeAdapter[_Record] = TypeAdapter(_Record)
_KEYS = frozenset(_Record.__annotations__)
_ANNOTATION_KEYS = ("label", "labels", "entities", "relations")
_ENTITY_KEYS = frozenset(_Entity.__annotations__)
_RELATION_KEYS = frozenset(_Relation.__annotations__)


def read(
    path: Path, ledger: Ledger, /, *, offsets: str | None = None, split: bool = True, with_annotations: bool = True
) -> Iterator[Sentence]:  # fmt: skip
    """Read documents. ``offsets`` is "characters" or "utf16"; ``split=False`` keeps each text as one sentence."""
    for number, (line, raw) in enumerate(read_json_records(path)):
        if isinstance(raw, dict) and "text" not in raw and isinstance(raw.get("data"), str):
            raw["text"] = raw.pop("data")  # the key in doccano 1.4 and 1.5
        if with_annotations and isinstance(raw, dict) and _has_numbers_as_labels(raw):
            raise FormatError(path, line, "the labels are numbers; export the data with text labels")
        record = validate_record(_SHAPE, raw if with_annotations else without_keys(raw, _ANNOTATION_KEYS), path, line)
        document = _to_document(record, default_id(path, number))
        if document.mentions and is_wide(document.text):
            _convert_offsets(document, offsets, path, line, ledger)
        yield from to_sentences(document, path, ledger, line=line, split=split)


def _has_numbers_as_labels(record: dict[str, Any]) -> bool:
    """Return True for the export of doccano before 1.4 in which labels are ids of its database."""
    items = record.get("annotations")
    return (
        isinstance(items, list)
        and bool(items)
        and all(isinstance(item, dict) and type(item.get("label")) is int and "start_offset" in item for item in items)
        and record.keys().isdisjoint(_ANNOTATION_KEYS)
    )


def _to_document(record: dict[str, Any], default_id: str) -> Document:
    document = Document(id_or_default(record.get("id"), default_id), record["text"], extra=unknown_keys(record, _KEYS))
    for number, item in enumerate(record.get("entities") or ()):
        id = id_or_default(item.get("id"), f"entity {number}")
        span = Span(item["start_offset"], item["end_offset"])
        document.mentions.append(Mention(id, item["label"], (span,), item.get("score"), unknown_keys(item, _ENTITY_KEYS)))
    for key in ("label", "labels"):
        for number, (start, end, label) in enumerate(record.get(key) or ()):
            document.mentions.append(Mention(f"{key} {number}", label, (Span(start, end),)))
    for item in record.get("relations") or ():
        ends = str(item["from_id"]), str(item["to_id"])
        document.relations.append(MentionRelation(item["type"], *ends, item.get("score"), unknown_keys(item, _RELATION_KEYS)))
    return document


def _convert_offsets(document: Document, offsets: str | None, path: Path, line: int, ledger: Ledger) -> None:
    if offsets == "utf16":
        units = Utf16(document.text)
        for mention in document.mentions:
            mention.fragments = (units.to_characters(mention.fragments[0]),)
    elif offsets is None:
        if any(mention.fragments[0].end > len(document.text) for mention in document.mentions):
            problem = f"an entity ends after the last of {counted(len(document.text), 'character')}"
            raise FormatError(path, line, f"{problem}; if offsets count UTF-16 units, use doccano:offsets=utf16")
        ledger.note(
            "texts with characters beyond U+FFFF, offsets read as characters (for UTF-16 units use doccano:offsets=utf16)"
        )


def write(
    sentences: Iterable[Sentence], path: Path, ledger: Ledger, /, *, form: str = "entities", offsets: str = "characters"
) -> None:
    """Write documents. ``form`` is "entities" or "labels"."""
    numbers = count(1)  # doccano numbers the entities and relations of a project together
    documents = (drop_discontinuous(document, ledger) for document in to_documents(sentences, ledger))
    if form == "labels":
        write_json_lines((_labels_record(document, offsets, ledger) for document in documents), path)
    else:
        write_json_lines((_entities_record(document, offsets, numbers, ledger) for document in documents), path)


def _spans(document: Document, offsets: str) -> list[Span]:
    spans = [mention.fragments[0] for mention in document.mentions]
    if offsets == "utf16" and is_wide(document.text):
        units = Utf16(document.text)
        return [units.from_characters(span) for span in spans]
    return spans


def _labels_record(document: Document, offsets: str, ledger: Ledger) -> dict[str, Any]:
    pairs = zip(_spans(document, offsets), document.mentions, strict=True)
    labels = [[*span, mention.type] for span, mention in pairs]
    ledger.lose("relations", "not supported by form=labels", len(document.relations))
    record = {"id": json_id(document.id), "text": document.text, "label": labels}
    return add_extra(record, document.extra, _KEYS, ledger)


def _entities_record(document: Document, offsets: str, numbers: Iterator[int], ledger: Ledger) -> dict[str, Any]:
    entities, relations = [], []
    ids: dict[str, int] = {}
    for span, mention in zip(_spans(document, offsets), document.mentions, strict=True):
        ids[mention.id] = next(numbers)
        item = {"id": ids[mention.id], "label": mention.type, "start_offset": span.start, "end_offset": span.end}
        entities.append(add_extra(item | score_field(mention.score), mention.extra, _ENTITY_KEYS, ledger))
    for relation in document.relations:
        ends = {"from_id": ids[relation.head], "to_id": ids[relation.tail]}
        item = {"id": next(numbers), **ends, "type": relation.type, **score_field(relation.score)}
        relations.append(add_extra(item, relation.extra, _RELATION_KEYS, ledger))
    record = {"id": json_id(document.id), "text": document.text, "entities": entities, "relations": relations}
    return add_extra(record, document.extra, _KEYS, ledger)


def sniff(sample: Sample) -> bool:
    labels = [*sample.list_items("label"), *sample.list_items("labels")]
    entities = sample.list_items("entities")
    has_text = bool(sample.dicts) and all(isinstance(r.get("text", r.get("data")), str) for r in sample.dicts)
    has_list = any(isinstance(r.get(key), list) for r in sample.dicts for key in ("label", "labels", "entities"))
    if has_text and any(map(_has_numbers_as_labels, sample.dicts)):
        return True  # the reader says how to export it
    return (
        has_text
        and has_list
        and not sample.all_have("tokens")
        and all(_is_label(item) for item in labels)
        and all(isinstance(item, dict) and item.keys() >= {"label", "start_offset", "end_offset"} for item in entities)
    )


def _is_label(item: Any) -> bool:
    return isinstance(item, list) and [type(part) for part in item] == [int, int, str]


def _metadata(*, form: str = "entities", **others: Any) -> frozenset[str]:
    additional = () if form == "labels" else ("scores", "relation scores", "entity keys", "relation keys")
    return frozenset(("documents", "keys", *additional))


FORMAT = Format(
    name="doccano",
    has_character_offsets=True,
    summary="JSON lines of doccano: a text with character ranges, and relations",
    read=read,
    write=write,
    sniff=sniff,
    extensions=(".jsonl",),
    supports=frozenset(("nested", "crossing", "several types", "relations", "links")),
    metadata_for=_metadata,
    read_options={"offsets": one_of("characters", "utf16"), "split": YES_OR_NO},
    write_options={"form": one_of("entities", "labels"), "offsets": one_of("characters", "utf16")},
)
