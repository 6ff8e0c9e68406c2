"""Between documents annotated by characters and sentences annotated by words.

brat, PubTator, Label Studio, doccano, Prodigy and others point at characters of a text. ``to_sentences`` cuts such a
document into sentences and words without cutting an entity; ``to_documents`` puts sentences together again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from pathlib import Path

from spanwise.errors import FormatError
from spanwise.formats.base import Ledger
from spanwise.text import split_sentences, split_words
from spanwise.types import Entity, Extra, Link, Relation, Sentence, Span


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
    id: str
    text: str
    mentions: list[Mention] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)
    extra: Extra | None = None


def to_sentences(
    document: Document,
    path: Path,
    ledger: Ledger,
    *,
    line: int | None = None,
    split: bool = True,
    words: list[Span] | None = None,
) -> Iterator[Sentence]:
    """The sentences of a document, in order, with the same entities and relations.

    A word is cut where an entity begins or ends inside it. White space at the rim of an entity is trimmed. ``words`` gives the
    document's words when the format knows them; ``split=False`` keeps the whole text as one sentence.
    """
    text = document.text
    mentions = [_trimmed(mention, text, path, line) for mention in document.mentions]
    for mention, kept in zip(document.mentions, mentions, strict=True):
        if kept is None:
            ledger.lose("entities", "of white space only")
        elif kept.fragments != mention.fragments:
            ledger.note("entities with white space at their rim, trimmed")
    present = [mention for mention in mentions if mention is not None]
    edges = [edge for mention in present for fragment in mention.fragments for edge in fragment]
    found = split_words(text, edges) if words is None else _cut_words(words, edges)
    if words is None:
        plain = {edge for word in split_words(text) for edge in word}
        ledger.note("words cut where an entity begins or ends inside", sum(edge not in plain for edge in set(edges)))
    ranges = split_sentences(text, [_range(m.fragments) for m in present]) if split else [Span(0, len(text))]
    yield from _build(document, present, found, ranges, path, ledger, line)


def _trimmed(mention: Mention, text: str, path: Path, line: int | None) -> Mention | None:
    """The mention without white space at its fragments' rims; None when nothing is left."""
    kept = []
    for start, end in sorted(mention.fragments):
        if not 0 <= start < end <= len(text):
            raise FormatError(
                path,
                mention.line or line,
                f"{mention.type} [{start}, {end}] does not lie in the text, which has {len(text)} characters",
            )
        piece = text[start:end]
        inner = piece.strip()
        if inner:
            start += len(piece) - len(piece.lstrip())
            kept.append(Span(start, start + len(inner)))
    for before, after in pairwise(kept):
        if after.start < before.end:
            raise FormatError(path, mention.line or line, f"the fragments of {mention.type} {mention.id} overlap")
    if not kept:
        return None
    return Mention(mention.id, mention.type, tuple(kept), mention.score, mention.extra, mention.line)


def _cut_words(words: list[Span], edges: Iterable[int]) -> list[Span]:
    """Given words, cut at the edges."""
    cuts = sorted(set(edges))
    pieces: list[Span] = []
    for word in words:
        inner = cuts[bisect_right(cuts, word.start) : bisect_left(cuts, word.end)]
        pieces += [Span(a, b) for a, b in zip([word.start, *inner], [*inner, word.end], strict=True)]
    return pieces


def _range(fragments: tuple[Span, ...]) -> Span:
    return Span(fragments[0].start, fragments[-1].end)


def _build(
    document: Document,
    mentions: list[Mention],
    words: list[Span],
    ranges: list[Span],
    path: Path,
    ledger: Ledger,
    line: int | None,
) -> Iterator[Sentence]:
    word_starts, word_ends = [w.start for w in words], [w.end for w in words]
    # A range without a word (blank lines at the end) goes to the sentence before it.
    cuts = [r.start for r in ranges if bisect_left(word_starts, r.start) < bisect_left(word_starts, r.end)]
    if not cuts:
        if mentions:
            raise FormatError(path, line, f"document {document.id!r} has entities but no words")
        return
    cuts[0] = 0
    ends = [*cuts[1:], len(document.text)]
    members: list[list[int]] = [[] for _ in cuts]
    place: dict[str, tuple[int, int]] = {}
    for number, mention in enumerate(mentions):
        home = bisect_right(cuts, mention.fragments[0].start) - 1
        if mention.id in place:
            raise FormatError(path, mention.line or line, f"the id {mention.id!r} is given to two entities")
        place[mention.id] = (home, len(members[home]))
        members[home].append(number)
    relations: list[list[Relation]] = [[] for _ in cuts]
    links: list[list[Link]] = [[] for _ in cuts]
    gone = {mention.id for mention in document.mentions} - place.keys()
    for arrow in document.arrows:
        if arrow.head in gone or arrow.tail in gone:
            ledger.lose("relations", "of an entity of white space only")
            continue
        for name in (arrow.head, arrow.tail):
            if name not in place:
                raise FormatError(path, arrow.line or line, f"relation {arrow.type!r} names {name!r}, which is no entity")
        (home, head), (there, tail) = place[arrow.head], place[arrow.tail]
        if home == there:
            relations[home].append(Relation(arrow.type, head, tail, arrow.score, arrow.extra))
        else:
            links[home].append(Link(arrow.type, head, there, tail, arrow.extra))
    for number, (start, end) in enumerate(zip(cuts, ends, strict=True)):
        first, last = bisect_left(word_starts, start), bisect_left(word_starts, end)
        entities = []
        for member in members[number]:
            mention = mentions[member]
            fragments = tuple(
                Span(bisect_left(word_starts, a) - first, bisect_right(word_ends, b) - first) for a, b in mention.fragments
            )
            entities.append(Entity(mention.type, fragments, mention.score, mention.extra))
        inside = words[first:last]
        try:
            yield Sentence(
                id=document.id if len(cuts) == 1 else f"{document.id}-{number}",
                words=tuple(document.text[a:b] for a, b in inside),
                entities=tuple(entities),
                relations=tuple(relations[number]),
                links=tuple(links[number]),
                text=document.text[start:end],
                starts=tuple(a - start for a, _ in inside),
                document=document.id,
                position=number,
                start=start,
                extra=document.extra if number == 0 else None,
            )
        except ValueError as error:
            raise FormatError(path, line, str(error)) from None


def to_documents(
    sentences: Iterable[Sentence], ledger: Ledger, *, name: Callable[[int], str] = lambda number: f"T{number}"
) -> Iterator[Document]:
    """Sentences put together again: those of one document that follow each other become one text.

    A sentence without a document is a document of its own. Mentions are numbered through the document.
    """
    for (document, _), group in groupby(enumerate(sentences), key=_document_key):
        yield _assembled(document, [sentence for _, sentence in group], ledger, name)


def _document_key(numbered: tuple[int, Sentence]) -> tuple[str, int]:
    number, sentence = numbered
    return (sentence.id, number) if sentence.document is None else (sentence.document, -1)


def _assembled(document: str, sentences: list[Sentence], ledger: Ledger, name: Callable[[int], str]) -> Document:
    text = ""
    result = Document(document, "", extra=sentences[0].extra)
    names: dict[tuple[int | None, int], str] = {}
    for sentence in sentences:
        if text and sentence.start != len(text) and not text[-1].isspace():
            text += "\n"
        base = len(text)
        text += sentence.text
        for number, entity in enumerate(sentence.entities):
            fragments = tuple(_shifted(sentence, fragment, base) for fragment in entity.fragments)
            kept = tuple(fragment for fragment in fragments if text[fragment.start : fragment.end].strip())
            if not kept:
                ledger.lose("entities", "of white space only")
                continue
            names[sentence.position, number] = name(len(names) + 1)
            result.mentions.append(Mention(names[sentence.position, number], entity.type, kept, entity.score, entity.extra))
    for sentence in sentences:
        for relation in sentence.relations:
            ends = (sentence.position, relation.head), (sentence.position, relation.tail)
            _join(result, names, relation.type, *ends, relation.score, relation.extra, ledger)
        for link in sentence.links:
            ends = (sentence.position, link.head), (link.position, link.tail)
            _join(result, names, link.type, *ends, None, link.extra, ledger)
    result.text = text
    return result


def _shifted(sentence: Sentence, fragment: Span, base: int) -> Span:
    start, end = sentence.characters(fragment)
    return Span(base + start, base + end)


def _join(
    document: Document,
    names: dict[tuple[int | None, int], str],
    kind: str,
    head: tuple[int | None, int],
    tail: tuple[int | None, int],
    score: float | None,
    extra: Extra | None,
    ledger: Ledger,
) -> None:
    if head in names and tail in names:
        document.arrows.append(Arrow(kind, names[head], names[tail], score, extra))
    else:
        ledger.lose("relations", "whose other entity is not in the data")
