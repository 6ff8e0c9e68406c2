"""Standoff formats (brat, PubTator, GENIA XML, ADE): losses are counted, and damaged files give clear errors."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanwise import Entity, FormatError, Link, Relation, Sentence
from spanwise.formats import Ledger, ade_rel, brat, genia_xml, pubtator
from spanwise.formats.shared.documents import to_documents
from spanwise.formats.shared.sample import Sample

MODULES = (brat, pubtator, genia_xml, ade_rel)
WORDS = ("zinc", "zinc", "a", "a", ".", "Iron.", "北", "京", "a|b", "x:y", "T1", "\\", "é\u0301", "#1", "*", "“")
GAPS = (" ", " ", "\n", "", "  ", "\t", "\r\n")
TYPES = ("Adverse-Effect", "Drug", "Drug", "a;b")


@st.composite
def corpora(draw: st.DrawFn) -> list[Sentence]:
    """Draw sentences of one or two documents, with all kinds of annotations."""
    sentences: list[Sentence] = []
    for document in range(draw(st.integers(1, 2))):
        sizes: list[int] = []
        for position in range(draw(st.integers(1, 3))):
            words = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=8))
            text = "".join(word + draw(st.sampled_from(GAPS)) for word in words)
            entities = []
            for _ in range(draw(st.integers(0, 4))):
                boundaries = sorted(draw(st.sets(st.integers(0, len(words)), min_size=2, max_size=5)))
                fragments = tuple(zip(boundaries[::2], boundaries[1::2], strict=False))
                entities.append(Entity(draw(st.sampled_from(TYPES)), fragments))
            ends = st.tuples(st.integers(0, len(entities) - 1), st.integers(0, len(entities) - 1))
            pairs = draw(st.lists(ends, max_size=3)) if entities else []
            links = [Link("far", 0, 0, draw(st.integers(0, sizes[0] - 1)))] if entities and position and sizes[0] else []
            relations = tuple(Relation(draw(st.sampled_from(TYPES)), *pair) for pair in pairs)
            sizes.append(len(entities))
            sentences.append(
                Sentence(f"{document}-{position}", tuple(words), tuple(entities), relations, tuple(links), text,
                         document=f"d{document}", position=position)
            )  # fmt: skip
    return sentences


def content(sentences: Iterable[Sentence]) -> tuple[Counter[Any], Counter[Any]]:
    """Count entities and relations by the visible characters of their documents, without whitespace."""
    entities: Counter[Any] = Counter()
    relations: Counter[Any] = Counter()
    for document in to_documents(sentences, Ledger()):
        visible = [n for n, character in enumerate(document.text) if not character.isspace()]
        keys = {}
        for mention in document.mentions:
            characters = [i for i, n in enumerate(visible) for a, b in mention.fragments if a <= n < b]
            keys[mention.id] = (document.id, mention.type, tuple(characters))
        entities.update(keys.values())
        relations.update((r.type, keys[r.head], keys[r.tail]) for r in document.relations)
    return entities, relations


def round_trip(module: ModuleType, sentences: list[Sentence], folder: Path) -> tuple[list[Sentence], Ledger]:
    ledger = Ledger()
    target = folder / "out"
    if module is brat:
        target.mkdir()
    module.write(iter(sentences), target, ledger)
    reading = Ledger()
    reread = list(module.read(target, reading))
    assert reading.lost == 0
    return reread, ledger


@settings(max_examples=80, deadline=None, derandomize=True)
@given(corpora())
def test_brat_supports_everything(tmp_path_factory: pytest.TempPathFactory, sentences: list[Sentence]) -> None:
    reread, ledger = round_trip(brat, sentences, tmp_path_factory.mktemp("brat"))
    assert (content(reread), ledger.lost) == (content(sentences), 0)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(corpora())
def test_pubtator_counts_all_losses(tmp_path_factory: pytest.TempPathFactory, sentences: list[Sentence]) -> None:
    reread, ledger = round_trip(pubtator, sentences, tmp_path_factory.mktemp("pubtator"))
    entities, relations = content(sentences)
    assert content(reread)[1] == Counter()
    assert content(reread)[0] <= entities
    assert (
        content(reread)[0].total() + sum(n for (kind, _), n in ledger.losses.items() if kind == "entities") == entities.total()
    )
    assert sum(n for (kind, _), n in ledger.losses.items() if kind == "relations") == relations.total()


@settings(max_examples=120, deadline=None, derandomize=True)
@given(corpora())
def test_ade_counts_all_losses(tmp_path_factory: pytest.TempPathFactory, sentences: list[Sentence]) -> None:
    single = [Sentence(s.id, s.words, s.entities, s.relations, text=s.text, starts=s.starts) for s in sentences]
    reread, ledger = round_trip(ade_rel, single, tmp_path_factory.mktemp("ade"))
    reread = [Sentence(s.document or "", s.words, s.entities, s.relations, text=s.text, starts=s.starts) for s in reread]
    for kind, before, after in zip(("entities", "relations"), content(single), content(reread), strict=True):
        lost = sum(n for (lost_kind, _), n in ledger.losses.items() if lost_kind == kind)
        merged = ledger.notes[f"duplicate {kind}, merged"]
        assert not after - before
        assert after.total() + lost + merged == before.total()


SEEDS = {
    pubtator: """\
11|t|Zinc fume
11|a|Zinc oxide harms.
11\t0\t4\tZinc\tChemical\tC1
11\tCID\tC1\tD1

12|t|Iron
12\t0\t4\tIron\tC
""",
    ade_rel: """\
1|Zinc gave rash | pain.|rash|20|24|Zinc|10|14
1|Zinc gave rash | pain.|pain|27|31|Zinc|10|14
""",
    genia_xml: """\
<set><article><bibliomisc>M:1</bibliomisc><title>
<sentence>A <cons sem="G#virus"><cons lex="x" sem="(OR G#DNA_N/A G#RNA_N/A)">B &gt;</cons> c</cons>.</sentence>
</title></article></set>
""",
    brat: """\
T1\tPlace 0 4;6 8\tZinc ox
T2\tX 0 2\tZi
R1\tIn Arg1:T1 Arg2:T2
E1\tA:T1 B:T2
*\tEquiv T1 T2
A1\tNeg T1
N1\tR T1 W:1\tx
#1\tNote R1\ttext
""",
}


DAMAGES = (b"", b"\0", b"\xff", b"\t", b"\n", b" ", b"|", b"9", b"-", b":", b"T", b"<", b"\r")


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.FORMAT.name)
def test_damaged_files_are_read_or_refused(module: ModuleType, tmp_path: Path) -> None:
    generator = random.Random(7)
    seed = SEEDS[module].encode()
    path = tmp_path / "data.ann"
    path.with_suffix(".txt").write_text("Zinc oxide. Iron.")
    outcomes: Counter[str] = Counter()
    for number in range(600):
        raw = bytearray(seed)
        for _ in range(generator.randint(1, 3)):
            index = generator.randrange(len(raw))
            raw[index : index + generator.randint(0, 3)] = generator.choice((*DAMAGES, seed[:index]))
        path.write_bytes(raw)
        try:
            sentences = list(module.read(path, Ledger()))
        except FormatError as error:
            outcomes["named" if error.path.startswith(str(tmp_path)) else "unnamed"] += 1
            continue
        outcomes["read"] += 1
        if module.FORMAT.write:
            (tmp_path / str(number)).mkdir()
            reread, ledger = round_trip(module, sentences, tmp_path / str(number))
            is_renamed = any("renamed" in note for note in ledger.notes)
            assert ledger.lost or is_renamed or content(reread) == content(sentences)
    assert set(outcomes) == {"named", "read"}
    assert min(outcomes.values()) > 20


def test_files_of_other_formats_are_not_detected(shared_data: Path) -> None:
    expected = {
        "105_persuasion_brat.ann": brat, "105_persuasion_brat.txt": brat, "DRUG-AE.rel.sample": ade_rel,
        "GENIAcorpus3.02.sample.xml": genia_xml, "NCBIdevelopset_corpus.PubTator.sample.txt": pubtator,
    }  # fmt: skip
    files = [path for path in shared_data.rglob("*") if path.is_file() and "nerel/raw_sample" not in path.as_posix()]
    assert len(files) > 50
    for path in files:
        detected = [module for module in MODULES if module.FORMAT.sniff(Sample(path))]
        assert detected == ([expected[path.name]] if path.name in expected else []), path
