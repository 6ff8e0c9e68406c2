"""Check that everything a format cannot represent is counted in the ledger."""

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
from spanwise.formats.shared.documents import group_by_document, to_documents


@dataclasses.dataclass(frozen=True)
class Case:
    """How a format is written and read, and how it represents sentences.

    ``unit`` is the unit of a record, a "sentence" or a "document". ``by`` is how entities are located:
    by "words", by "characters" of the text, or by "ink", the characters that are not white space (for
    formats that trim white space).
    """

    spec: str
    unit: str = "sentence"
    by: str = "words"
    reading: str = ""
    has_ids: bool = True
    type: Callable[[str], str] = str  # how the format changes the name of a type
    relation_type: Callable[[str], str] = str
    text: Callable[[str], str] = str  # and the text of a document
    prepare: Callable[[list[Sentence]], list[Sentence]] = list  # makes sentences that the format can represent

    @property
    def name(self) -> str:
        return self.spec.partition(":")[0]

    def __str__(self) -> str:
        return self.spec


def without_spaces(sentences: list[Sentence]) -> list[Sentence]:
    """Remove the text between words."""
    result = []
    for s in sentences:
        starts = tuple(accumulate(map(len, s.words[:-1]), initial=0)) if s.words else ()
        result.append(dataclasses.replace(s, text="".join(s.words), starts=starts))
    return result


def with_sorted_names(sentences: list[Sentence]) -> list[Sentence]:
    """Give documents distinct names in sorted order."""
    groups = enumerate(group_by_document(sentences))
    return [
        dataclasses.replace(s, id=f"{n}", document=None if s.document is None else f"{n}") for n, group in groups for s in group
    ]


def about_drugs(sentences: list[Sentence], head: str = "Adverse-Effect") -> list[Sentence]:
    """Change most types to those of the ADE corpus, which is only about drugs."""
    result = []
    for s in sentences:
        entities = [dataclasses.replace(e, type=(head, "Drug", e.type)[len(e.type) % 5 // 2]) for e in s.entities]
        relations = [dataclasses.replace(r, type=head if len(r.type) % 4 else r.type) for r in s.relations]
        result.append(dataclasses.replace(s, entities=tuple(entities), relations=tuple(relations)))
    return result


def with_underscores(name: str) -> str:
    return "_".join(name.split()) or "_"


def without_tabs(name: str) -> str:
    return re.sub(r"[\t\r\n]", " ", name)


def valid_in_xml(name: str) -> str:
    invalid = "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
    return re.sub(invalid, lambda match: " " if match.group().isspace() else "\ufffd", name)


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
    Case("pubtator", "document", "ink", has_ids=False, type=without_tabs),
    Case("csv", "document", "ink", prepare=with_sorted_names),
    Case("csv:separator=tab", "document", "ink", prepare=with_sorted_names),
    Case("bioc_json", "document", "ink"),
    Case("bioc_xml", "document", "ink", has_ids=False, type=valid_in_xml, relation_type=valid_in_xml, text=valid_in_xml),
    Case("ade_rel", by="ink", has_ids=False, prepare=about_drugs),
    Case("ade_rel:kind=dose", by="ink", reading="ade_rel:kind=dose", has_ids=False, prepare=partial(about_drugs, head="Dose")),
    Case("multihead", has_ids=False),
    Case("weibo", by="characters", has_ids=False, prepare=without_spaces),
    Case("brat", "document", "ink", type=with_underscores, relation_type=with_underscores, prepare=with_sorted_names),
    Case("conll", has_ids=False),
    Case("conll:levels=3,scheme=bioes", has_ids=False),
    Case("conll:scheme=iob1,separator=space,documents=yes", has_ids=False),
    Case("conll:scheme=bmes,ids=yes,pos=yes", reading="conll:labels=-1,pos=1", has_ids=False),
)


@dataclasses.dataclass
class Content:
    """The units of some sentences, and their entities and relations."""

    units: list[tuple[str, Any]]
    entities: Counter[Any]
    relations: Counter[Any]

    def renumbered(self, new: Sequence[int]) -> Content:
        entities = Counter({(new[unit], *key): count for (unit, *key), count in self.entities.items()})
        relations: Counter[Any] = Counter()
        for (kind, *arguments), count in self.relations.items():
            relations[(kind, *((new[entity[0]], *entity[1:]) if entity else None for entity in arguments))] += count
        return Content(self.units, entities, relations)


def content_of(sentences: Iterable[Sentence], case: Case) -> Content:
    result = Content([], Counter(), Counter())
    for group in group_by_document(sentences):
        entities: dict[tuple[int | None, int], Any] = {}
        base = 0
        for index, sentence in enumerate(group):
            if case.unit == "sentence" or index == 0:
                name = sentence.document if case.unit == "document" and sentence.document is not None else sentence.id
                result.units.append((name, ()))
                base = 0
            unit = len(result.units) - 1
            visible = [n for n, character in enumerate(sentence.text) if case.by != "ink" or not character.isspace()]
            content = sentence.words if case.by == "words" else tuple(sentence.text[n] for n in visible)
            result.units[-1] = (result.units[-1][0], result.units[-1][1] + content)
            for number, entity in enumerate(sentence.entities):
                if case.by == "words":
                    location: Any = entity.fragments
                else:
                    ranges = [sentence.characters(fragment) for fragment in entity.fragments]
                    location = tuple(base + i for i, n in enumerate(visible) if any(a <= n < b for a, b in ranges))
                entities[index, number] = (unit, case.type(entity.type), location)
                result.entities[entities[index, number]] += 1
            base += len(visible)
        indices = {sentence.position: index for index, sentence in enumerate(group)}
        for index, sentence in enumerate(group):
            for r in sentence.relations:
                result.relations[case.relation_type(r.type), entities[index, r.head], entities[index, r.tail]] += 1
            for k in sentence.links:
                tail = entities.get((indices.get(k.position, -1), k.tail))
                result.relations[case.relation_type(k.type), entities[index, k.head], tail] += 1
    return result


def count_lost(ledger: Ledger) -> Counter[str]:
    """Count the items of each kind that were lost, or merged as duplicates."""
    counts = Counter[str]()
    for (kind, _), count in ledger.losses.items():
        counts[kind] += count
    for kind in ("entities", "relations"):
        counts[kind] += ledger.notes[f"duplicate {kind}, merged"]
    return counts


def assert_losses_are_counted(case: Case, sentences: Sequence[Sentence], reread: Sequence[Sentence], writing: Ledger) -> None:
    """Check that the written data was read back unchanged, except for the counted losses."""
    missing = count_lost(writing)
    before = content_of(sentences, case)
    after = _aligned(before, content_of(reread, case), has_words=not missing["words"])
    assert before.entities.total() - after.entities.total() == missing["entities"], str(writing)
    assert before.relations.total() - after.relations.total() == missing["relations"], str(writing)
    original = content_of(sentences, dataclasses.replace(case, type=str, relation_type=str))
    renamed = (after.entities - original.entities) + (_types(after.relations) - _types(original.relations))
    assert renamed.total() <= missing["names"] + missing["types"], str(writing)
    if len(before.units) > len(after.units):
        non_empty = [unit for unit in before.units if "".join(unit[1]).strip()] if case.unit == "document" else before.units
        assert len(non_empty) - len(after.units) <= missing["sentences"]
        return
    if case.has_ids:
        assert [name for name, _ in before.units] == [name for name, _ in after.units]
    if case.unit == "document" and case.name != "pubtator":  # PubTator writes line ends as spaces
        texts = ["".join(sentence.text for sentence in group) for group in group_by_document(reread)]
        assert texts == [case.text(document.text) for document in to_documents(sentences, Ledger())]
    contents = ((a, b) for u, v in zip(before.units, after.units, strict=True) for a, b in zip(u[1], v[1], strict=True))
    assert sum(a != b for a, b in contents) == missing["words"]


def _aligned(before: Content, after: Content, *, has_words: bool) -> Content:
    """Renumber the units that were read like the written ones, although some may be missing."""
    for numbers in combinations(range(len(before.units)), len(after.units)):
        renumbered = after.renumbered(numbers)
        is_same = not has_words or all(before.units[n][1] == unit[1] for n, unit in zip(numbers, after.units, strict=True))
        if is_same and not (renumbered.entities - before.entities or renumbered.relations - before.relations):
            return renumbered
    raise AssertionError(f"the data that was read differs\nwritten: {before}\nread:    {after}")


def _types(relations: Counter[Any]) -> Counter[str]:
    counts = Counter[str]()
    for (kind, *_), count in relations.items():
        counts[kind] += count
    return counts
