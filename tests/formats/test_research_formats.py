"""All formats of research code: losses are counted, errors are clear, detection is unique."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import pytest
from cases import in_case
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
CHARACTER_FORMATS = (cluener, cmeee, weibo)
TYPES = ("Loc", "Org", "a b", "\tX", "N", "'", "\\", 'it\'s "so"', "O", "B-X\n")

words = st.text("ab 北京\t\n\r'\"\\\ufeff\ufffd1#[]", min_size=1, max_size=3)


@st.composite
def entities(draw: st.DrawFn, length: int) -> tuple[Entity, ...]:
    distinct = {}
    for _ in range(draw(st.integers(0, 4)) if length else 0):
        edges = sorted(draw(st.sets(st.integers(0, length), min_size=2, max_size=4)))
        fragments = tuple(zip(edges[::2], edges[1::2], strict=False))
        distinct[Entity(draw(st.sampled_from(TYPES)), fragments)] = None
    return tuple(distinct)


@st.composite
def documents(draw: st.DrawFn) -> list[Sentence]:
    """Draw the sentences of one document, or sentences without documents."""
    count = draw(st.integers(1, 3))
    tokens = [draw(st.lists(words, max_size=5)) for _ in range(count)]
    members = [draw(entities(len(sentence))) for sentence in tokens]
    ends = [(position, index) for position, sentence in enumerate(members) for index in range(len(sentence))]
    arguments = st.tuples(st.sampled_from(TYPES), st.sampled_from(ends), st.sampled_from(ends)) if ends else st.nothing()
    drawn = draw(st.lists(arguments, max_size=4, unique=True)) if ends else []
    is_document = draw(st.booleans())
    sentences = []
    for position, sentence in enumerate(tokens):
        outgoing = [(type, head[1], tail) for type, head, tail in drawn if head[0] == position]
        relations = tuple(Relation(type, head, tail[1]) for type, head, tail in outgoing if tail[0] == position)
        links = tuple(Link(type, head, *tail) for type, head, tail in outgoing if tail[0] != position)
        location: dict[str, Any] = {"document": "d", "position": position, "links": links} if is_document else {}
        sentences.append(Sentence(f"s{position}", tuple(sentence), members[position], relations, **location))
    return sentences


def content(sentences: Iterable[Sentence], *, by_characters: bool) -> tuple[Counter[Any], Counter[Any]]:
    """Count the entities and the relations of sentences, with the index of their sentence."""
    entities: Counter[Any] = Counter()
    relations: Counter[Any] = Counter()
    all_sentences = list(sentences)
    for index, sentence in enumerate(all_sentences):
        keys = [_entity_key(sentence, entity, by_characters) for entity in sentence.entities]
        entities.update((index, key) for key in keys)
        relations.update((index, r.type, keys[r.head], index, keys[r.tail]) for r in sentence.relations)
        for link in sentence.links:
            target = all_sentences[link.position]
            tail = _entity_key(target, target.entities[link.tail], by_characters)
            relations.update([(index, link.type, keys[link.head], link.position, tail)])
    return entities, relations


def _entity_key(sentence: Sentence, entity: Entity, by_characters: bool) -> tuple[str, tuple[Span, ...]]:
    fragments = tuple(sentence.characters(f) for f in entity.fragments) if by_characters else entity.fragments
    return entity.type, fragments


@pytest.mark.parametrize("module", MODULES)
@given(sentences=documents())
@settings(max_examples=60, deadline=None)
def test_everything_but_counted_losses_is_read_back(module: ModuleType, sentences: list[Sentence]) -> None:
    if module is weibo:  # its columns cannot hold text between words
        sentences = [Sentence(s.id, s.words, s.entities, s.relations, text="".join(s.words)) for s in sentences]
    ledger = Ledger()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "out"
        module.write(iter(sentences), path, ledger)
        reread = list(module.read(path, Ledger()))
    lost = Counter[str]()
    for (kind, _), count in ledger.losses.items():
        lost[kind] += count
    if lost["sentences"]:
        assert len(reread) == len(sentences) - lost["sentences"]
        return
    by_characters = module in CHARACTER_FORMATS
    before, after = content(sentences, by_characters=by_characters), content(reread, by_characters=by_characters)
    if not (lost["words"] or lost["types"]):
        assert [s.text for s in reread] == [s.text for s in sentences]
        assert by_characters or [s.words for s in reread] == [s.words for s in sentences]
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
NEARLY_VALID = (
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


def test_garbage_is_refused_without_a_traceback(workbench: Any) -> None:
    for module in MODULES:
        for garbage in GARBAGE + NEARLY_VALID:
            with in_case(f"{module.FORMAT.name}, {garbage[:40]!r}"):
                assert is_read_or_refused(module, workbench.file(garbage))


@pytest.mark.parametrize("module", MODULES)
def test_truncated_and_damaged_files(workbench: Any, module: ModuleType) -> None:
    module.write(iter(SENTENCES), workbench.folder / "good", Ledger())
    good = (workbench.folder / "good").read_bytes()
    for index in range(len(good)):
        assert is_read_or_refused(module, workbench.file(good[:index]))
        for damage in (b"\0", b"\xff", b'"', b"9", b"-", b"[", b"\t"):
            assert is_read_or_refused(module, workbench.file(good[:index] + damage + good[index + 1 :]))


# In the order of the registry.
ALL = (jsonl, *MODULES, conll)


def detected(path: Path) -> list[str]:
    sample = Sample(path)
    return [module.FORMAT.name for module in ALL if module.FORMAT.sniff(sample)]


@pytest.mark.parametrize("module", MODULES)
def test_each_format_detects_only_its_files(workbench: Any, module: ModuleType) -> None:
    module.write(iter(SENTENCES), workbench.folder / "out", Ledger())
    assert detected(workbench.folder / "out")[0] == module.FORMAT.name
    if module not in (weibo, multihead):
        assert detected(workbench.folder / "out") == [module.FORMAT.name]
        records = [record for _, record in read_json_records(workbench.folder / "out")]
        as_lines = "".join(json.dumps(record) + "\n" for record in records)
        assert detected(workbench.file(as_lines)) == detected(workbench.file(records)) == [module.FORMAT.name]


def test_garbage_is_no_format(workbench: Any) -> None:
    for garbage in GARBAGE:
        assert detected(workbench.file(garbage)) == [], garbage[:40]


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
def test_real_files_are_detected(shared_data: Path, path: str, name: str) -> None:
    sample = Sample(shared_data / path)
    assert next(module.FORMAT.name for module in ALL if module.FORMAT.sniff(sample)) == name


def test_files_of_other_formats_are_not_detected(shared_data: Path) -> None:
    others = ("genia", "germeval14", "litbank", "ncbi_disease", "nerel")
    files = [p for corpus in others for p in (shared_data / corpus / "raw_sample").iterdir()]
    files += [*shared_data.glob("*/*.jsonl"), shared_data / "ade/raw_sample/DRUG-AE.rel.sample"]
    assert len(files) > 50
    wrong = [(path, module.FORMAT.name) for path in files for module in MODULES if module.FORMAT.sniff(Sample(path))]
    assert wrong == []
