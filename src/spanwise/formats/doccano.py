"""doccano's JSON lines: a text with ranges of characters, and relations between them.

Both forms are read: ``{"id": 7, "text": "…", "label": [[0, 4, "Place"]]}`` and, with relations, ``{"id": 7, "text": "…",
"entities": [{"id": 1, "label": "Place", "start_offset": 0, "end_offset": 4}], "relations": [{"id": 9, "from_id": 1,
"to_id": 2, "type": "near"}]}``. The second is written unless ``form=labels`` is said.

doccano's own page counts offsets in UTF-16 units, scripts that write its format mostly in characters, and nothing in a file
tells: they differ behind an emoji. Characters are meant here unless ``offsets=utf16`` is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, NotRequired

from pydantic import ConfigDict, TypeAdapter
from typing_extensions import TypedDict

from spanwise.core.errors import FormatError
from spanwise.core.types import Sentence, Span
from spanwise.files.names import default_id
from spanwise.files.reading import json_records, validate_record
from spanwise.formats.base import Format, Ledger, one_of
from spanwise.formats.shared.cutting import to_sentences
from spanwise.formats.shared.documents import Arrow, Document, Mention, to_documents, without_discontinuous
from spanwise.formats.shared.records import Id, Number, Whole, id_value, own_id, rest, scored, with_rest, without, write_lines
from spanwise.formats.shared.sample import Sample
from spanwise.text.utf16 import Utf16, is_wide


class _Entity(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
    label: str
    start_offset: Whole
    end_offset: Whole
    id: NotRequired[Id | None]
    score: NotRequired[Number | None]


class _Relation(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
    from_id: Id
    to_id: Id
    type: str
    id: NotRequired[Id | None]
    score: NotRequired[Number | None]


class _Record(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
    text: str
    id: NotRequired[Id | None]
    label: NotRequired[list[tuple[Whole, Whole, str]] | None]
    labels: NotRequired[list[tuple[Whole, Whole, str]] | None]
    entities: NotRequired[list[_Entity] | None]
    relations: NotRequired[list[_Relation] | None]


_SHAPE: TypeAdapter[_Record] = TypeAdapter(_Record)
_KEYS = frozenset(_Record.__annotations__)
_BARE = ("label", "labels", "entities", "relations")
_ENTITY_KEYS = frozenset(_Entity.__annotations__)
_RELATION_KEYS = frozenset(_Relation.__annotations__)


def read(path: Path, ledger: Ledger, /, *, offsets: str | None = None, annotated: bool = True) -> Iterator[Sentence]:
    """``offsets`` is "characters" or "utf16"."""
    for number, (line, raw) in enumerate(json_records(path)):
        if isinstance(raw, dict) and "text" not in raw and isinstance(raw.get("data"), str):
            raw["text"] = raw.pop("data")  # what doccano 1.4 and 1.5 call it
        record = validate_record(_SHAPE, raw if annotated else without(raw, _BARE), path, line)
        document = _document(record, default_id(path, number))
        if document.mentions and is_wide(document.text):
            _count_characters(document, offsets, path, line, ledger)
        yield from to_sentences(document, path, ledger, line=line)


def _document(record: dict[str, Any], default_id: str) -> Document:
    document = Document(own_id(record.get("id"), default_id), record["text"], extra=rest(record, _KEYS))
    for number, item in enumerate(record.get("entities") or ()):
        name = own_id(item.get("id"), f"entity {number}")
        place = Span(item["start_offset"], item["end_offset"])
        document.mentions.append(Mention(name, item["label"], (place,), item.get("score"), rest(item, _ENTITY_KEYS)))
    for key in ("label", "labels"):
        for number, (start, end, label) in enumerate(record.get(key) or ()):
            document.mentions.append(Mention(f"{key} {number}", label, (Span(start, end),)))
    for item in record.get("relations") or ():
        ends = str(item["from_id"]), str(item["to_id"])
        document.arrows.append(Arrow(item["type"], *ends, item.get("score"), rest(item, _RELATION_KEYS)))
    return document


def _count_characters(document: Document, offsets: str | None, path: Path, line: int, ledger: Ledger) -> None:
    if offsets == "utf16":
        units = Utf16(document.text)
        for mention in document.mentions:
            mention.fragments = (units.to_characters(mention.fragments[0]),)
    elif offsets is None:
        if any(mention.fragments[0].end > len(document.text) for mention in document.mentions):
            problem = f"an entity ends behind the text's {len(document.text)} characters"
            raise FormatError(path, line, f"{problem}; are these offsets UTF-16 units (doccano:offsets=utf16)?")
        ledger.note("texts with characters beyond U+FFFF, offsets read as characters (or say doccano:offsets=utf16)")


def write(
    sentences: Iterable[Sentence], path: Path, ledger: Ledger, /, *, form: str = "entities", offsets: str = "characters"
) -> None:
    """``form`` is "entities" or "labels"."""
    numbers = count(1)  # doccano numbers entities and relations through the whole project
    documents = (without_discontinuous(document, ledger) for document in to_documents(sentences, ledger))
    if form == "labels":
        write_lines((_labels_record(document, offsets, ledger) for document in documents), path)
    else:
        write_lines((_entities_record(document, offsets, numbers, ledger) for document in documents), path)


def _places(document: Document, offsets: str) -> list[Span]:
    places = [mention.fragments[0] for mention in document.mentions]
    if offsets == "utf16" and is_wide(document.text):
        units = Utf16(document.text)
        return [units.from_characters(place) for place in places]
    return places


def _labels_record(document: Document, offsets: str, ledger: Ledger) -> dict[str, Any]:
    places = _places(document, offsets)
    labels = [[*place, mention.type] for place, mention in zip(places, document.mentions, strict=True)]
    ledger.lose("relations", "no place for relations in form=labels", len(document.arrows))
    record = {"id": id_value(document.id), "text": document.text, "label": labels}
    return with_rest(record, document.extra, _KEYS, ledger)


def _entities_record(document: Document, offsets: str, numbers: Iterator[int], ledger: Ledger) -> dict[str, Any]:
    entities, relations = [], []
    ids: dict[str, int] = {}
    for place, mention in zip(_places(document, offsets), document.mentions, strict=True):
        ids[mention.id] = next(numbers)
        item = {"id": ids[mention.id], "label": mention.type, "start_offset": place.start, "end_offset": place.end}
        entities.append(with_rest(item | scored(mention.score), mention.extra, _ENTITY_KEYS, ledger))
    for arrow in document.arrows:
        item = {"id": next(numbers), "from_id": ids[arrow.head], "to_id": ids[arrow.tail], "type": arrow.type}
        relations.append(with_rest(item | scored(arrow.score), arrow.extra, _RELATION_KEYS, ledger))
    record = {"id": id_value(document.id), "text": document.text, "entities": entities, "relations": relations}
    return with_rest(record, document.extra, _KEYS, ledger)


def sniff(sample: Sample) -> bool:
    labels = [*sample.items("label"), *sample.items("labels")]
    entities = sample.items("entities")
    has_text = bool(sample.dicts) and all(isinstance(r.get("text", r.get("data")), str) for r in sample.dicts)
    has_list = any(isinstance(r.get(key), list) for r in sample.dicts for key in ("label", "labels", "entities"))
    return (
        has_text
        and has_list
        and not sample.have("tokens")
        and all(_is_label(item) for item in labels)
        and all(isinstance(item, dict) and item.keys() >= {"label", "start_offset", "end_offset"} for item in entities)
    )


def _is_label(item: Any) -> bool:
    return isinstance(item, list) and [type(part) for part in item] == [int, int, str]


def _keeps(*, form: str = "entities", **others: Any) -> frozenset[str]:
    besides = () if form == "labels" else ("scores", "relation scores", "entity keys", "relation keys")
    return frozenset(("documents", "keys", *besides))


FORMAT = Format(
    name="doccano",
    by_characters=True,
    summary="doccano's JSON lines: a text with ranges of characters, and relations",
    read=read,
    write=write,
    sniff=sniff,
    extensions=(".jsonl",),
    holds=frozenset(("nested", "crossing", "several types", "relations", "links")),
    keeps_with=_keeps,
    read_options={"offsets": one_of("characters", "utf16")},
    write_options={"form": one_of("entities", "labels"), "offsets": one_of("characters", "utf16")},
)
