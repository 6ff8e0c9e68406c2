"""Documents annotated by characters into sentences annotated by words, without cutting an entity."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from spanwise.core.errors import FormatError
from spanwise.core.types import Entity, Link, Relation, Sentence, Span
from spanwise.formats.base import Ledger
from spanwise.formats.shared.documents import Document, Mention
from spanwise.text import cut_words, split_sentences, split_words


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
    found = cut_words(plain, edges)
    known = {edge for word in plain for edge in word}
    ledger.note("words cut where an entity begins or ends inside", sum(edge not in known for edge in set(edges)))
    keep = [_range(mention.fragments) for mention in present]
    if not split:
        ranges = [Span(0, len(text))]
    elif sentences is None:
        wide = (word for word in found if word.end > word.start + 1)  # with a line end in it, or a full stop and an accent
        ranges = split_sentences(text, [*keep, *wide])
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
