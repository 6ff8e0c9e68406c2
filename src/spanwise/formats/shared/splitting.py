"""Split documents with character offsets into sentences of words, without splitting an entity."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from spanwise.core.counting import counted
from spanwise.core.errors import FormatError
from spanwise.core.types import Entity, Link, Relation, Sentence, Span
from spanwise.formats.base import Ledger
from spanwise.formats.shared.documents import Document, Mention
from spanwise.text import cut_words, split_sentences, split_words
from spanwise.text.text_index import TextIndex


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
    """Yield the sentences of a document in order, with the same entities and relations.

    Words are split at entity boundaries. Leading and trailing whitespace of entities is trimmed.

    ``words`` and ``sentences`` are given by formats that store them. Whitespace in them is trimmed, text
    between words is split as usual, and sentences that an entity crosses are joined.
    ``split=False`` keeps the whole text as one sentence.
    """
    text = document.text
    index = TextIndex(text)
    trimmed = [_trim(mention, index, path, line) for mention in document.mentions]
    for mention, result in zip(document.mentions, trimmed, strict=True):
        if result is None:
            ledger.lose("entities", "that are only whitespace")
        elif result.fragments != mention.fragments:
            ledger.note("entities with leading or trailing whitespace, trimmed")
    mentions = [mention for mention in trimmed if mention is not None]
    entity_boundaries = [boundary for mention in mentions for fragment in mention.fragments for boundary in fragment]
    whole_words = split_words(text) if words is None else _complete_words(words, index, path, line)
    unbreakable = [Span(mention.fragments[0].start, mention.fragments[-1].end) for mention in mentions]
    ranges = [] if split else [Span(0, len(text))]
    if split and sentences is not None:
        ranges = _join_crossed(sentences, unbreakable, len(text))
        ledger.note("sentences joined because an entity crosses their boundary", len(sentences) - len(ranges))
    # Given sentences may follow each other without a space: the end of one and the start of the next are two words.
    all_words = cut_words(whole_words, [*entity_boundaries, *(range.start for range in ranges)])
    word_boundaries = {boundary for word in whole_words for boundary in word}
    ledger.note("words split at an entity boundary", len(set(entity_boundaries) - word_boundaries))
    if split and sentences is None:
        # A word may contain a line break, or a full stop and an accent.
        unbreakable += [word for word in all_words if word.end > word.start + 1]
        ranges = split_sentences(text, unbreakable)
    yield from _build(document, mentions, all_words, ranges, path, ledger, line)


def _trim(mention: Mention, index: TextIndex, path: Path, line: int | None) -> Mention | None:
    """Trim whitespace at both ends of each fragment; return None if nothing remains."""
    fragments = []
    for start, end in sorted(mention.fragments):
        if not 0 <= start < end <= len(index.text):
            problem = f"{mention.type} [{start}, {end}] is outside the text of {counted(len(index.text), 'character')}"
            raise FormatError(path, mention.line or line, problem)
        if stripped := index.strip(start, end):
            fragments.append(stripped)
    for previous, fragment in pairwise(fragments):
        if fragment.start < previous.end:
            raise FormatError(path, mention.line or line, f"the fragments of {mention.type} {mention.id} overlap")
    if not fragments:
        return None
    return Mention(mention.id, mention.type, tuple(fragments), mention.score, mention.extra, mention.line)


def _complete_words(words: list[Span], index: TextIndex, path: Path, line: int | None) -> list[Span]:
    """Trim the given words and add the words of the text between them."""
    text = index.text
    complete: list[Span] = []
    last = 0
    for number, (start, end) in enumerate([*words, Span(len(text), len(text))]):
        if not last <= start <= end <= len(text):
            raise FormatError(path, line, f"token {number} [{start}, {end}] overlaps another or is outside the text")
        complete += [Span(last + a, last + b) for a, b in split_words(text[last:start])]
        if stripped := index.strip(start, end):
            complete.append(stripped)
        last = end
    return complete


def _join_crossed(sentences: list[Span], unbreakable: list[Span], length: int) -> list[Span]:
    """Join given sentences where an unbreakable range crosses their boundary."""
    ranges = sorted(unbreakable)
    starts: list[int] = []
    index, furthest_end = 0, 0
    for start in sorted({sentence.start for sentence in sentences}):
        while index < len(ranges) and ranges[index].start < start:
            furthest_end = max(furthest_end, ranges[index].end)
            index += 1
        if furthest_end <= start or not starts:
            starts.append(start)
    return [Span(a, b) for a, b in zip(starts, [*starts[1:], length], strict=False)]


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
    # A range without words (blank lines at the end) belongs to the previous sentence.
    starts = [r.start for r in ranges if bisect_left(word_starts, r.start) < bisect_left(word_starts, r.end)]
    if not starts:
        if mentions:
            raise FormatError(path, line, f"document {document.id!r} has entities but no words")
        ledger.note("documents without words, skipped")
        return
    starts[0] = 0
    ends = [*starts[1:], len(document.text)]
    members: list[list[Mention]] = [[] for _ in starts]
    locations: dict[str, tuple[int, int]] = {}  # mention id -> sentence and entity index
    for mention in mentions:
        position = bisect_right(starts, mention.fragments[0].start) - 1
        if mention.id in locations:
            raise FormatError(path, mention.line or line, f"duplicate entity id {mention.id!r}")
        locations[mention.id] = (position, len(members[position]))
        members[position].append(mention)
    try:
        relations, links = _split_relations(document, locations, len(starts), path, ledger, line)
    except ValueError as error:
        raise FormatError(path, line, str(error)) from None
    for position, (start, end) in enumerate(zip(starts, ends, strict=True)):
        first, last = bisect_left(word_starts, start), bisect_left(word_starts, end)
        sentence_words = words[first:last]
        try:
            sentence = Sentence(
                id=document.id if len(starts) == 1 else f"{document.id}-{position}",
                words=tuple(document.text[a:b] for a, b in sentence_words),
                entities=tuple(_to_entity(mention, word_starts, word_ends, first) for mention in members[position]),
                relations=tuple(relations[position]),
                links=tuple(links[position]),
                text=document.text[start:end],
                starts=tuple(a - start for a, _ in sentence_words),
                document=document.id,
                position=position,
                start=start,
                extra=document.extra if position == 0 else None,
            )
        except ValueError as error:
            raise FormatError(path, line, str(error)) from None
        yield sentence


def _to_entity(mention: Mention, word_starts: list[int], word_ends: list[int], first_word: int) -> Entity:
    fragments = tuple(
        Span(bisect_left(word_starts, a) - first_word, bisect_right(word_ends, b) - first_word) for a, b in mention.fragments
    )
    return Entity(mention.type, fragments, mention.score, mention.extra)


def _split_relations(
    document: Document, locations: dict[str, tuple[int, int]], count: int, path: Path, ledger: Ledger, line: int | None
) -> tuple[list[list[Relation]], list[list[Link]]]:
    """Return the relations within each sentence, and the links from it to other sentences."""
    relations: list[list[Relation]] = [[] for _ in range(count)]
    links: list[list[Link]] = [[] for _ in range(count)]
    dropped = {mention.id for mention in document.mentions} - locations.keys()
    for item in document.relations:
        if item.head in dropped or item.tail in dropped:
            ledger.lose("relations", "with an entity that is only whitespace")
            continue
        for id in (item.head, item.tail):
            if id not in locations:
                raise FormatError(path, item.line or line, f"relation {item.type!r} refers to the unknown entity {id!r}")
        (position, head), (tail_position, tail) = locations[item.head], locations[item.tail]
        if position == tail_position:
            relations[position].append(Relation(item.type, head, tail, item.score, item.extra))
        else:
            links[position].append(Link(item.type, head, tail_position, tail, item.score, item.extra))
    return relations, links
