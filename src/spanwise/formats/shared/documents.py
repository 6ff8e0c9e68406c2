"""Documents annotated by characters, as brat, PubTator, Label Studio, doccano, Prodigy and others have them.

``cutting.to_sentences`` cuts such a document into sentences and words; ``to_documents`` puts sentences together again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from spanwise.core.types import Extra, Sentence, Span
from spanwise.formats.base import Ledger

UNNAMED = "related"  # the type of a relation that an annotation tool left without one


@dataclass(slots=True)
class Mention:
    """An entity as character ranges of a document. ``line`` is where the file says so, for error messages."""

    id: str
    type: str
    fragments: tuple[Span, ...]
    score: float | None = None
    extra: Extra | None = None
    line: int | None = None


@dataclass(slots=True)
class Arrow:
    """A relation between two mentions, named by their ids."""

    type: str
    head: str
    tail: str
    score: float | None = None
    extra: Extra | None = None
    line: int | None = None


@dataclass(slots=True)
class Document:
    """A text with its mentions. ``words`` and ``sentences`` are filled by ``to_documents``, for formats that hold them."""

    id: str
    text: str
    mentions: list[Mention] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)
    extra: Extra | None = None
    words: list[Span] = field(default_factory=list)
    sentences: list[Span] = field(default_factory=list)


def to_documents(
    sentences: Iterable[Sentence], ledger: Ledger, *, name: Callable[[int], str] = lambda number: f"T{number}"
) -> Iterator[Document]:
    """Sentences put together again: those of one document that follow each other become one text.

    Mentions are numbered through the document.
    """
    return (_assembled(group, ledger, name) for group in by_document(sentences))


def by_document(sentences: Iterable[Sentence]) -> Iterator[list[Sentence]]:
    """The sentences of one document that follow each other, a document at a time.

    A sentence without a document is a document of its own, and a document whose positions begin anew is another one.
    """
    group: list[Sentence] = []
    for sentence in sentences:
        if group and not _follows(group[-1], sentence):
            yield group
            group = []
        group.append(sentence)
    if group:
        yield group


def _follows(before: Sentence, after: Sentence) -> bool:
    """True when the second sentence goes on with the document of the first."""
    if before.document is None or before.document != after.document:
        return False
    return before.position is None or after.position is None or before.position < after.position


def keys_of(sentences: list[Sentence], ledger: Ledger) -> Extra | None:
    """What is known of the sentences of a document besides, as the document's own; one key can have one value only.

    >>> ledger = Ledger()
    >>> keys_of([Sentence("s", ("a",), extra={"by": 1}), Sentence("t", ("b",), extra={"by": 2, "at": 3})], ledger), ledger.lost
    ({'by': 1, 'at': 3}, 0)
    """
    found = dict(sentences[0].extra or {})
    for sentence in sentences[1:]:
        for key, value in (sentence.extra or {}).items():
            kept = found.setdefault(key, value)
            ledger.note("keys of sentences left out: the document has another value for them", int(kept != value))
    return found or None


def _assembled(sentences: list[Sentence], ledger: Ledger, name: Callable[[int], str]) -> Document:
    first = sentences[0]
    result = Document(first.id if first.document is None else first.document, "", extra=keys_of(sentences, ledger))
    places = {sentence.position: place for place, sentence in enumerate(sentences) if sentence.position is not None}
    names: dict[tuple[int, int], str] = {}
    pieces: list[str] = []
    length = 0
    before: Sentence | None = None
    for place, sentence in enumerate(sentences):
        if before is not None and not _touches(before, sentence):
            pieces.append("\n")
            length += 1
        for number, entity in enumerate(sentence.entities):
            fragments = [sentence.characters(fragment) for fragment in entity.fragments]
            kept = [fragment for fragment in fragments if sentence.text[fragment.start : fragment.end].strip()]
            if not kept:
                ledger.lose("entities", "of white space only")
                continue
            ledger.lose("fragments", "of white space only", len(fragments) - len(kept))
            names[place, number] = name(len(names) + 1)
            shifted = tuple(Span(length + start, length + end) for start, end in kept)
            result.mentions.append(Mention(names[place, number], entity.type, shifted, entity.score, entity.extra))
        result.words += [Span(length + start, length + end) for start, end in sentence.offsets]
        result.sentences.append(Span(length, length + len(sentence.text)))
        pieces.append(sentence.text)
        length += len(sentence.text)
        before = sentence if sentence.text else before
    for place, sentence in enumerate(sentences):
        for relation in sentence.relations:
            ends = (place, relation.head), (place, relation.tail)
            _join(result, names, relation.type, *ends, relation.score, relation.extra, ledger)
        for link in sentence.links:
            ends = (place, link.head), (places.get(link.position, -1), link.tail)
            _join(result, names, link.type, *ends, link.score, link.extra, ledger)
    result.text = "".join(pieces)
    return result


def _touches(before: Sentence, after: Sentence) -> bool:
    """True when nothing needs to stand between two sentences: they touch in their document, or white space parts them."""
    if before.start is not None and after.start == before.start + len(before.text):
        return True
    return before.text[-1].isspace() or not after.text


def _join(
    document: Document,
    names: dict[tuple[int, int], str],
    kind: str,
    head: tuple[int, int],
    tail: tuple[int, int],
    score: float | None,
    extra: Extra | None,
    ledger: Ledger,
) -> None:
    if head in names and tail in names:
        document.arrows.append(Arrow(kind, names[head], names[tail], score, extra))
    else:
        ledger.lose("relations", "whose other entity is not in the data")


def without_discontinuous(document: Document, ledger: Ledger) -> Document:
    """The document as formats hold it that know only entities of one piece; what is left out is in the ledger."""
    gone = {mention.id for mention in document.mentions if len(mention.fragments) > 1}
    if not gone:
        return document
    mentions = [mention for mention in document.mentions if mention.id not in gone]
    arrows = [arrow for arrow in document.arrows if arrow.head not in gone and arrow.tail not in gone]
    ledger.lose("entities", "discontinuous", len(gone))
    ledger.lose("relations", "of a discontinuous entity", len(document.arrows) - len(arrows))
    return replace(document, mentions=mentions, arrows=arrows)
