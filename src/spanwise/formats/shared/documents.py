"""Documents with character offsets, as in brat, PubTator, Label Studio, doccano and Prodigy.

``splitting.to_sentences`` splits a document into sentences; ``to_documents`` is the reverse.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from spanwise.core.types import Extra, Link, Relation, Sentence, Span
from spanwise.formats.base import Ledger

CONCEPT_RELATIONS = "relations of concepts, kept with their document; they name no mentions and cannot be learned"
DEFAULT_RELATION_TYPE = "related"  # for relations that an annotation tool exports without a type


@dataclass(slots=True)
class Mention:
    """An entity as character ranges of a document. ``line`` is its line in the file, for error messages."""

    id: str
    type: str
    fragments: tuple[Span, ...]
    score: float | None = None
    extra: Extra | None = None
    line: int | None = None


@dataclass(slots=True)
class MentionRelation:
    """A relation between two mentions; ``head`` and ``tail`` are their ids."""

    type: str
    head: str
    tail: str
    score: float | None = None
    extra: Extra | None = None
    line: int | None = None


@dataclass(slots=True)
class Document:
    """A text with mentions and relations. Only ``to_documents`` fills ``words`` and ``sentences``."""

    id: str
    text: str
    mentions: list[Mention] = field(default_factory=list)
    relations: list[MentionRelation] = field(default_factory=list)
    extra: Extra | None = None
    words: list[Span] = field(default_factory=list)
    sentences: list[Span] = field(default_factory=list)


def to_documents(sentences: Iterable[Sentence], ledger: Ledger) -> Iterator[Document]:
    """Join consecutive sentences of the same document into one text, with the mentions T1, T2 and so on."""
    return (_join(group, ledger) for group in group_by_document(sentences))


def group_by_document(sentences: Iterable[Sentence]) -> Iterator[list[Sentence]]:
    """Yield the consecutive sentences of each document.

    A sentence without a document is its own group. Positions that do not increase start a new document.
    """
    group: list[Sentence] = []
    for sentence in sentences:
        if group and not _is_same_document(group[-1], sentence):
            yield group
            group = []
        group.append(sentence)
    if group:
        yield group


def _is_same_document(previous: Sentence, sentence: Sentence) -> bool:
    if previous.document is None or previous.document != sentence.document:
        return False
    return previous.position is None or sentence.position is None or previous.position < sentence.position


def merge_extra(sentences: list[Sentence], ledger: Ledger) -> Extra | None:
    """Merge the extra keys of a document's sentences; the first value of a key wins.

    >>> ledger = Ledger()
    >>> merge_extra([Sentence("s", ("a",), extra={"by": 1}), Sentence("t", ("b",), extra={"by": 2, "at": 3})], ledger)
    {'by': 1, 'at': 3}
    >>> dict(ledger.notes)
    {'sentence keys dropped: the document has a different value': 1}
    """
    merged = dict(sentences[0].extra or {})
    for sentence in sentences[1:]:
        for key, value in (sentence.extra or {}).items():
            first_value = merged.setdefault(key, value)
            ledger.note("sentence keys dropped: the document has a different value", int(first_value != value))
    return merged or None


def _join(sentences: list[Sentence], ledger: Ledger) -> Document:
    first = sentences[0]
    document = Document(first.id if first.document is None else first.document, "", extra=merge_extra(sentences, ledger))
    ids: dict[tuple[int, int], str] = {}  # of mentions, by sentence and entity index
    pieces: list[str] = []
    length = 0
    previous: Sentence | None = None
    for index, sentence in enumerate(sentences):
        if previous is not None and not _are_adjacent(previous, sentence):
            pieces.append("\n")
            length += 1
        for number, entity in enumerate(sentence.entities):
            fragments = [sentence.characters(fragment) for fragment in entity.fragments]
            visible = [fragment for fragment in fragments if sentence.text[fragment.start : fragment.end].strip()]
            if not visible:
                ledger.lose("entities", "that are only whitespace")
                continue
            ledger.lose("fragments", "that are only whitespace", len(fragments) - len(visible))
            ids[index, number] = f"T{len(ids) + 1}"
            shifted = tuple(Span(length + start, length + end) for start, end in visible)
            document.mentions.append(Mention(ids[index, number], entity.type, shifted, entity.score, entity.extra))
        document.words += [Span(length + start, length + end) for start, end in sentence.offsets]
        document.sentences.append(Span(length, length + len(sentence.text)))
        pieces.append(sentence.text)
        length += len(sentence.text)
        previous = sentence if sentence.text else previous
    document.relations = list(_join_relations(sentences, ids, ledger))
    document.text = "".join(pieces)
    return document


def _join_relations(sentences: list[Sentence], ids: dict[tuple[int, int], str], ledger: Ledger) -> Iterator[MentionRelation]:
    indices = {sentence.position: index for index, sentence in enumerate(sentences) if sentence.position is not None}
    for index, sentence in enumerate(sentences):
        ends = [((index, relation.head), (index, relation.tail)) for relation in sentence.relations]
        ends += [((index, link.head), (indices.get(link.position, -1), link.tail)) for link in sentence.links]
        annotations: list[Relation | Link] = [*sentence.relations, *sentence.links]
        for relation, (head, tail) in zip(annotations, ends, strict=True):
            if head in ids and tail in ids:
                yield MentionRelation(relation.type, ids[head], ids[tail], relation.score, relation.extra)
            else:
                ledger.lose("relations", "with an entity that is not in the data")


def _are_adjacent(previous: Sentence, sentence: Sentence) -> bool:
    """Return True if no separator is needed between two sentences."""
    if previous.start is not None and sentence.start == previous.start + len(previous.text):
        return True
    return previous.text[-1].isspace() or not sentence.text


def drop_discontinuous(document: Document, ledger: Ledger) -> Document:
    """Return the document without discontinuous mentions and their relations, which count as lost."""
    dropped = {mention.id for mention in document.mentions if len(mention.fragments) > 1}
    if not dropped:
        return document
    mentions = [mention for mention in document.mentions if mention.id not in dropped]
    relations = [r for r in document.relations if r.head not in dropped and r.tail not in dropped]
    ledger.lose("entities", "discontinuous", len(dropped))
    ledger.lose("relations", "with a discontinuous entity", len(document.relations) - len(relations))
    return replace(document, mentions=mentions, relations=relations)
