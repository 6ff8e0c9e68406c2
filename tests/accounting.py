"""What a format holds of sentences, and whether all that it does not hold is in the ledger."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import accumulate, combinations
from typing import Any

from spanwise import Sentence
from spanwise.formats import Ledger
from spanwise.formats.shared.documents import by_document, to_documents


@dataclasses.dataclass(frozen=True)
class Case:
    """How a format is written and read, and in what terms it holds a sentence.

    ``unit`` is what it keeps together, a "sentence" or a "document"; ``by`` is how it names the words of an entity: by "words",
    by "characters" of the text, or by its "ink", the characters that are no white space (where white space is trimmed).
    """

    spec: str
    unit: str = "sentence"
    by: str = "words"
    reading: str = ""
    has_ids: bool = True
    type: Callable[[str], str] = str  # what becomes of the name of a type
    relation_type: Callable[[str], str] = str
    prepared: Callable[[list[Sentence]], list[Sentence]] = list  # the sentences as far as the format can be asked to hold them

    @property
    def name(self) -> str:
        return self.spec.partition(":")[0]

    def __str__(self) -> str:
        return self.spec


def closed_up(sentences: list[Sentence]) -> list[Sentence]:
    """Sentences without anything between their words."""
    found = []
    for s in sentences:
        starts = tuple(accumulate(map(len, s.words[:-1]), initial=0)) if s.words else ()
        found.append(dataclasses.replace(s, text="".join(s.words), starts=starts))
    return found


def numbered(sentences: list[Sentence]) -> list[Sentence]:
    """Sentences of documents whose names are in order, each its own."""
    groups = enumerate(by_document(sentences))
    return [
        dataclasses.replace(s, id=f"{n}", document=None if s.document is None else f"{n}") for n, group in groups for s in group
    ]


def of_drugs(sentences: list[Sentence], head: str = "Adverse-Effect") -> list[Sentence]:
    """Sentences about drugs, mostly: the only ones that the ADE corpus has."""
    found = []
    for s in sentences:
        entities = [dataclasses.replace(e, type=(head, "Drug", e.type)[len(e.type) % 5 // 2]) for e in s.entities]
        relations = [dataclasses.replace(r, type=head if len(r.type) % 4 else r.type) for r in s.relations]
        found.append(dataclasses.replace(s, entities=tuple(entities), relations=tuple(relations)))
    return found


def underscored(name: str) -> str:
    return "_".join(name.split()) or "_"


def blanked(name: str) -> str:
    return re.sub(r"[\t\r\n]", " ", name)


CASES = (
    Case("jsonl"),
    Case("dygie", has_ids=False),
    Case("w2ner"),
    Case("casrel", type=lambda name: "Entity"),
    Case("cmeee", by="characters"),
    Case("cluener", by="characters"),
    Case("tablert"),
    Case("spert"),
    Case("prodigy", "document", "ink"),
    Case("doccano", "document", "ink"),
    Case("doccano:form=labels", "document", "ink"),
    Case("doccano:offsets=utf16", "document", "ink", reading="doccano:offsets=utf16"),
    Case("label_studio", "document", "ink"),
    Case("label_studio:kind=predictions", "document", "ink"),
    Case("docbin", "document", "ink"),
    Case("hf_dataset"),
    Case("pubtator", "document", "ink", has_ids=False, type=blanked),
    Case("ade_rel", by="ink", has_ids=False, prepared=of_drugs),
    Case("ade_rel:kind=dose", by="ink", reading="ade_rel:kind=dose", has_ids=False, prepared=partial(of_drugs, head="Dose")),
    Case("multihead", has_ids=False),
    Case("weibo", by="characters", has_ids=False, prepared=closed_up),
    Case("brat", "document", "ink", type=underscored, relation_type=underscored, prepared=numbered),
    Case("conll", has_ids=False),
    Case("conll:levels=3,scheme=bioes", has_ids=False),
    Case("conll:scheme=iob1,separator=space,documents=yes", has_ids=False),
    Case("conll:scheme=bmes,ids=yes,pos=yes", reading="conll:labels=-1,pos=1", has_ids=False),
)


@dataclasses.dataclass
class Said:
    """What sentences say: their units, and the entities and relations of each."""

    units: list[tuple[str, Any]]
    entities: Counter[Any]
    relations: Counter[Any]

    def renumbered(self, new: Sequence[int]) -> Said:
        entities = Counter({(new[unit], *key): count for (unit, *key), count in self.entities.items()})
        relations: Counter[Any] = Counter()
        for (kind, *ends), count in self.relations.items():
            relations[(kind, *((new[end[0]], *end[1:]) if end else None for end in ends))] += count
        return Said(self.units, entities, relations)


def said(sentences: Iterable[Sentence], case: Case) -> Said:
    result = Said([], Counter(), Counter())
    for group in by_document(sentences):
        ends: dict[tuple[int | None, int], Any] = {}
        base = 0
        for place, sentence in enumerate(group):
            if case.unit == "sentence" or place == 0:
                name = sentence.document if case.unit == "document" and sentence.document is not None else sentence.id
                result.units.append((name, ()))
                base = 0
            unit = len(result.units) - 1
            inked = [n for n, character in enumerate(sentence.text) if case.by != "ink" or not character.isspace()]
            content = sentence.words if case.by == "words" else tuple(sentence.text[n] for n in inked)
            result.units[-1] = (result.units[-1][0], result.units[-1][1] + content)
            for number, entity in enumerate(sentence.entities):
                if case.by == "words":
                    place_of_entity: Any = entity.fragments
                else:
                    ranges = [sentence.characters(fragment) for fragment in entity.fragments]
                    place_of_entity = tuple(base + i for i, n in enumerate(inked) if any(a <= n < b for a, b in ranges))
                ends[place, number] = (unit, case.type(entity.type), place_of_entity)
                result.entities[ends[place, number]] += 1
            base += len(inked)
        places = {sentence.position: place for place, sentence in enumerate(group)}
        for place, sentence in enumerate(group):
            for r in sentence.relations:
                result.relations[case.relation_type(r.type), ends[place, r.head], ends[place, r.tail]] += 1
            for k in sentence.links:
                tail = ends.get((places.get(k.position, -1), k.tail))
                result.relations[case.relation_type(k.type), ends[place, k.head], tail] += 1
    return result


def lost(ledger: Ledger) -> Counter[str]:
    """How many things of each kind are lost, or were given twice and are there once."""
    counts = Counter[str]()
    for (kind, _), count in ledger.losses.items():
        counts[kind] += count
    for what in ("entities", "relations"):
        counts[what] += ledger.notes[f"{what} given twice, merged"]
    return counts


def assert_accounted(case: Case, sentences: Sequence[Sentence], again: Sequence[Sentence], writing: Ledger) -> None:
    """What was written is what is read again and what is counted as lost, and nothing came back changed."""
    missing = lost(writing)
    before = said(sentences, case)
    after = _aligned(before, said(again, case), has_words=not missing["words"])
    assert before.entities.total() - after.entities.total() == missing["entities"], str(writing)
    assert before.relations.total() - after.relations.total() == missing["relations"], str(writing)
    as_named = said(sentences, dataclasses.replace(case, type=str, relation_type=str))
    renamed = (after.entities - as_named.entities) + (_types(after.relations) - _types(as_named.relations))
    assert renamed.total() <= missing["names"] + missing["types"], str(writing)
    if len(before.units) > len(after.units):
        filled = [unit for unit in before.units if "".join(unit[1]).strip()] if case.unit == "document" else before.units
        assert len(filled) - len(after.units) <= missing["sentences"]
        return
    if case.has_ids:
        assert [name for name, _ in before.units] == [name for name, _ in after.units]
    if case.unit == "document" and case.name != "pubtator":  # which writes line ends as blanks
        texts = ["".join(sentence.text for sentence in group) for group in by_document(again)]
        assert texts == [document.text for document in to_documents(sentences, Ledger())]
    contents = ((a, b) for u, v in zip(before.units, after.units, strict=True) for a, b in zip(u[1], v[1], strict=True))
    assert sum(a != b for a, b in contents) == missing["words"]


def _aligned(before: Said, after: Said, *, has_words: bool) -> Said:
    """What was read, with the units numbered as they were written, though some may be missing."""
    for kept in combinations(range(len(before.units)), len(after.units)):
        found = after.renumbered(kept)
        is_same = not has_words or all(before.units[n][1] == unit[1] for n, unit in zip(kept, after.units, strict=True))
        if is_same and not (found.entities - before.entities or found.relations - before.relations):
            return found
    raise AssertionError(f"something came back changed\nwritten: {before}\nread:    {after}")


def _types(relations: Counter[Any]) -> Counter[str]:
    counts = Counter[str]()
    for (kind, *_), count in relations.items():
        counts[kind] += count
    return counts
