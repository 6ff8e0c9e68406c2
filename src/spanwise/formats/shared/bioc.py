"""Documents of BioC, in the shape of its JSON; the XML reader and writer use the same shape.

- Passages are joined into one text at their offsets. ``extra["passages"]`` of the document keeps where
  they are and their infons.
- An annotation is an entity with one fragment per location. Its type is the infon ``type``, its score
  the infon ``score``. Its id and other infons are stored in ``Entity.extra``.
- A relation with two nodes that are annotations is a relation or a link. Other relations (of concepts,
  or of more nodes) are stored unchanged in ``extra["concept_relations"]`` of the document.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from pathlib import Path
from typing import Any, NamedTuple, NotRequired

from pydantic import ConfigDict, TypeAdapter
from typing_extensions import TypedDict

from spanwise.core.types import Span
from spanwise.files.reading import validate_record
from spanwise.formats.base import Ledger
from spanwise.formats.shared.documents import CONCEPT_RELATIONS, DEFAULT_RELATION_TYPE, Document, Mention, MentionRelation
from spanwise.formats.shared.records import Id, StrictInt, id_or_default, unknown_keys, without_keys
from spanwise.text.text_index import TextIndex

DEFAULT_TYPE = "Entity"  # for annotations without a type
SUPPORTS = frozenset(("nested", "crossing", "discontinuous", "several types", "relations", "links"))
METADATA = frozenset(("documents", "scores", "relation scores", "keys", "entity keys", "relation keys"))
_MAX_GAP = 1000  # characters between passages; wider gaps are closed
ARGUMENTS = ["Arg1", "Arg2"]


class _Location(TypedDict):
    offset: StrictInt
    length: StrictInt


class _Annotation(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow", defer_build=True)  # type: ignore[misc]
    id: NotRequired[Id | None]
    infons: NotRequired[dict[str, Any] | None]
    text: NotRequired[str | None]
    locations: NotRequired[list[_Location] | None]


class _Node(TypedDict):
    refid: Id
    role: NotRequired[str | None]


class BiocRelation(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow", defer_build=True)  # type: ignore[misc]
    id: NotRequired[Id | None]
    infons: NotRequired[dict[str, Any] | None]
    nodes: NotRequired[list[_Node] | None]


class _Sentence(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow", defer_build=True)  # type: ignore[misc]
    offset: StrictInt
    text: NotRequired[str | None]
    infons: NotRequired[dict[str, Any] | None]
    annotations: NotRequired[list[_Annotation] | None]
    relations: NotRequired[list[BiocRelation] | None]


class _Passage(_Sentence):
    sentences: NotRequired[list[_Sentence] | None]


class _Document(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow", defer_build=True)  # type: ignore[misc]
    id: NotRequired[Id | None]
    passages: list[_Passage]
    infons: NotRequired[dict[str, Any] | None]
    annotations: NotRequired[list[_Annotation] | None]
    relations: NotRequired[list[BiocRelation] | None]


_SHAPE: TypeAdapter[_Document] = TypeAdapter(_Document)
_DOCUMENT_KEYS = frozenset(_Document.__annotations__)
_ANNOTATION_KEYS = ("annotations", "relations")


def to_document(
    record: Any, collection: dict[str, Any] | None, default_id: str, path: Path, line: int, ledger: Ledger,
    with_annotations: bool,
) -> tuple[Document, list[Span] | None]:  # fmt: skip
    """Return the document of a record, and its sentences if the file has them."""
    if not with_annotations:
        record = _without_annotations(record)
    reader = _DocumentReader(validate_record(_SHAPE, record, path, line), ledger)
    return reader.to_document(default_id, collection), reader.sentences or None


def _without_annotations(record: Any) -> Any:
    """Return the record without annotations and relations, which are then not validated."""
    record = without_keys(record, _ANNOTATION_KEYS)
    for key in ("passages", "sentences"):
        if isinstance(record, dict) and isinstance(record.get(key), list):
            record[key] = [_without_annotations(part) for part in record[key]]
    return record


class _Part(NamedTuple):
    """The offset of a text in the file, its shift in the document, and its end in the file."""

    offset: int
    shift: int
    end: int


class _DocumentReader:
    """The reader of one document."""

    def __init__(self, record: dict[str, Any], ledger: Ledger) -> None:
        self.record, self.ledger = record, ledger
        self.pieces: list[str] = []
        self.length = 0
        self.parts: list[_Part] = []
        self.passages: list[dict[str, Any]] = []
        self.sentences: list[Span] = []
        self.annotations: list[tuple[dict[str, Any], list[_Part]]] = []  # with the parts of their passage
        self.relations: list[dict[str, Any]] = []

    def to_document(self, default_id: str, collection: dict[str, Any] | None) -> Document:
        record = self.record
        has_sentences = all(passage.get("sentences") for passage in record["passages"])
        for passage in record["passages"]:
            self._add_passage(passage)
        if not has_sentences:
            self.sentences.clear()
        self._collect(record, [])
        self.parts.sort()
        text = "".join(self.pieces)
        mentions, ids = self._mentions(text)
        extra = {**(unknown_keys(record, _DOCUMENT_KEYS) or {}), **(record.get("infons") or {})}
        if any(len(passage) > 2 for passage in self.passages) or len(self.passages) > 1:
            extra["passages"] = self.passages
        relations, others = self._relations(ids)
        self.ledger.note(CONCEPT_RELATIONS, len(others))
        if others:
            extra["concept_relations"] = others
        if filled := {key: value for key, value in (collection or {}).items() if value}:
            extra["collection"] = filled
        return Document(id_or_default(record.get("id"), default_id), text, mentions, relations, extra or None)

    def _add_passage(self, passage: dict[str, Any]) -> None:
        start, first_part = self.length, len(self.parts)
        sentences = passage.get("sentences") or []
        if passage.get("text") or not sentences:
            start = self._add_text(passage["offset"], passage.get("text") or "")
            first_offset = passage["offset"] - start
            self.sentences += [Span(s["offset"] - first_offset, self.length) for s in sentences]
        else:
            for number, sentence in enumerate(sentences):
                first = self._add_text(sentence["offset"], sentence.get("text") or "")
                self.sentences.append(Span(first, self.length))
                start = first if number == 0 else start
        kept = {"infons": passage["infons"]} if passage.get("infons") else {}
        self.passages.append({"start": start, "length": self.length - start, **kept})
        own_parts = sorted(self.parts[first_part:])
        for part in (passage, *sentences):
            self._collect(part, own_parts)
        self.ledger.note("infons of sentences, not kept", sum(bool(sentence.get("infons")) for sentence in sentences))

    def _add_text(self, offset: int, text: str) -> int:
        """Add a text at its offset in the file; return its first character in the document."""
        shift = self.parts[-1].shift if self.parts else -min(offset, 0)
        gap = offset + shift - self.length
        if not 0 <= gap <= _MAX_GAP:
            self.ledger.note("passages whose offset does not follow the previous passage", int(bool(self.parts)))
            gap = int(bool(self.parts))
        self.pieces += [filler(gap), text]
        start = self.length + gap
        self.length = start + len(text)
        self.parts.append(_Part(offset, start - offset, offset + len(text)))
        return start

    def _collect(self, part: dict[str, Any], own_parts: list[_Part]) -> None:
        self.annotations += [(annotation, own_parts) for annotation in part.get("annotations") or []]
        self.relations += part.get("relations") or []

    def _mentions(self, text: str) -> tuple[list[Mention], dict[str, Mention]]:
        index = TextIndex(text)
        mentions: list[Mention] = []
        by_id: dict[str, Mention] = {}
        for item, own_parts in self.annotations:
            locations = item.get("locations") or []
            if not locations:
                self.ledger.lose("entities", "without a location")
                continue
            fragments = tuple(sorted(self._locate(location, own_parts) for location in locations))
            infons = dict(item.get("infons") or {})
            type = infons.pop("type", None)
            self.ledger.note(f"annotations without a type, read as {DEFAULT_TYPE}", int(not type))
            id = item.get("id")
            score = _pop_score(infons)
            self.ledger.note("infons named id, not kept", int("id" in infons))
            if id not in (None, "", f"T{len(mentions) + 1}"):  # the writer uses these ids itself
                infons["id"] = str(id)
            mention = Mention(str(len(mentions) + 1), str(type or DEFAULT_TYPE), fragments, score, infons or None)
            mentions.append(mention)
            if id not in (None, ""):
                is_first = by_id.setdefault(str(id), mention) is mention
                self.ledger.note("annotation ids that occur twice in a document; relations use the first", int(not is_first))
            if item.get("text") and not index.matches(fragments, item["text"]):
                self.ledger.note("entities whose text differs from the document at their offsets")
        return mentions, by_id

    def _locate(self, location: dict[str, int], own_parts: list[_Part]) -> Span:
        """Return the characters of a location in the joined text, in its own passage if it fits there."""
        offset, length = location["offset"], location["length"]
        part = _part_at(own_parts, offset)
        if part is None or not part.offset <= offset <= offset + length <= part.end:
            part = _part_at(self.parts, offset)
        start = offset + (part.shift if part else 0)
        return Span(start, start + length)

    def _relations(self, ids: dict[str, Mention]) -> tuple[list[MentionRelation], list[dict[str, Any]]]:
        """Return the relations of two annotations, and the others."""
        relations: list[MentionRelation] = []
        others: list[dict[str, Any]] = []
        for item in self.relations:
            nodes = item.get("nodes") or []
            ends = [ids.get(str(node["refid"])) for node in nodes]
            if len(ends) != 2 or ends[0] is None or ends[1] is None:
                others.append({key: value for key, value in item.items() if value})
                continue
            roles = [node.get("role") or "" for node in nodes]
            head, tail = (ends[0].id, ends[1].id) if roles != ARGUMENTS[::-1] else (ends[1].id, ends[0].id)
            infons = dict(item.get("infons") or {})
            type = infons.pop("type", None) or infons.pop("relation", None) or DEFAULT_RELATION_TYPE
            score = _pop_score(infons)
            if item.get("id") not in (None, "", f"R{len(relations) + 1}"):
                infons["id"] = str(item["id"])
            if sorted(roles) != ARGUMENTS and any(roles):
                infons["roles"] = roles
            relations.append(MentionRelation(str(type), head, tail, score, infons or None))
        return relations, others


def _part_at(parts: list[_Part], offset: int) -> _Part | None:
    """Return the last part that starts at or before an offset, or the first."""
    return parts[max(0, bisect_right(parts, offset, key=lambda part: part.offset) - 1)] if parts else None


def filler(length: int) -> str:
    """Return the text between two passages: a line break, then spaces."""
    return "\n" + " " * (length - 1) if length else ""


def _pop_score(infons: dict[str, Any]) -> float | None:
    """Remove and return a score that is a finite number."""
    value = infons.get("score")
    try:
        score = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        return None
    if not math.isfinite(score):
        return None
    del infons["score"]
    return score
