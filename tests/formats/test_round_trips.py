"""What must hold for every format: what is written is read again, what is lost is counted, what is written is recognised."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from itertools import accumulate, combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import NEEDS, put
from strategies import corpora

from spanwise import Sentence, convert, read, write
from spanwise.formats import Ledger, LossError, detect, formats
from spanwise.formats.documents import by_document, to_documents


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
EVERY_CASE = pytest.mark.parametrize("case", CASES, ids=str)


def test_every_format_that_can_be_written_is_here() -> None:
    assert {case.name for case in CASES} == {name for name, format in formats().items() if format.write}


def is_missing(case: Case) -> bool:
    """True when the library that a format needs is not installed."""
    return case.name in NEEDS and find_spec(NEEDS[case.name]) is None


@pytest.fixture(autouse=True)
def _needs(request: pytest.FixtureRequest) -> None:
    case = request.node.callspec.params.get("case") if hasattr(request.node, "callspec") else None
    if case and is_missing(case):
        pytest.skip(f"{NEEDS[case.name]} is not installed")


@contextmanager
def target(case: Case, plain: bool = False) -> Iterator[Path]:
    """A path to write to; a plain one has a name that tells nothing."""
    extension = "" if plain else (*formats()[case.name].extensions, "")[0]
    with TemporaryDirectory() as folder:
        yield Path(folder) / f"out{extension}"


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


def aligned(before: Said, after: Said) -> Said:
    """What was read, with the units numbered as they were written, though some may be missing."""
    for kept in combinations(range(len(before.units)), len(after.units)):
        found = after.renumbered(kept)
        if not (found.entities - before.entities or found.relations - before.relations):
            return found
    raise AssertionError(f"something came back changed\nwritten: {before}\nread:    {after}")


def lost(ledger: Ledger) -> Counter[str]:
    counts = Counter[str]()
    for (kind, _), count in ledger.losses.items():
        counts[kind] += count
    for what in ("entities", "relations"):
        counts[what] += ledger.notes[f"{what} given twice, merged"]
    return counts


def types_of(relations: Counter[Any]) -> Counter[str]:
    counts = Counter[str]()
    for (kind, *_), count in relations.items():
        counts[kind] += count
    return counts


@EVERY_CASE
@given(sentences=corpora())
@settings(max_examples=60, deadline=None)
def test_what_is_not_counted_as_lost_is_read_again(case: Case, sentences: list[Sentence]) -> None:
    sentences = case.prepared(sentences)
    writing, reading = Ledger(), Ledger()
    with target(case) as path:
        write(iter(sentences), path, case.spec, ledger=writing, lossy=True)
        again = list(read(path, case.reading or case.name, reading))
    assert str(reading) == ""
    missing = lost(writing)
    before, unaligned = said(sentences, case), said(again, case)
    after = aligned(before, unaligned)
    assert before.entities.total() - after.entities.total() == missing["entities"], str(writing)
    assert before.relations.total() - after.relations.total() == missing["relations"], str(writing)
    as_named = said(sentences, dataclasses.replace(case, type=str, relation_type=str))
    renamed = (after.entities - as_named.entities) + (types_of(after.relations) - types_of(as_named.relations))
    assert renamed.total() <= missing["names"] + missing["types"]
    if len(before.units) > len(after.units):
        filled = [unit for unit in before.units if "".join(unit[1]).strip()] if case.unit == "document" else before.units
        assert len(filled) - len(after.units) <= missing["sentences"]
        return
    if case.has_ids:
        assert [name for name, _ in before.units] == [name for name, _ in after.units]
    if case.unit == "document" and case.name != "pubtator":  # which writes line ends as blanks
        texts = ["".join(sentence.text for sentence in group) for group in by_document(again)]
        assert texts == [document.text for document in to_documents(sentences, Ledger())]
    changed = sum(a != b for u, v in zip(before.units, after.units, strict=True) for a, b in zip(u[1], v[1], strict=True))
    assert changed == missing["words"]


@given(sentences=corpora())
@settings(max_examples=150, deadline=None)
def test_the_interchange_format_holds_everything(sentences: list[Sentence]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "out.jsonl"
        ledger = write(sentences, path, lossy=True)
        again = list(read(path))
    assert again == sentences
    assert ledger.lost == 0
    if not ledger.notes:  # what is kept besides cannot have a key of the format itself
        assert list(map(dataclasses.asdict, again)) == list(map(dataclasses.asdict, sentences))


@EVERY_CASE
@given(sentences=corpora(with_extra=False), plain=st.booleans())
@settings(max_examples=40, deadline=None)
def test_what_is_written_is_recognised(case: Case, sentences: list[Sentence], plain: bool) -> None:
    with target(case, plain) as path:
        write(case.prepared(sentences), path, case.spec, lossy=True)
        if any(sentence.entities for sentence in read(path, case.reading or case.name)):
            assert detect(path).name == case.name


@EVERY_CASE
@given(sentences=corpora())
@settings(max_examples=15, deadline=None)
def test_conversion_refuses_exactly_what_would_lose_something(case: Case, sentences: list[Sentence]) -> None:
    with target(case) as path:
        source, direct = path.with_name("source.jsonl"), path.with_name("direct")
        write(sentences, source, lossy=True)
        expected = write(read(source), direct, case.spec, lossy=True).losses
        if expected:
            with pytest.raises(LossError) as caught:
                convert(source, path, "jsonl", case.spec)
            assert caught.value.ledger.losses == expected
            assert {file.name for file in path.parent.iterdir()} == {"source.jsonl", "direct"}
        result = convert(source, path, "jsonl", case.spec, lossy=bool(expected))
        assert result.ledger.losses == expected
        assert result.counts["all"]["entities"] == sum(len(sentence.entities) for sentence in sentences)
        reading = case.reading or case.name
        assert [s.entities for s in read(path, reading)] == [s.entities for s in read(direct, reading)]


@pytest.mark.parametrize("name", formats())
def test_every_format_into_every_other(name: str, tmp_path: Path) -> None:
    """With what such files have besides: a key of the one format must not make the other look like a third."""
    source = put(name, tmp_path / "source")
    assert detect(source).name == name
    before = list(read(source, name))
    assert any(sentence.entities for sentence in before)
    for number, case in enumerate(case for case in CASES if ":" not in case.spec and not is_missing(case)):
        path = tmp_path / f"{number}{(*formats()[case.name].extensions, '')[0]}"
        missing = lost(convert(source, path, name, case.spec, lossy=True).ledger)
        after = list(read(path, case.name))
        assert detect(path).name == case.name or not any(sentence.entities for sentence in after)
        assert sum(len(s.entities) for s in after) == sum(len(s.entities) for s in before) - missing["entities"]
        relations = [sum(len(s.relations) + len(s.links) for s in sentences) for sentences in (before, after)]
        assert relations[1] == relations[0] - missing["relations"]
