"""JSON of CasRel: a text and triples of subject, relation and object, all of them strings.

``[{"text": "Oslo lies in Norway .", "triple_list": [["Oslo", "country", "Norway"]]}]``. Words are separated
by whitespace. A subject or object is an entity of type ``Entity`` at the first occurrence of its words,
because the file has no offsets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import accumulate, islice
from pathlib import Path
from typing import Any, NotRequired

from pydantic import ConfigDict, TypeAdapter
from typing_extensions import TypedDict

from spanwise.core.types import Entity, Relation, Sentence, Span
from spanwise.formats.base import Format, Ledger
from spanwise.formats.shared.records import Id, add_extra, id_or_default, json_id, read_records, unknown_keys, write_json_array
from spanwise.formats.shared.restriction import restrict
from spanwise.formats.shared.sample import Sample

TYPE = "Entity"
_COMMON = 1000  # occurrences from which searching the text is faster than comparing each one


class _Record(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
    text: str
    triple_list: list[tuple[str, str, str]]
    id: NotRequired[Id | None]


_SHAPE: TypeAdapter[_Record] = TypeAdapter(_Record)
_KEYS = frozenset(_Record.__annotations__)
_SUPPORTS = frozenset(("nested", "crossing", "relations"))


def read(path: Path, ledger: Ledger, /) -> Iterator[Sentence]:
    def build(record: dict[str, Any], default_id: str) -> Sentence:
        words = tuple(record["text"].split())
        index = _PhraseIndex(words)
        entity_indices: dict[Span, int] = {}
        relations: dict[Relation, None] = {}
        missing: set[str] = set()
        for subject, type, object in record["triple_list"]:
            ends = []
            for mention in (subject, object):
                occurrences = index.first_two(tuple(mention.split()))
                if not occurrences:
                    missing.add(mention)
                    continue
                span = occurrences[0]
                if span not in entity_indices:
                    entity_indices[span] = len(entity_indices)
                    is_ambiguous = len(occurrences) > 1
                    ledger.note("mentions that occur several times, placed at the first occurrence", int(is_ambiguous))
                ends.append(entity_indices[span])
            if len(ends) < 2:
                ledger.lose("relations", "with a subject or object that is not in the text")
                continue
            head, tail = ends
            relation = Relation(type, head, tail)
            ledger.note("duplicate triples, merged", int(relation in relations))
            relations[relation] = None
        ledger.lose("entities", "not in the text", len(missing))
        return Sentence(
            id=id_or_default(record.get("id"), default_id),
            words=words,
            entities=tuple(Entity(TYPE, (span,)) for span in entity_indices),
            relations=tuple(relations),
            text=record["text"],
            extra=unknown_keys(record, _KEYS),
        )

    return read_records(path, _SHAPE, build)


class _PhraseIndex:
    """Finds phrases in a sentence.

    A phrase is looked up by its rarest word. Where even that is common, searching the text is faster.

    >>> list(_PhraseIndex(("New", "York", ",", "New", "York")).find(("New", "York")))
    [Span(start=0, end=2), Span(start=3, end=5)]
    """

    def __init__(self, words: tuple[str, ...]) -> None:
        self.words = words
        self.positions: dict[str, list[int]] = {}
        for position, word in enumerate(words):
            self.positions.setdefault(word, []).append(position)
        self._found: dict[tuple[str, ...], list[Span]] = {}

    def first_two(self, phrase: tuple[str, ...]) -> list[Span]:
        """Return the first two occurrences of a phrase, or fewer."""
        if phrase not in self._found:
            self._found[phrase] = list(islice(self.find(phrase), 2))
        return self._found[phrase]

    def find(self, phrase: tuple[str, ...]) -> Iterator[Span]:
        """Yield all occurrences of a phrase from left to right."""
        counts = [len(self.positions.get(word, ())) for word in phrase]
        rarest = min(counts, default=0)
        if rarest > _COMMON:
            yield from self._search_text(phrase)
        elif rarest:
            offset = counts.index(rarest)
            for position in self.positions[phrase[offset]]:
                start = position - offset
                if start >= 0 and self.words[start : start + len(phrase)] == phrase:
                    yield Span(start, start + len(phrase))

    @cached_property
    def _text(self) -> str:
        return f" {' '.join(self.words)} "

    @cached_property
    def _word_at(self) -> dict[int, int]:
        """The index of the word after each space of the text."""
        return dict(zip(accumulate((len(word) + 1 for word in self.words), initial=0), range(len(self.words)), strict=False))

    def _search_text(self, phrase: tuple[str, ...]) -> Iterator[Span]:
        pattern = f" {' '.join(phrase)} "
        start = self._text.find(pattern)
        while start >= 0:
            first = self._word_at[start]
            yield Span(first, first + len(phrase))
            start = self._text.find(pattern, start + 1)


def write(sentences: Iterable[Sentence], path: Path, ledger: Ledger, /) -> None:
    def records() -> Iterator[dict[str, Any]]:
        for sentence in sentences:
            if any(word.split() != [word] for word in sentence.words):
                ledger.lose("sentences", "with whitespace in a word")
                ledger.lose("entities", "in a dropped sentence", len(sentence.entities))
                ledger.lose("relations", "in a dropped sentence", len(sentence.relations) + len(sentence.links))
            else:
                yield _to_record(sentence, ledger)

    write_json_array(records(), path)


def _to_record(sentence: Sentence, ledger: Ledger) -> dict[str, Any]:
    index = _PhraseIndex(sentence.words)

    def rejection_reason(entity: Entity) -> str | None:
        first = next(index.find(sentence.words[slice(*entity.range)]))
        return None if first == entity.range else "with the same words earlier in the sentence"

    restricted = restrict(sentence, _SUPPORTS, ledger, rejection_reason)
    mentions = [" ".join(restricted.words[slice(*entity.range)]) for entity in restricted.entities]
    triples = dict.fromkeys((mentions[r.head], r.type, mentions[r.tail]) for r in restricted.relations)
    ledger.lose("relations", "duplicate", len(restricted.relations) - len(triples))
    related = {end for relation in restricted.relations for end in (relation.head, relation.tail)}
    ledger.lose("entities", "without a relation", len(restricted.entities) - len(related))
    written = {mentions[end] for end in related}
    ledger.lose("entities", "with the same words as another", len(related) - len(written))
    untyped = {mentions[end] for end in related if restricted.entities[end].type == TYPE}
    ledger.lose("types", f"other than {TYPE}", len(written - untyped))
    text = sentence.text if tuple(sentence.text.split()) == sentence.words else " ".join(sentence.words)
    record = {"text": text, "triple_list": [list(triple) for triple in triples], "id": json_id(sentence.id)}
    return add_extra(record, sentence.extra, _KEYS, ledger)


def sniff(sample: Sample) -> bool:
    return sample.all_have("text", "triple_list")


FORMAT = Format(
    name="casrel",
    summary="JSON of CasRel: a text and triples of strings (WebNLG, NYT), entities without a type",
    read=read,
    write=write,
    sniff=sniff,
    extensions=(".json",),
    supports=_SUPPORTS,
    metadata=frozenset(("ids", "keys")),
)
