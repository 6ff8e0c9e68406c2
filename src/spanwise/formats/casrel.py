"""CasRel's JSON: a text and its triples of subject, relation and object, all of them strings.

``[{"text": "Oslo lies in Norway .", "triple_list": [["Oslo", "country", "Norway"]]}]``. Words are what white space parts. A
subject or object is an entity of type ``Entity`` where its words first occur; there is nothing else to tell them apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice
from pathlib import Path
from typing import Any, NotRequired

from pydantic import ConfigDict, TypeAdapter
from typing_extensions import TypedDict

from spanwise.core.types import Entity, Relation, Sentence, Span
from spanwise.formats.base import Format, Ledger
from spanwise.formats.shared.fitting import fitted
from spanwise.formats.shared.records import Id, id_value, own_id, read_records, rest, with_rest, write_array
from spanwise.formats.shared.sample import Sample

TYPE = "Entity"


class _Record(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
    text: str
    triple_list: list[tuple[str, str, str]]
    id: NotRequired[Id | None]


_SHAPE: TypeAdapter[_Record] = TypeAdapter(_Record)
_KEYS = frozenset(_Record.__annotations__)
_HOLDS = frozenset(("nested", "crossing", "relations"))


def read(path: Path, ledger: Ledger, /) -> Iterator[Sentence]:
    def build(record: dict[str, Any], default_id: str) -> Sentence:
        words = tuple(record["text"].split())
        places = _Places(words)
        numbers: dict[Span, int] = {}
        relations: dict[Relation, None] = {}
        missing: set[str] = set()
        for subject, kind, object in record["triple_list"]:
            ends = []
            for said in (subject, object):
                found = list(islice(places.of(said.split()), 2))
                if not found:
                    missing.add(said)
                    continue
                if found[0] not in numbers:
                    numbers[found[0]] = len(numbers)
                    ledger.note("mentions that occur several times, taken where they occur first", len(found) - 1)
                ends.append(numbers[found[0]])
            if len(ends) < 2:
                ledger.lose("relations", "whose subject or object is not in the text")
                continue
            head, tail = ends
            relation = Relation(kind, head, tail)
            ledger.note("triples given twice, merged", int(relation in relations))
            relations[relation] = None
        ledger.lose("entities", "not in the text", len(missing))
        return Sentence(
            id=own_id(record.get("id"), default_id),
            words=words,
            entities=tuple(Entity(TYPE, (span,)) for span in numbers),
            relations=tuple(relations),
            text=record["text"],
            extra=rest(record, _KEYS),
        )

    return read_records(path, _SHAPE, build)


class _Places:
    """Where some words stand in a sentence. They are looked for as text, which takes long ones and many in its stride.

    >>> list(_Places(["New", "York", ",", "New", "York"]).of(["New", "York"]))
    [Span(start=0, end=2), Span(start=3, end=5)]
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.text = f" {' '.join(words)} "
        starts = accumulate((len(word) + 1 for word in words), initial=0)
        self.numbers = {start: number for number, start in enumerate(starts)}

    def of(self, part: Sequence[str]) -> Iterator[Span]:
        wanted = f" {' '.join(part)} "
        start = self.text.find(wanted) if part else -1
        while start >= 0:
            number = self.numbers[start]
            yield Span(number, number + len(part))
            start = self.text.find(wanted, start + 1)


def write(sentences: Iterable[Sentence], path: Path, ledger: Ledger, /) -> None:
    def records() -> Iterator[dict[str, Any]]:
        for sentence in sentences:
            if any(word.split() != [word] for word in sentence.words):
                ledger.lose("sentences", "with white space in a word")
                ledger.lose("entities", "in such a sentence", len(sentence.entities))
                ledger.lose("relations", "in such a sentence", len(sentence.relations) + len(sentence.links))
            else:
                yield _record(sentence, ledger)

    write_array(records(), path)


def _record(sentence: Sentence, ledger: Ledger) -> dict[str, Any]:
    places = _Places(sentence.words)

    def refused(entity: Entity) -> str | None:
        first = next(places.of(sentence.words[slice(*entity.range)]))
        return None if first == entity.range else "whose words occur earlier in the sentence"

    kept = fitted(sentence, _HOLDS, ledger, refused)
    said = [" ".join(kept.words[slice(*entity.range)]) for entity in kept.entities]
    triples = dict.fromkeys((said[relation.head], relation.type, said[relation.tail]) for relation in kept.relations)
    ledger.lose("relations", "given twice", len(kept.relations) - len(triples))
    related = {end for relation in kept.relations for end in (relation.head, relation.tail)}
    ledger.lose("entities", "in no relation", len(kept.entities) - len(related))
    written = {said[number] for number in related}
    ledger.lose("entities", "on the same words as another", len(related) - len(written))
    ledger.lose("types", f"other than {TYPE}", len(written - {said[n] for n in related if kept.entities[n].type == TYPE}))
    text = sentence.text if tuple(sentence.text.split()) == sentence.words else " ".join(sentence.words)
    record = {"text": text, "triple_list": [list(triple) for triple in triples], "id": id_value(sentence.id)}
    return with_rest(record, sentence.extra, _KEYS, ledger)


def sniff(sample: Sample) -> bool:
    return sample.have("text", "triple_list")


FORMAT = Format(
    name="casrel",
    summary="CasRel's JSON: a text and triples of strings (WebNLG, NYT); entities without a type",
    read=read,
    write=write,
    sniff=sniff,
    extensions=(".json",),
    holds=_HOLDS,
    keeps=frozenset(("ids", "keys")),
)
