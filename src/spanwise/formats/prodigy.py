"""JSON lines of Prodigy: a text with tokens, character spans, and relations between spans.

``{"text": "…", "tokens": [{"text": "Oslo", "start": 0, "end": 4, "id": 0, "ws": true}], "spans": [{"start": 0, "end": 4,
"token_start": 0, "token_end": 0, "label": "Place"}], "relations": [{"head": 0, "child": 3, "head_span": {…}, "child_span":
{…}, "label": "near"}], "answer": "accept"}``. ``token_end`` is inclusive. ``head`` and ``child`` are the last
tokens of spans.

Only accepted answers are read. A relation may refer to a token outside all spans. Such relations are
counted as lost, unless ``unlabelled=TYPE`` turns these tokens into entities of that type.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NotRequired

from pydantic import ConfigDict, TypeAdapter
from typing_extensions import TypedDict

from spanwise.core.counting import counted
from spanwise.core.errors import FormatError
from spanwise.core.types import Sentence, Span
from spanwise.files.names import default_id
from spanwise.files.reading import read_json_records, validate_record
from spanwise.formats.base import NAME, YES_OR_NO, Format, Ledger
from spanwise.formats.shared.documents import (
    DEFAULT_RELATION_TYPE,
    Document,
    Mention,
    MentionRelation,
    drop_discontinuous,
    to_documents,
)
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
from spanwise.formats.shared.spacy_tokens import Token, cover_with_tokens
from spanwise.formats.shared.splitting import to_sentences


class _Token(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow", defer_build=True)  # type: ignore[misc]
    start: StrictInt
    end: StrictInt


class _Span(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow", defer_build=True)  # type: ignore[misc]
    start: NotRequired[StrictInt | None]
    end: NotRequired[StrictInt | None]
    token_start: NotRequired[StrictInt | None]
    token_end: NotRequired[StrictInt | None]
    label: NotRequired[str | None]
    score: NotRequired[StrictFloat | None]


class _Relation(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow", defer_build=True)  # type: ignore[misc]
    head: NotRequired[StrictInt | None]
    child: NotRequired[StrictInt | None]
    head_span: NotRequired[_Span | None]
    child_span: NotRequired[_Span | None]
    label: NotRequired[str | None]
    score: NotRequired[StrictFloat | None]


class _Record(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow", defer_build=True)  # type: ignore[misc]
    text: str
    id: NotRequired[Id | None]
    tokens: NotRequired[list[_Token] | None]
    spans: NotRequired[list[_Span] | None]
    relations: NotRequired[list[_Relation] | None]
    answer: NotRequired[str | None]


_SHAPE: TypeAdapter[_Record] = TypeAdapter(_Record)
_KEYS = frozenset(_Record.__annotations__)
_ANNOTATION_KEYS = ("spans", "relations")
_SPAN_KEYS = frozenset(("text", *_Span.__annotations__))
_RELATION_KEYS = frozenset(_Relation.__annotations__)


def read(
    path: Path, ledger: Ledger, /, *, unlabelled: str | None = None, split: bool = True, with_annotations: bool = True
) -> Iterator[Sentence]:  # fmt: skip
    """Read accepted records.

    ``unlabelled`` is the type for spans and related tokens without a label. ``split=False`` keeps each text
    as one sentence.
    """
    for number, (line, raw) in enumerate(read_json_records(path)):
        answer = raw.get("answer") if isinstance(raw, dict) else None
        if isinstance(answer, str) and answer != "accept":
            ledger.note(f"records with the answer {answer!r}, not read")
            continue
        record = validate_record(_SHAPE, raw if with_annotations else without_keys(raw, _ANNOTATION_KEYS), path, line)
        words = [Span(token["start"], token["end"]) for token in record.get("tokens") or ()]
        document = _RecordReader(record, words, path, line, ledger, unlabelled).to_document(default_id(path, number))
        yield from to_sentences(document, path, ledger, line=line, split=split, words=words or None)


class _RecordReader:
    """The reader of one record."""

    def __init__(
        self, record: dict[str, Any], words: list[Span], path: Path, line: int, ledger: Ledger, unlabelled: str | None
    ) -> None:
        self.record, self.words, self.path, self.line = record, words, path, line
        self.ledger, self.unlabelled = ledger, unlabelled
        self.mentions: list[Mention] = []
        self.by_span: dict[Span, dict[str, Mention]] = {}  # and by type
        self.by_end: dict[int, Mention] = {}  # the widest mention with this end

    def to_document(self, default_id: str) -> Document:
        record = self.record
        for span in record.get("spans") or ():
            if not span.get("label") and not self.unlabelled:
                self.ledger.lose("entities", "spans without a label; read them with prodigy:unlabelled=TYPE")
            else:
                self._add(self._locate(span), span)
        relations = []
        for relation in record.get("relations") or ():
            head, tail = self._argument(relation, "head"), self._argument(relation, "child")
            if head is None or tail is None:
                self.ledger.lose("relations", "between tokens without a label; read them with prodigy:unlabelled=TYPE")
            else:
                label = relation.get("label") or DEFAULT_RELATION_TYPE
                relations.append(
                    MentionRelation(label, head.id, tail.id, relation.get("score"), unknown_keys(relation, _RELATION_KEYS))
                )
        id = id_or_default(record.get("id"), default_id)
        return Document(id, record["text"], self.mentions, relations, unknown_keys(record, _KEYS))

    def _add(self, span: Span, item: dict[str, Any]) -> Mention:
        label = item.get("label") or self.unlabelled or ""
        id = str(len(self.mentions) + 1)
        mention = Mention(id, label, (span,), item.get("score"), unknown_keys(item, _SPAN_KEYS))
        self.mentions.append(mention)
        self.by_span.setdefault(span, {}).setdefault(label, mention)
        if span.start < self.by_end.setdefault(span.end, mention).fragments[0].start:
            self.by_end[span.end] = mention
        return mention

    def _locate(self, item: dict[str, Any]) -> Span:
        start, end = item.get("start"), item.get("end")
        if start is not None and end is not None:
            return Span(start, end)
        first, last = item.get("token_start"), item.get("token_end")
        if first is None or last is None:
            raise FormatError(self.path, self.line, "a span needs start and end, or token_start and token_end")
        return Span(self._token(first).start, self._token(last).end)

    def _token(self, number: int) -> Span:
        if not 0 <= number < len(self.words):
            raise FormatError(
                self.path, self.line, f"token {number} does not exist; the record has {counted(len(self.words), 'token')}"
            )
        return self.words[number]

    def _argument(self, relation: dict[str, Any], role: str) -> Mention | None:
        """Return the mention at one end of a relation; with ``unlabelled``, add it if it has no label."""
        item = relation.get(f"{role}_span")
        if item is not None:
            span, label = self._locate(item), item.get("label")
            candidates = self.by_span.get(span, {})
            mention = candidates.get(label) if label else next(iter(candidates.values()), None)
        else:
            if relation.get(role) is None:
                raise FormatError(self.path, self.line, f"a relation needs {role} or {role}_span")
            span, item = self._token(relation[role]), {}
            mention = self.by_end.get(span.end)
        return self._add(span, item) if mention is None and self.unlabelled else mention


def write(sentences: Iterable[Sentence], path: Path, ledger: Ledger, /) -> None:
    documents = (drop_discontinuous(document, ledger) for document in to_documents(sentences, ledger))
    write_json_lines((_to_record(document, ledger) for document in documents), path)


def _to_record(document: Document, ledger: Ledger) -> dict[str, Any]:
    text = document.text
    tokens = cover_with_tokens(text, document.words)
    spans = {mention.id: _to_span(mention, tokens) for mention in document.mentions}
    relations = []
    for relation in document.relations:
        head, child = spans[relation.head], spans[relation.tail]
        item = {"head": head["token_end"], "child": child["token_end"], "head_span": head, "child_span": child}
        item |= {"label": relation.type, **score_field(relation.score)}
        relations.append(add_extra(item, relation.extra, _RELATION_KEYS, ledger))
    items = [
        add_extra({**spans[mention.id], **score_field(mention.score)}, mention.extra, _SPAN_KEYS, ledger)
        for mention in document.mentions
    ]
    record = {
        "id": json_id(document.id),
        "text": text,
        "tokens": [
            {"text": text[start:end], "start": start, "end": end, "id": number, "ws": has_space}
            for number, (start, end, has_space) in enumerate(tokens)
        ],
        "spans": items,
        **({"relations": relations} if relations else {}),
        "answer": "accept",
    }
    return add_extra(record, document.extra, _KEYS, ledger)


def _to_span(mention: Mention, tokens: list[Token]) -> dict[str, Any]:
    start, end = mention.fragments[0]
    first = bisect_left(tokens, start, key=lambda token: token.start)
    last = bisect_right(tokens, end, key=lambda token: token.end) - 1
    return {"start": start, "end": end, "token_start": first, "token_end": last, "label": mention.type}


def sniff(sample: Sample) -> bool:
    if not sample.all_have("text"):
        return False
    spans, tokens = sample.list_items("spans"), sample.list_items("tokens")
    has_prodigy_keys = any(
        key in record for record in sample.dicts for key in ("_input_hash", "_task_hash", "_view_id", "answer")
    )
    has_spans = all(isinstance(s, dict) and (s.keys() >= {"start", "end"} or "token_start" in s) for s in spans)
    if not has_spans or not all(isinstance(token, dict) for token in tokens):
        return False
    if any(isinstance(record.get("ents"), list) for record in sample.dicts):
        return False  # spaCy's Doc.to_json, whose tokens look the same
    # Files converted from Prodigy, such as doccano's, may have its keys, but their entities are elsewhere.
    has_other_entities = any(
        isinstance(record.get(key), list) for record in sample.dicts for key in ("entities", "label", "labels")
    )
    return bool(tokens) or ((bool(spans) or has_prodigy_keys) and not has_other_entities)


FORMAT = Format(
    name="prodigy",
    has_character_offsets=True,
    summary="JSON lines of Prodigy: a text with tokens, spans and relations (ner, spans and rel recipes)",
    read=read,
    write=write,
    sniff=sniff,
    extensions=(".jsonl",),
    supports=frozenset(("nested", "crossing", "several types", "relations", "links")),
    metadata=frozenset(("documents", "scores", "relation scores", "keys", "entity keys", "relation keys")),
    read_options={"unlabelled": NAME, "split": YES_OR_NO},
)
