"""Records of BioC documents, in the shape of its JSON, from documents with mentions."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import TypeAdapter

from spanwise.core.types import Span
from spanwise.formats.base import Ledger
from spanwise.formats.shared.bioc import ARGUMENTS, BiocRelation, filler
from spanwise.formats.shared.documents import Document, Mention, MentionRelation

_RELATION: TypeAdapter[BiocRelation] = TypeAdapter(BiocRelation)


def collection_of(document: Document | None, ledger: Ledger) -> dict[str, Any]:
    """Return source, date, key and infons of the collection that the first document was read from."""
    stored = (document.extra or {}).get("collection") if document else None
    collection = stored if isinstance(stored, dict) else {}
    texts = {key: value if isinstance(value := collection.get(key), str) else "" for key in ("source", "date", "key")}
    infons = collection.get("infons")
    ledger.note("keys of the collection, not written", len(collection.keys() - {*texts, "infons"}))
    return {**texts, "infons": infons if isinstance(infons, dict) else {}}


def to_record(document: Document, ledger: Ledger) -> dict[str, Any]:
    """Return the record of a document; infons may have values of any type."""
    infons = dict(document.extra or {})
    infons.pop("collection", None)
    passages = _passages(document, infons.pop("passages", None), ledger)
    others = [item for item in _as_list(infons.pop("concept_relations", None)) if _is_relation(item, ledger)]
    ids = _choose_ids(document.mentions)
    outside: list[dict[str, Any]] = []
    starts = [passage["offset"] for passage in passages]
    for mention in document.mentions:
        first, last = mention.fragments[0].start, mention.fragments[-1].end
        passage = passages[max(0, bisect_right(starts, first) - 1)]
        is_inside = passage["offset"] <= first and last <= passage["offset"] + len(passage["text"])
        target = passage["annotations"] if is_inside else outside
        target.append(_annotation(mention, ids[mention.id], document.text, ledger))
    relations = [_relation(relation, f"R{number}", ids, ledger) for number, relation in enumerate(document.relations, 1)]
    return {"id": document.id, "infons": infons, "passages": passages, "annotations": outside, "relations": relations + others}


def _passages(document: Document, stored: Any, ledger: Ledger) -> list[dict[str, Any]]:
    """Return the passages that were read, if they still fit the text, or one passage."""
    text, end = document.text, 0
    passages: list[dict[str, Any]] = []
    for item in _as_list(stored):
        span = _stored_span(item)
        if not end <= span.start <= span.end <= len(text) or text[end : span.start] != filler(span.start - end):
            break
        end = span.end
        infons = item.get("infons")
        passages.append(_passage(span.start, text[span.start : end], infons if isinstance(infons, dict) else {}))
    if end == len(text) and passages:
        return passages
    ledger.note("documents written as one passage, because their passages do not fit the text", int(bool(stored)))
    return [_passage(0, text, {})]


def _stored_span(item: Any) -> Span:
    """Return the characters of a stored passage; an impossible span if it is not one."""
    start, length = (item.get("start"), item.get("length")) if isinstance(item, dict) else (None, None)
    return Span(start, start + length) if isinstance(start, int) and isinstance(length, int) else Span(-1, -1)


def _passage(offset: int, text: str, infons: dict[str, Any]) -> dict[str, Any]:
    return {"offset": offset, "infons": infons, "text": text, "sentences": [], "annotations": [], "relations": []}


def _choose_ids(mentions: Iterable[Mention]) -> dict[str, str]:
    """Return the ids to write: those that were read if they are distinct, or else new ones."""
    chosen: dict[str, str] = {}
    taken: set[str] = set()
    unnamed: list[Mention] = []
    for mention in mentions:
        id = (mention.extra or {}).get("id")
        if isinstance(id, str) and id and id not in taken:
            chosen[mention.id] = id
            taken.add(id)
        else:
            unnamed.append(mention)
    for mention, id in zip(unnamed, _free_ids(taken), strict=False):
        chosen[mention.id] = id
    return chosen


def _free_ids(taken: set[str]) -> Iterator[str]:
    number = 0
    while True:
        number += 1
        if f"T{number}" not in taken:
            yield f"T{number}"


def _annotation(mention: Mention, id: str, text: str, ledger: Ledger) -> dict[str, Any]:
    return {
        "id": id,
        "infons": _infons(mention, ("id",), ledger),
        "text": " ".join(text[start:end] for start, end in mention.fragments),
        "locations": [{"offset": start, "length": end - start} for start, end in mention.fragments],
    }


def _relation(relation: MentionRelation, id: str, ids: dict[str, str], ledger: Ledger) -> dict[str, Any]:
    extra = relation.extra or {}
    roles = extra.get("roles")
    if not isinstance(roles, list) or len(roles) != 2 or not all(isinstance(role, str) for role in roles):
        roles = ARGUMENTS
    nodes = [{"refid": ids[end], "role": role} for end, role in zip((relation.head, relation.tail), roles, strict=True)]
    given = extra.get("id")
    return {
        "id": given if isinstance(given, str) and given else id,
        "infons": _infons(relation, ("id", "roles"), ledger),
        "nodes": nodes,
    }


def _infons(item: Mention | MentionRelation, skipped: tuple[str, ...], ledger: Ledger) -> dict[str, Any]:
    infons: dict[str, Any] = {"type": item.type}
    if item.score is not None:
        infons["score"] = item.score
    for key, value in (item.extra or {}).items():
        if key in infons:
            ledger.note(f"keys dropped: {key!r} has another meaning in this format")
        elif key not in skipped:
            infons[key] = value
    return infons


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_relation(item: Any, ledger: Ledger) -> bool:
    """Return True for a relation in the shape of BioC; those of other formats are dropped with a note."""
    try:
        _RELATION.validate_python(item)
    except ValueError:
        ledger.note("keys dropped: not in the shape of BioC data")
        return False
    return True
