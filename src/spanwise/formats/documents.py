"""Between documents annotated by characters and sentences annotated by words.

brat, PubTator, Label Studio, doccano, Prodigy and others point at characters of a text. ``to_sentences`` cuts such a
document into sentences and words without cutting an entity; ``to_documents`` puts sentences together again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

from spanwise.errors import FormatError
from spanwise.formats.base import Ledger
from spanwise.text import split_sentences, split_words
from spanwise.types import Entity, Extra, Link, Relation, Sentence, Span

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


def to_sentences(
    document: Document,
    path: Path,
    ledger: Ledger,
    *,
    line: int | None = None,
    split: bool = True,
    words: list[Span] | None = None,
    sentences: list[Span] | None = None,
) -> Iterator[Sentence]:
    """The sentences of a document, in order, with the same entities and relations.

    A word is cut where an entity begins or ends inside it. White space at the rim of an entity is trimmed. ``words`` and
    ``sentences`` give the document's own, when the format knows them: white space in them is trimmed, text between words is
    split as usual, and sentences that an entity crosses are joined. ``split=False`` keeps the whole text as one sentence.
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
    plain = split_words(text) if words is None else _all_words(words, text, path, line)
    found = split_words(text, edges) if words is None else _cut_words(plain, edges)
    known = {edge for word in plain for edge in word}
    ledger.note("words cut where an entity begins or ends inside", sum(edge not in known for edge in set(edges)))
    keep = [_range(mention.fragments) for mention in present]
    if not split:
        ranges = [Span(0, len(text))]
    elif sentences is None:
        ranges = split_sentences(text, [*keep, *found])  # a word may hold a line end, or a full stop with an accent
    else:
        ranges = _joined_over(sentences, keep, len(text))
        ledger.note("sentences joined, for an entity crosses their border", len(sentences) - len(ranges))
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


def _all_words(words: list[Span], text: str, path: Path, line: int | None) -> list[Span]:
    """Given words without white space at their rims, and what stands between them split as usual: no character is left out."""
    found: list[Span] = []
    last = 0
    for number, (start, end) in enumerate([*words, Span(len(text), len(text))]):
        if not last <= start <= end <= len(text):
            raise FormatError(path, line, f"token {number}, [{start}, {end}], overlaps another or does not lie in the text")
        found += [Span(last + a, last + b) for a, b in split_words(text[last:start])]
        piece = text[start:end]
        if inner := piece.strip():
            start += len(piece) - len(piece.lstrip())
            found.append(Span(start, start + len(inner)))
        last = end
    return found


def _joined_over(sentences: list[Span], keep: list[Span], length: int) -> list[Span]:
    """Given sentences, joined where one of the ranges in ``keep`` crosses their border."""
    ranges = sorted(keep)
    starts: list[int] = []
    at, reach = 0, 0
    for start in sorted({sentence.start for sentence in sentences}):
        while at < len(ranges) and ranges[at].start < start:
            reach = max(reach, ranges[at].end)
            at += 1
        if reach <= start or not starts:
            starts.append(start)
    return [Span(a, b) for a, b in zip(starts, [*starts[1:], length], strict=False)]


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
        ledger.note("documents without words, left out")
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
    try:
        relations, links = _placed_arrows(document, place, len(cuts), path, ledger, line)
    except ValueError as error:
        raise FormatError(path, line, str(error)) from None
    for number, (start, end) in enumerate(zip(cuts, ends, strict=True)):
        first, last = bisect_left(word_starts, start), bisect_left(word_starts, end)
        inside = words[first:last]
        try:
            sentence = Sentence(
                id=document.id if len(cuts) == 1 else f"{document.id}-{number}",
                words=tuple(document.text[a:b] for a, b in inside),
                entities=tuple(_entity(mentions[member], word_starts, word_ends, first) for member in members[number]),
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
        yield sentence


def _entity(mention: Mention, word_starts: list[int], word_ends: list[int], first: int) -> Entity:
    fragments = tuple(
        Span(bisect_left(word_starts, a) - first, bisect_right(word_ends, b) - first) for a, b in mention.fragments
    )
    return Entity(mention.type, fragments, mention.score, mention.extra)


def _placed_arrows(
    document: Document, place: dict[str, tuple[int, int]], count: int, path: Path, ledger: Ledger, line: int | None
) -> tuple[list[list[Relation]], list[list[Link]]]:
    """The relations of each sentence, and the links that leave it."""
    relations: list[list[Relation]] = [[] for _ in range(count)]
    links: list[list[Link]] = [[] for _ in range(count)]
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
            links[home].append(Link(arrow.type, head, there, tail, arrow.score, arrow.extra))
    return relations, links


def to_documents(
    sentences: Iterable[Sentence], ledger: Ledger, *, name: Callable[[int], str] = lambda number: f"T{number}"
) -> Iterator[Document]:
    """Sentences put together again: those of one document that follow each other become one text.

    Mentions are numbered through the document.
    """
    return (_assembled(group, ledger, name) for group in by_document(sentences))


def without_annotations(sentences: Iterable[Sentence], path: Path, *, has_words: bool) -> Iterator[Sentence]:
    """The sentences as if nobody had annotated them; where the words are not the file's own, text is split afresh."""
    if has_words:
        for sentence in sentences:
            yield replace(sentence, entities=(), relations=(), links=())
        return
    for document in to_documents(sentences, Ledger()):
        yield from to_sentences(Document(document.id, document.text, extra=document.extra), path, Ledger())


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


def _assembled(sentences: list[Sentence], ledger: Ledger, name: Callable[[int], str]) -> Document:
    first = sentences[0]
    result = Document(first.id if first.document is None else first.document, "", extra=first.extra)
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
