"""Prodigy's JSON lines: a text with its tokens, spans of characters, and relations between spans.

``{"text": "…", "tokens": [{"text": "Oslo", "start": 0, "end": 4, "id": 0, "ws": true}], "spans": [{"start": 0, "end": 4,
"token_start": 0, "token_end": 0, "label": "Place"}], "relations": [{"head": 0, "child": 3, "head_span": {…}, "child_span":
{…}, "label": "near"}], "answer": "accept"}``. ``token_end`` is inclusive, ``head`` and ``child`` are the last tokens of spans.

Only accepted answers are read. A relation may end at a token that no span covers: there is no entity then to hold it, and
it is counted as lost, unless ``unlabelled=TYPE`` makes entities of that type of such tokens.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NotRequired

from pydantic import ConfigDict, TypeAdapter
from typing_extensions import TypedDict

from spanwise.core.errors import FormatError
from spanwise.core.types import Sentence, Span
from spanwise.files.names import default_id
from spanwise.files.reading import json_records, validate_record
from spanwise.formats.base import NAME, Format, Ledger
from spanwise.formats.shared.cutting import to_sentences
from spanwise.formats.shared.documents import UNNAMED, Arrow, Document, Mention, to_documents, without_discontinuous
from spanwise.formats.shared.records import Id, Number, Whole, id_value, own_id, rest, scored, with_rest, without, write_lines
from spanwise.formats.shared.sample import Sample
from spanwise.formats.shared.spacy_tokens import Token, covering


class _Token(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
    start: Whole
    end: Whole


class _Span(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
    start: NotRequired[Whole | None]
    end: NotRequired[Whole | None]
    token_start: NotRequired[Whole | None]
    token_end: NotRequired[Whole | None]
    label: NotRequired[str | None]
    score: NotRequired[Number | None]


class _Relation(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
    head: NotRequired[Whole | None]
    child: NotRequired[Whole | None]
    head_span: NotRequired[_Span | None]
    child_span: NotRequired[_Span | None]
    label: NotRequired[str | None]
    score: NotRequired[Number | None]


class _Record(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
    text: str
    id: NotRequired[Id | None]
    tokens: NotRequired[list[_Token] | None]
    spans: NotRequired[list[_Span] | None]
    relations: NotRequired[list[_Relation] | None]
    answer: NotRequired[str | None]


_SHAPE: TypeAdapter[_Record] = TypeAdapter(_Record)
_KEYS = frozenset(_Record.__annotations__)
_BARE = ("spans", "relations")
_SPAN_KEYS = frozenset(("text", *_Span.__annotations__))
_RELATION_KEYS = frozenset(_Relation.__annotations__)


def read(path: Path, ledger: Ledger, /, *, unlabelled: str | None = None, annotated: bool = True) -> Iterator[Sentence]:
    """``unlabelled`` is the type of entities made of tokens that have a relation and no label."""
    for number, (line, raw) in enumerate(json_records(path)):
        answer = raw.get("answer") if isinstance(raw, dict) else None
        if isinstance(answer, str) and answer != "accept":
            ledger.note(f"records answered {answer!r}, not read")
            continue
        record = validate_record(_SHAPE, raw if annotated else without(raw, _BARE), path, line)
        words = [Span(token["start"], token["end"]) for token in record.get("tokens") or ()]
        document = _Reader(record, words, path, line, ledger, unlabelled).document(default_id(path, number))
        yield from to_sentences(document, path, ledger, line=line, words=words or None)


class _Reader:
    """Reads one record."""

    def __init__(
        self, record: dict[str, Any], words: list[Span], path: Path, line: int, ledger: Ledger, unlabelled: str | None
    ) -> None:
        self.record, self.words, self.path, self.line = record, words, path, line
        self.ledger, self.unlabelled = ledger, unlabelled
        self.mentions: list[Mention] = []
        self.at: dict[Span, dict[str, Mention]] = {}  # by their type
        self.ending_at: dict[int, Mention] = {}  # of nested ones that end here, the widest

    def document(self, default_id: str) -> Document:
        record = self.record
        for span in record.get("spans") or ():
            if not span.get("label") and not self.unlabelled:
                self.ledger.lose("entities", "spans without a label (prodigy:unlabelled=TYPE gives them one)")
            else:
                self._add(self._place(span), span)
        arrows = []
        for relation in record.get("relations") or ():
            head, tail = self._end(relation, "head"), self._end(relation, "child")
            if head is None or tail is None:
                self.ledger.lose("relations", "of tokens without a label (prodigy:unlabelled=TYPE gives them one)")
            else:
                label = relation.get("label") or UNNAMED
                arrows.append(Arrow(label, head.id, tail.id, relation.get("score"), rest(relation, _RELATION_KEYS)))
        name = own_id(record.get("id"), default_id)
        return Document(name, record["text"], self.mentions, arrows, rest(record, _KEYS))

    def _add(self, place: Span, span: dict[str, Any]) -> Mention:
        label = span.get("label") or self.unlabelled or ""
        name = str(len(self.mentions) + 1)
        mention = Mention(name, label, (place,), span.get("score"), rest(span, _SPAN_KEYS))
        self.mentions.append(mention)
        self.at.setdefault(place, {}).setdefault(label, mention)
        if place.start < self.ending_at.setdefault(place.end, mention).fragments[0].start:
            self.ending_at[place.end] = mention
        return mention

    def _place(self, span: dict[str, Any]) -> Span:
        start, end = span.get("start"), span.get("end")
        if start is not None and end is not None:
            return Span(start, end)
        first, last = span.get("token_start"), span.get("token_end")
        if first is None or last is None:
            raise FormatError(self.path, self.line, "a span needs start and end, or token_start and token_end")
        return Span(self._token(first).start, self._token(last).end)

    def _token(self, number: int) -> Span:
        if not 0 <= number < len(self.words):
            raise FormatError(self.path, self.line, f"token {number} is named, the record has {len(self.words)} tokens")
        return self.words[number]

    def _end(self, relation: dict[str, Any], side: str) -> Mention | None:
        """The entity at one end of a relation, made where it has no label and ``unlabelled`` says so."""
        span = relation.get(f"{side}_span")
        if span is not None:
            place, label = self._place(span), span.get("label")
            here = self.at.get(place, {})
            found = here.get(label) if label else next(iter(here.values()), None)
        else:
            if relation.get(side) is None:
                raise FormatError(self.path, self.line, f"a relation needs {side} or {side}_span")
            place, span = self._token(relation[side]), {}
            found = self.ending_at.get(place.end)
        return self._add(place, span) if found is None and self.unlabelled else found


def write(sentences: Iterable[Sentence], path: Path, ledger: Ledger, /) -> None:
    documents = (without_discontinuous(document, ledger) for document in to_documents(sentences, ledger))
    write_lines((_record(document, ledger) for document in documents), path)


def _record(document: Document, ledger: Ledger) -> dict[str, Any]:
    text = document.text
    tokens = covering(text, document.words)
    spans = {mention.id: _span(mention, tokens) for mention in document.mentions}
    relations = []
    for arrow in document.arrows:
        head, child = spans[arrow.head], spans[arrow.tail]
        item = {"head": head["token_end"], "child": child["token_end"], "head_span": head, "child_span": child}
        item |= {"label": arrow.type, **scored(arrow.score)}
        relations.append(with_rest(item, arrow.extra, _RELATION_KEYS, ledger))
    items = [
        with_rest({**spans[mention.id], **scored(mention.score)}, mention.extra, _SPAN_KEYS, ledger)
        for mention in document.mentions
    ]
    record = {
        "id": id_value(document.id),
        "text": text,
        "tokens": [
            {"text": text[start:end], "start": start, "end": end, "id": number, "ws": space}
            for number, (start, end, space) in enumerate(tokens)
        ],
        "spans": items,
        **({"relations": relations} if relations else {}),
        "answer": "accept",
    }
    return with_rest(record, document.extra, _KEYS, ledger)


def _span(mention: Mention, tokens: list[Token]) -> dict[str, Any]:
    start, end = mention.fragments[0]
    first = bisect_left(tokens, start, key=lambda token: token.start)
    last = bisect_right(tokens, end, key=lambda token: token.end) - 1
    return {"start": start, "end": end, "token_start": first, "token_end": last, "label": mention.type}


def sniff(sample: Sample) -> bool:
    if not sample.have("text"):
        return False
    spans, tokens = sample.items("spans"), sample.items("tokens")
    is_prodigy = any(key in record for record in sample.dicts for key in ("_input_hash", "_task_hash", "_view_id", "answer"))
    is_span = all(isinstance(s, dict) and (s.keys() >= {"start", "end"} or "token_start" in s) for s in spans)
    if not is_span or not all(isinstance(token, dict) for token in tokens):
        return False
    # Prodigy's own marks go with its data: doccano's, say, may have them too, but has its entities elsewhere.
    others = any(isinstance(record.get(key), list) for record in sample.dicts for key in ("entities", "label", "labels"))
    return bool(tokens) or ((bool(spans) or is_prodigy) and not others)


FORMAT = Format(
    name="prodigy",
    by_characters=True,
    summary="Prodigy's JSON lines: a text with tokens, spans and relations (ner, spans and rel recipes)",
    read=read,
    write=write,
    sniff=sniff,
    extensions=(".jsonl",),
    holds=frozenset(("nested", "crossing", "several types", "relations", "links")),
    keeps=frozenset(("documents", "scores", "relation scores", "keys", "entity keys", "relation keys")),
    read_options={"unlabelled": NAME},
)
