"""JSON of CasRel: a text and triples of subject, relation and object, all of them strings.

``[{"text": "Oslo lies in Norway .", "triple_list": [["Oslo", "country", "Norway"]]}]``. Words are separated
by whitespace. A subject or object is an entity of type ``Entity`` at the first occurrence of its words,
because the file has no offsets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NotRequired

from pydantic import ConfigDict, TypeAdapter
from typing_extensions import TypedDict

from spanwise.core.types import Entity, Relation, Sentence, Span
from spanwise.formats.base import Format, Ledger
from spanwise.formats.shared.phrases import find_phrases
from spanwise.formats.shared.records import Id, add_extra, id_or_default, json_id, read_records, unknown_keys, write_json_array
from spanwise.formats.shared.restriction import restrict
from spanwise.formats.shared.sample import Sample

TYPE = "Entity"


class _Record(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow", defer_build=True)  # type: ignore[misc]
    text: str
    triple_list: list[tuple[str, str, str]]
    id: NotRequired[Id | None]


_SHAPE: TypeAdapter[_Record] = TypeAdapter(_Record)
_KEYS = frozenset(_Record.__annotations__)
_SUPPORTS = frozenset(("nested", "crossing", "relations"))


def read(path: Path, ledger: Ledger, /) -> Iterator[Sentence]:
    def build(record: dict[str, Any], default_id: str) -> Sentence:
        words = tuple(record["text"].split())
        mentions = {mention: tuple(mention.split()) for triple in record["triple_list"] for mention in triple[::2]}
        starts = find_phrases(words, mentions.values())
        entity_indices: dict[Span, int] = {}
        relations: dict[Relation, None] = {}
        missing: set[str] = set()
        for subject, type, object in record["triple_list"]:
            ends = []
            for mention in (subject, object):
                phrase = mentions[mention]
                occurrences = starts.get(phrase)
                if not occurrences:
                    missing.add(mention)
                    continue
                span = Span(occurrences[0], occurrences[0] + len(phrase))
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
    used = {sentence.entities[end] for relation in sentence.relations for end in (relation.head, relation.tail)}
    phrases = {entity: sentence.words[slice(*entity.range)] for entity in used if not entity.is_discontinuous}
    starts = find_phrases(sentence.words, phrases.values(), max_count=1)

    def rejection_reason(entity: Entity) -> str | None:
        if entity not in phrases:
            return "without a relation"
        is_first = starts[phrases[entity]] == [entity.range.start]
        return None if is_first else "with the same words earlier in the sentence"

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
