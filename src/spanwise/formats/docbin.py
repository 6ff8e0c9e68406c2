"""spaCy's binary ``.spacy`` files (DocBin): documents with entities and groups of spans.

An entity is what stands in ``doc.ents`` or in the group of spans that is read: ``doc.spans["sc"]``, or the only group there
is, or the one said with ``docbin:spans=KEY`` (nothing behind the equals sign: no group). What stands in both counts once.
Tokens are the words, except those of white space, which stay in the text; sentences are the document's own where it has any.

Written are all entities in ``doc.spans["sc"]`` and, of those that overlap, the wider ones in ``doc.ents``. spaCy holds
a DocBin in memory as a whole, on reading and on writing.
"""

from __future__ import annotations

import json
import zlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from spanwise.core import tags
from spanwise.core.errors import FormatError, SpanwiseError
from spanwise.core.types import Entity, Extra, Sentence, Span
from spanwise.files.names import default_id
from spanwise.formats.base import NAME, Format, Ledger
from spanwise.formats.shared.cutting import to_sentences
from spanwise.formats.shared.documents import Document, Mention, to_documents, without_discontinuous
from spanwise.formats.shared.records import own_id, with_rest
from spanwise.formats.shared.sample import Sample
from spanwise.formats.shared.spacy_tokens import covering

if TYPE_CHECKING:
    from spacy.tokens import Doc
    from spacy.tokens import Span as SpacySpan
    from spacy.vocab import Vocab

GROUP = "sc"  # what spaCy's span categorizer calls its own


def _spacy() -> tuple[type, type, type, type]:
    try:
        from spacy.tokens import Doc, DocBin, Span
        from spacy.vocab import Vocab
    except ImportError:
        raise SpanwiseError("docbin needs spaCy: pip install 'spanwise[spacy]'") from None
    return DocBin, Doc, Span, Vocab


def read(path: Path, ledger: Ledger, /, *, spans: str | None = None, annotated: bool = True) -> Iterator[Sentence]:
    """``spans`` is the key of the group of spans to read besides the entities."""
    seen: set[str] = set()
    for number, doc in enumerate(_docs(path)):
        seen.update(doc.spans)
        try:
            mentions = _mentions(doc, spans, path, ledger) if annotated else []
            name, extra = _user_data(doc, ledger)
            document = Document(own_id(name, default_id(path, number)), doc.text, mentions, extra=extra)
            words = [Span(token.idx, token.idx + len(token.text)) for token in doc]
            sentences = [Span(sent.start_char, sent.end_char) for sent in doc.sents] if _has_sentences(doc) else None
        except SpanwiseError:
            raise
        except Exception as error:
            raise FormatError(path, None, f"document {number + 1}: {_short(error)}") from None
        yield from to_sentences(document, path, ledger, words=words, sentences=sentences)
    if spans and spans not in seen:
        raise SpanwiseError(
            f"{path}: no document has spans {spans!r}; there are {', '.join(map(repr, sorted(seen))) or 'none'}"
        )


def _docs(path: Path) -> Iterator[Doc]:
    """The documents of a file. Whatever spaCy says of bytes that are none of its own is said as an error of the file."""
    docbin, _, _, vocab = _spacy()
    try:
        docs = docbin().from_bytes(path.read_bytes()).get_docs(vocab())
    except OSError as error:
        raise SpanwiseError(f"{path}: {error.strerror}") from None
    except Exception as error:
        raise FormatError(path, None, f"not a DocBin of spaCy, or a broken one: {_short(error)}") from None
    while True:
        try:
            doc = next(docs, None)
        except Exception as error:
            raise FormatError(path, None, f"not a DocBin of spaCy, or a broken one: {_short(error)}") from None
        if doc is None:
            return
        yield doc


def _short(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _has_sentences(doc: Doc) -> bool:
    return bool(doc.has_annotation("SENT_START"))


def _mentions(doc: Doc, spans: str | None, path: Path, ledger: Ledger) -> list[Mention]:
    group = _group(doc, spans, path, ledger)
    found = [*group, *doc.ents]
    entities = [(span.start_char, span.end_char, span.label_) for span in group]
    known = set(entities)
    mentions = []
    for number, span in enumerate(found):
        if number >= len(group) and (span.start_char, span.end_char, span.label_) in known:
            continue
        if not span.label_:
            ledger.lose("entities", "spans without a label")
            continue
        if span.start_char == span.end_char:
            ledger.lose("entities", "empty spans")
            continue
        place = Span(span.start_char, span.end_char)
        mentions.append(Mention(str(number), span.label_, (place,), extra=_names(span)))
    return sorted(mentions, key=lambda mention: (mention.fragments[0].start, -mention.fragments[0].end))


def _group(doc: Doc, spans: str | None, path: Path, ledger: Ledger) -> list[SpacySpan]:
    keys = list(doc.spans)
    key = spans if spans is not None else GROUP if GROUP in keys else keys[0] if len(keys) == 1 else None
    if key is None and keys:
        named = ", ".join(map(repr, keys))
        raise FormatError(path, None, f"there are the groups of spans {named}; say which, as in docbin:spans={keys[0]}")
    others = sum(len(doc.spans[other]) for other in keys if other != key)
    if spans is None:
        ledger.lose("entities", "in other groups of spans (docbin:spans=KEY chooses one)", others)
    else:
        ledger.note("spans in groups that were not chosen, not read", others)
    return list(doc.spans[key]) if key in keys else []


def _names(span: SpacySpan) -> Extra | None:
    """What a span refers to: its entry in a knowledge base, and its id."""
    names = {"kb_id": span.kb_id_, "span_id": span.id_}
    return {key: value for key, value in names.items() if value} or None


def _user_data(doc: Doc, ledger: Ledger) -> tuple[str | int | None, Extra | None]:
    """The id and what else JSON can hold of ``doc.user_data``; extension attributes and objects are not for us to keep."""
    extra = {}
    for key, value in doc.user_data.items():
        try:
            if not isinstance(key, str):
                raise TypeError("an extension attribute")
            extra[key] = json.loads(json.dumps(value, allow_nan=False))
        except (TypeError, ValueError):
            ledger.note("attributes that programs put on documents, not read")
    name = extra.pop("id", None) if isinstance(extra.get("id"), str | int) else None
    return name, extra or None


def write(sentences: Iterable[Sentence], path: Path, ledger: Ledger, /) -> None:
    docbin, _, _, vocab_class = _spacy()
    vocab = vocab_class()
    docs = docbin(attrs=["ENT_IOB", "ENT_TYPE", "ENT_KB_ID", "ENT_ID", "SENT_START"], store_user_data=True)
    for document in to_documents(sentences, ledger):
        ledger.lose("relations", "no place for relations", len(document.arrows))
        document.arrows = []
        doc = _doc(without_discontinuous(document, ledger), vocab)
        doc.user_data = with_rest({"id": document.id}, document.extra, {"id"}, ledger)
        if document.extra:
            try:
                doc.to_bytes()
            except (TypeError, ValueError, OverflowError):  # a number too big for msgpack, say
                ledger.note("keys left out: a DocBin cannot hold them", len(doc.user_data) - 1)
                doc.user_data = {"id": document.id}
        docs.add(doc)
    try:
        docs.to_disk(path)
    except ValueError as error:
        raise SpanwiseError(f"{path}: {_short(error)}") from None


def _doc(document: Document, vocab: Vocab) -> Doc:
    _, doc_class, span_class, _ = _spacy()
    tokens = covering(document.text, document.words)
    starts = [token.start for token in tokens]
    begins = {bisect_left(starts, sentence.start) for sentence in document.sentences}
    doc = doc_class(
        vocab,
        words=[document.text[token.start : token.end] for token in tokens],
        spaces=[token.space for token in tokens],
        sent_starts=[number in begins for number in range(len(tokens))],
    )
    first = {token.start: number for number, token in enumerate(tokens)}
    last = {token.end: number for number, token in enumerate(tokens)}
    spans = []
    for mention in document.mentions:
        start, end = mention.fragments[0]
        extra = mention.extra or {}
        names = {key: extra[key] for key in ("kb_id", "span_id") if isinstance(extra.get(key), str)}
        spans.append(span_class(doc, first[start], last[end] + 1, label=mention.type, **names))
    doc.spans[GROUP] = spans
    entities = {Entity(span.label_, (Span(span.start, span.end),)): span for span in spans}
    doc.ents = [entities[entity] for level in tags.levels(entities, most=1) for entity in level]
    return doc


def sniff(sample: Sample) -> bool:
    if sample.is_folder or not sample.raw.startswith(b"\x78"):
        return False
    try:
        head = zlib.decompressobj().decompress(sample.raw, 256)
    except zlib.error:
        return False
    return b"version" in head and b"attrs" in head


FORMAT = Format(
    name="docbin",
    by_characters=True,
    summary="spaCy's binary .spacy files: entities and groups of spans",
    read=read,
    write=write,
    sniff=sniff,
    extensions=(".spacy",),
    holds=frozenset(("nested", "crossing", "several types")),
    keeps=frozenset(("documents", "keys")),
    own_keys=frozenset(("kb_id", "span_id")),
    read_options={"spans": NAME},
    extra="spacy",
)
