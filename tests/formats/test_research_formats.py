"""What must hold for each of the formats of research code: nothing lost in silence, no traceback, no file claimed twice."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanwise import Entity, FormatError, Link, Relation, Sentence, Span
from spanwise.files.reading import read_json_records
from spanwise.formats import (
    Ledger,
    casrel,
    cluener,
    cmeee,
    conll,
    dygie,
    jsonl,
    multihead,
    spert,
    tablert,
    w2ner,
    weibo,
)
from spanwise.formats.shared.sample import Sample

MODULES = (dygie, w2ner, casrel, cmeee, cluener, tablert, spert, multihead, weibo)
OF_CHARACTERS = (cluener, cmeee, weibo)
TYPES = ("Loc", "Org", "a b", "\tX", "N", "'", "\\", 'it\'s "so"', "O", "B-X\n")

words = st.text("ab 北京\t\n\r'\"\\\ufeff\ufffd1#[]", min_size=1, max_size=3)


@st.composite
def entities(draw: st.DrawFn, length: int) -> tuple[Entity, ...]:
    found = {}
    for _ in range(draw(st.integers(0, 4)) if length else 0):
        edges = sorted(draw(st.sets(st.integers(0, length), min_size=2, max_size=4)))
        fragments = tuple(zip(edges[::2], edges[1::2], strict=False))
        found[Entity(draw(st.sampled_from(TYPES)), fragments)] = None
    return tuple(found)


@st.composite
def documents(draw: st.DrawFn) -> list[Sentence]:
    """Sentences of one document, or of none."""
    count = draw(st.integers(1, 3))
    tokens = [draw(st.lists(words, max_size=5)) for _ in range(count)]
    members = [draw(entities(len(part))) for part in tokens]
    places = [(position, number) for position, part in enumerate(members) for number in range(len(part))]
    arrows = st.tuples(st.sampled_from(TYPES), st.sampled_from(places), st.sampled_from(places)) if places else st.nothing()
    drawn = draw(st.lists(arrows, max_size=4, unique=True)) if places else []
    as_document = draw(st.booleans())
    sentences = []
    for position, part in enumerate(tokens):
        mine = [(kind, head[1], tail) for kind, head, tail in drawn if head[0] == position]
        relations = tuple(Relation(kind, head, tail[1]) for kind, head, tail in mine if tail[0] == position)
        links = tuple(Link(kind, head, *tail) for kind, head, tail in mine if tail[0] != position)
        place: dict[str, Any] = {"document": "d", "position": position, "links": links} if as_document else {}
        sentences.append(Sentence(f"s{position}", tuple(part), members[position], relations, **place))
    return sentences


def said(sentences: Iterable[Sentence], *, has_character_offsets: bool) -> tuple[Counter[Any], Counter[Any]]:
    """The entities and the relations of sentences, with the sentence each is in."""
    found_entities: Counter[Any] = Counter()
    found_relations: Counter[Any] = Counter()
    everything = list(sentences)
    for place, sentence in enumerate(everything):
        named = [_named(sentence, entity, has_character_offsets) for entity in sentence.entities]
        found_entities.update((place, name) for name in named)
        found_relations.update((place, r.type, named[r.head], place, named[r.tail]) for r in sentence.relations)
        for link in sentence.links:
            there = everything[link.position]
            tail = _named(there, there.entities[link.tail], has_character_offsets)
            found_relations.update([(place, link.type, named[link.head], link.position, tail)])
    return found_entities, found_relations


def _named(sentence: Sentence, entity: Entity, has_character_offsets: bool) -> tuple[str, tuple[Span, ...]]:
    fragments = tuple(sentence.characters(f) for f in entity.fragments) if has_character_offsets else entity.fragments
    return entity.type, fragments


@pytest.mark.parametrize("module", MODULES)
@given(sentences=documents())
@settings(max_examples=150, deadline=None)
def test_what_is_not_counted_as_lost_is_read_back(module: ModuleType, sentences: list[Sentence]) -> None:
    if module is weibo:  # its columns hold words, not what stands between them
        sentences = [Sentence(s.id, s.words, s.entities, s.relations, text="".join(s.words)) for s in sentences]
    ledger = Ledger()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "out"
        module.write(iter(sentences), path, ledger)
        again = list(module.read(path, Ledger()))
    lost = Counter[str]()
    for (kind, _), count in ledger.losses.items():
        lost[kind] += count
    if lost["sentences"]:
        assert len(again) == len(sentences) - lost["sentences"]
        return
    has_character_offsets = module in OF_CHARACTERS
    before, after = (
        said(sentences, has_character_offsets=has_character_offsets),
        said(again, has_character_offsets=has_character_offsets),
    )
    if not (lost["words"] or lost["types"]):
        assert [s.text for s in again] == [s.text for s in sentences]
        assert has_character_offsets or [s.words for s in again] == [s.words for s in sentences]
        assert after[0] <= before[0]
        assert after[1] <= before[1]
    assert before[0].total() - after[0].total() == lost["entities"]
    assert before[1].total() - after[1].total() == lost["relations"]


SENTENCES = [
    Sentence(
        "s1",
        ("北", "京", "a", "é"),
        (Entity("Entity", ((0, 2),)), Entity("Entity", ((3, 4),))),
        (Relation("in", 1, 0),),
    ),
    Sentence("s2", ("b",)),
]
GARBAGE = (
    b"", b"\n \n", b"\xff\xfe\x00", b"\0\0\0\n", b"\xef\xbb\xbf", b"[", b"[]", b"{", b"{}", b"null", b"1", b'"x"', b"[1, 2]",
    b"[[]]", b"[{}]", b"[" * 5000, b'{"a":' * 5000,
)  # fmt: skip
NEARLY = (
    b'{"text": "\\ud800", "label": {}, "triple_list": [], "tokens": [], "entities": [], "sentences": [], "sentence": []}',
    b'[{"tokens": ["a"], "tags": ["O"], "entities": [], "relations": [{}]}',
    b"#doc",
    b"#doc\n0\t",
)


def is_read_or_refused(module: ModuleType, path: Path) -> bool:
    try:
        return all(isinstance(sentence, Sentence) for sentence in module.read(path, Ledger()))
    except FormatError as error:
        return str(path) in str(error)


@pytest.mark.parametrize(("module", "garbage"), list(product(MODULES, GARBAGE + NEARLY)))
def test_garbage_is_refused_without_a_traceback(workbench: Any, module: ModuleType, garbage: bytes) -> None:
    assert is_read_or_refused(module, workbench.file(garbage))


@pytest.mark.parametrize("module", MODULES)
def test_a_file_that_is_cut_off_or_damaged_anywhere(workbench: Any, module: ModuleType) -> None:
    module.write(iter(SENTENCES), workbench.folder / "good", Ledger())
    good = (workbench.folder / "good").read_bytes()
    for place in range(len(good)):
        assert is_read_or_refused(module, workbench.file(good[:place]))
        for damage in (b"\0", b"\xff", b'"', b"9", b"-", b"[", b"\t"):
            assert is_read_or_refused(module, workbench.file(good[:place] + damage + good[place + 1 :]))


# In the order of the registry.
ALL = (jsonl, *MODULES, conll)


def claims(path: Path) -> list[str]:
    sample = Sample(path)
    return [module.FORMAT.name for module in ALL if module.FORMAT.sniff(sample)]


@pytest.mark.parametrize("module", MODULES)
def test_each_knows_its_own_file(workbench: Any, module: ModuleType) -> None:
    module.write(iter(SENTENCES), workbench.folder / "out", Ledger())
    assert claims(workbench.folder / "out")[0] == module.FORMAT.name
    if module not in (weibo, multihead):
        assert claims(workbench.folder / "out") == [module.FORMAT.name]
        records = [record for _, record in read_json_records(workbench.folder / "out")]
        as_lines = "".join(json.dumps(record) + "\n" for record in records)
        assert claims(workbench.file(as_lines)) == claims(workbench.file(records)) == [module.FORMAT.name]


@pytest.mark.parametrize("garbage", GARBAGE)
def test_garbage_is_nobodys(workbench: Any, garbage: bytes) -> None:
    assert claims(workbench.file(garbage)) == []


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("conll04/raw_sample/conll04_dev.sample.json", "spert"),
        ("ade/raw_sample/ade_split_0_test.sample.json", "spert"),
        ("conll04/raw_sample/conll04_dev.tablert_bilou.sample.json", "tablert"),
        ("conll04/raw_sample/multihead_dev.sample.txt", "multihead"),
        ("webnlg/raw_sample/test_triples.sample.json", "casrel"),
        ("webnlg_star/raw_sample/test_triples.sample.json", "casrel"),
        ("cluener/raw_sample/dev.sample.json", "cluener"),
        ("weibo/raw_sample/weiboNER_2nd_conll.dev", "weibo"),
        ("conll04/dev.jsonl", "jsonl"),
        ("cluener/test_unlabelled.jsonl", "jsonl"),
        ("germeval14/raw_sample/NER-de-dev.sample.tsv", "conll"),
        ("litbank/raw_sample/105_persuasion_brat.tsv", "conll"),
    ],
)
def test_real_files_are_known(shared_data: Path, path: str, name: str) -> None:
    sample = Sample(shared_data / path)
    assert next(module.FORMAT.name for module in ALL if module.FORMAT.sniff(sample)) == name


def test_files_of_other_formats_are_not_claimed(shared_data: Path) -> None:
    others = ("genia", "germeval14", "litbank", "ncbi_disease", "nerel")
    files = [p for corpus in others for p in (shared_data / corpus / "raw_sample").iterdir()]
    files += [*shared_data.glob("*/*.jsonl"), shared_data / "ade/raw_sample/DRUG-AE.rel.sample"]
    assert len(files) > 50
    claimed = [(path, module.FORMAT.name) for path in files for module in MODULES if module.FORMAT.sniff(Sample(path))]
    assert claimed == []
