"""Binary ``.spacy`` files of spaCy (DocBin): documents with entities and span groups.

Entities are read from ``doc.ents`` and from one span group: ``doc.spans["sc"]``, the only group, or the one
given by ``docbin:spans=KEY`` (an empty key selects none). An entity in both is read once. Tokens are
words, except whitespace tokens. Sentences are those of the document, if it has any. If a document without
a span group has entity annotations on some tokens only, the others are open (``Sentence.annotated``).

All entities are written to ``doc.spans["sc"]``, and the wider of overlapping ones to ``doc.ents``. spaCy
keeps a whole DocBin in memory.
"""

from __future__ import annotations

import json
import zlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from spanwise.core import tags
from spanwise.core.errors import FormatError, SpanwiseError
from spanwise.core.types import Entity, Extra, Sentence, Span
from spanwise.files.limits import DOCUMENT_TOKENS, MEGABYTE, check_expansion
from spanwise.files.names import default_id
from spanwise.formats.base import NAME, Format, Ledger
from spanwise.formats.shared.documents import Document, Mention, drop_discontinuous, to_documents
from spanwise.formats.shared.records import add_extra, id_or_default
from spanwise.formats.shared.sample import Sample
from spanwise.formats.shared.spacy_tokens import cover_with_tokens
from spanwise.formats.shared.splitting import to_sentences

if TYPE_CHECKING:
    from spacy.tokens import Doc
    from spacy.tokens import Span as SpacySpan
    from spacy.vocab import Vocab

GROUP = "sc"  # the default key of spaCy's span categorizer


def _spacy() -> tuple[type, type, type, type]:
    try:
        from spacy.tokens import Doc, DocBin, Span
        from spacy.vocab import Vocab
    except ImportError:
        raise SpanwiseError("docbin requires spaCy; run pip install 'spanwise[spacy]'") from None
    return DocBin, Doc, Span, Vocab


def read(path: Path, ledger: Ledger, /, *, spans: str | None = None, with_annotations: bool = True) -> Iterator[Sentence]:
    """Read documents. ``spans`` is the key of the span group to read in addition to ``doc.ents``."""
    groups: set[str] = set()
    for number, doc in enumerate(_docs(path)):
        groups.update(doc.spans)
        try:
            mentions = _mentions(doc, spans, path, ledger) if with_annotations else []
            id, extra = _read_user_data(doc, ledger)
            document = Document(id_or_default(id, default_id(path, number)), doc.text, mentions, extra=extra)
            words = [Span(token.idx, token.idx + len(token.text)) for token in doc]
            sentences = [Span(sent.start_char, sent.end_char) for sent in doc.sents] if _has_sentences(doc) else None
        except SpanwiseError:
            raise
        except Exception as error:
            raise FormatError(path, None, f"document {number + 1}: {_describe(error)}") from None
        open_characters = _open_characters(doc) if with_annotations and not any(doc.spans.values()) else set()
        for sentence in to_sentences(document, path, ledger, words=words, sentences=sentences):
            yield _mark(sentence, open_characters)
    if spans and spans not in groups:
        listed = ", ".join(map(repr, sorted(groups))) or "none"
        raise SpanwiseError(f"{path}: no document has a span group {spans!r}; found {listed}")


def _open_characters(doc: Doc) -> set[int]:
    """Return the first characters of tokens with a missing value; none if all tokens or no tokens have a value."""
    return {token.idx for token in doc if not token.ent_iob} if doc.has_annotation("ENT_IOB") else set()


def _mark(sentence: Sentence, open_characters: set[int]) -> Sentence:
    """Return the sentence with the ranges of words that are annotated, if some of its words are not."""
    is_open = [(sentence.start or 0) + start in open_characters for start in sentence.starts]
    if not any(is_open):
        return sentence
    edges = [index for index, (a, b) in enumerate(pairwise([True, *is_open, True])) if a != b]
    return replace(sentence, annotated=tuple(map(Span, edges[::2], edges[1::2])))


def _docs(path: Path) -> Iterator[Doc]:
    """Yield the documents of a file; all exceptions of spaCy become ``FormatError``."""
    docbin, _, _, vocab = _spacy()
    try:
        raw = path.read_bytes()
        _check_expansion(path, raw)
        docs = docbin().from_bytes(raw)
        if (longest := max(map(len, docs.tokens), default=0)) > DOCUMENT_TOKENS:
            raise FormatError(path, None, f"a document has {longest:,} tokens; the limit is {DOCUMENT_TOKENS:,}")
        docs = docs.get_docs(vocab())
    except OSError as error:
        raise SpanwiseError(f"{path}: {error.strerror}") from None
    except SpanwiseError:
        raise
    except Exception as error:
        raise FormatError(path, None, f"not a valid spaCy DocBin: {_describe(error)}") from None
    while True:
        try:
            doc = next(docs, None)
        except Exception as error:
            raise FormatError(path, None, f"not a valid spaCy DocBin: {_describe(error)}") from None
        if doc is None:
            return
        yield doc


def _check_expansion(path: Path, raw: bytes) -> None:
    """Decompress a file piece by piece, before spaCy does so at once."""
    decompressor, expanded = zlib.decompressobj(), 0
    while raw and not decompressor.eof:
        expanded += len(decompressor.decompress(raw, MEGABYTE))
        check_expansion(path, path.stat().st_size, expanded)
        raw = decompressor.unconsumed_tail


def _describe(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _has_sentences(doc: Doc) -> bool:
    return bool(doc.has_annotation("SENT_START"))


def _mentions(doc: Doc, spans: str | None, path: Path, ledger: Ledger) -> list[Mention]:
    group = _find_group(doc, spans, path, ledger)
    in_group = {(span.start_char, span.end_char, span.label_) for span in group}
    mentions = []
    for number, span in enumerate([*group, *doc.ents]):
        if number >= len(group) and (span.start_char, span.end_char, span.label_) in in_group:
            continue
        if not span.label_:
            ledger.lose("entities", "spans without a label")
            continue
        if span.start_char == span.end_char:
            ledger.lose("entities", "empty spans")
            continue
        characters = Span(span.start_char, span.end_char)
        mentions.append(Mention(str(number), span.label_, (characters,), extra=_span_ids(span)))
    return sorted(mentions, key=lambda mention: (mention.fragments[0].start, -mention.fragments[0].end))


def _find_group(doc: Doc, spans: str | None, path: Path, ledger: Ledger) -> list[SpacySpan]:
    keys = list(doc.spans)
    key = spans if spans is not None else GROUP if GROUP in keys else keys[0] if len(keys) == 1 else None
    if key is None and keys:
        listed = ", ".join(map(repr, keys))
        raise FormatError(path, None, f"several span groups ({listed}); choose one, as in docbin:spans={keys[0]}")
    others = sum(len(doc.spans[other]) for other in keys if other != key)
    if spans is None:
        ledger.lose("entities", "in other span groups; choose one with docbin:spans=KEY", others)
    else:
        ledger.note("spans in other groups, not read", others)
    return list(doc.spans[key]) if key in keys else []


def _span_ids(span: SpacySpan) -> Extra | None:
    """Return the knowledge base id and the id of a span."""
    ids = {"kb_id": span.kb_id_, "span_id": span.id_}
    return {key: value for key, value in ids.items() if value} or None


def _read_user_data(doc: Doc, ledger: Ledger) -> tuple[str | int | None, Extra | None]:
    """Return the id and the JSON values of ``doc.user_data``, without extension attributes and other objects."""
    extra = {}
    for key, value in doc.user_data.items():
        try:
            if not isinstance(key, str):
                raise TypeError("an extension attribute")
            extra[key] = json.loads(json.dumps(value, allow_nan=False))
        except (TypeError, ValueError):
            ledger.note("custom document attributes, not read")
    id = extra.pop("id", None) if isinstance(extra.get("id"), str | int) else None
    return id, extra or None


def write(sentences: Iterable[Sentence], path: Path, ledger: Ledger, /) -> None:
    docbin, _, _, vocab_class = _spacy()
    vocab = vocab_class()
    docs = docbin(attrs=["ENT_IOB", "ENT_TYPE", "ENT_KB_ID", "ENT_ID", "SENT_START"], store_user_data=True)
    for document in to_documents(sentences, ledger):
        ledger.lose("relations", "not supported by the format", len(document.relations))
        document.relations = []
        doc = _to_doc(drop_discontinuous(document, ledger), vocab)
        doc.user_data = add_extra({"id": document.id}, document.extra, {"id"}, ledger)
        if document.extra:
            try:
                doc.to_bytes()
            except (TypeError, ValueError, OverflowError):  # such as a number too large for msgpack
                ledger.note("keys dropped: a DocBin cannot store them", len(doc.user_data) - 1)
                doc.user_data = {"id": document.id}
        docs.add(doc)
    try:
        docs.to_disk(path)
    except ValueError as error:
        raise SpanwiseError(f"{path}: {_describe(error)}") from None


def _to_doc(document: Document, vocab: Vocab) -> Doc:
    _, doc_class, span_class, _ = _spacy()
    tokens = cover_with_tokens(document.text, document.words)
    starts = [token.start for token in tokens]
    sentence_starts = {bisect_left(starts, sentence.start) for sentence in document.sentences}
    doc = doc_class(
        vocab,
        words=[document.text[token.start : token.end] for token in tokens],
        spaces=[token.has_space for token in tokens],
        sent_starts=[number in sentence_starts for number in range(len(tokens))],
    )
    first = {token.start: number for number, token in enumerate(tokens)}
    last = {token.end: number for number, token in enumerate(tokens)}
    spans = []
    for mention in document.mentions:
        start, end = mention.fragments[0]
        extra = mention.extra or {}
        ids = {key: extra[key] for key in ("kb_id", "span_id") if isinstance(extra.get(key), str)}
        spans.append(span_class(doc, first[start], last[end] + 1, label=mention.type, **ids))
    doc.spans[GROUP] = spans
    entities = {Entity(span.label_, (Span(span.start, span.end),)): span for span in spans}
    doc.ents = [entities[entity] for level in tags.split_into_levels(entities, max_levels=1) for entity in level]
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
    has_character_offsets=True,
    summary="binary .spacy files of spaCy: entities and span groups",
    read=read,
    write=write,
    sniff=sniff,
    extensions=(".spacy",),
    supports=frozenset(("nested", "crossing", "several types")),
    metadata=frozenset(("documents", "keys")),
    extra_keys=frozenset(("kb_id", "span_id")),
    read_options={"spans": NAME},
    pip_extra="spacy",
)
