"""The relation lines of the ADE corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spanwise import Entity, FormatError, Link, Relation, Sentence
from spanwise.formats import Ledger, ade_rel, detect, read, write

# Starts of the sentences: 4 for the first (after PMID and two line breaks), 100 and 300 are invented.
FILE = """\
11|Zinc-induced rash and zinc fever.|rash|17|21|Zinc|4|8
11|Zinc-induced rash and zinc fever.|zinc fever|26|36|Zinc|4|8
11|Iron, then iron | copper gave pain, iron pain.|iron pain|136|145|iron|111|115

12|Iron, then iron | copper gave pain, iron pain.|pain|330|334|copper|318|324
12|Other.|pain|330|334|Other|318|323
"""


def file(folder: Path, content: str, name: str = "data.rel") -> Path:
    path = folder / name
    path.write_bytes(content.encode())
    return path


def load(path: Path, **options: Any) -> tuple[list[Sentence], Ledger]:
    ledger = Ledger()
    return list(ade_rel.read(path, ledger, **options)), ledger


def written(sentences: list[Sentence], folder: Path, **options: Any) -> tuple[list[str], Ledger]:
    ledger = Ledger()
    ade_rel.write(iter(sentences), folder / "out.rel", ledger, **options)
    return (folder / "out.rel").read_text(encoding="utf-8").splitlines(), ledger


def mentions(sentence: Sentence) -> list[tuple[str, int, int]]:
    return [(e.type, *sentence.characters(e.range)) for e in sentence.entities]


def test_lines_of_the_same_sentence_are_joined(tmp_path: Path) -> None:
    (first, *_), _ = load(file(tmp_path, FILE))
    assert first == Sentence(
        "11-0",
        ("Zinc", "-", "induced", "rash", "and", "zinc", "fever", "."),
        (Entity("Adverse-Effect", ((3, 4),)), Entity("Drug", ((0, 1),)), Entity("Adverse-Effect", ((5, 7),))),
        (Relation("Adverse-Effect", 0, 1), Relation("Adverse-Effect", 2, 1)),
        text="Zinc-induced rash and zinc fever.",
        document="11",
        position=0,
    )


def test_offsets_select_the_occurrence(tmp_path: Path) -> None:
    (_, second, third, fourth), ledger = load(file(tmp_path, FILE))
    assert (second.id, second.text) == ("11-1", "Iron, then iron | copper gave pain, iron pain.")
    assert mentions(second) == [("Adverse-Effect", 36, 45), ("Drug", 11, 15)]
    assert (third.id, mentions(third)) == ("12-0", [("Adverse-Effect", 30, 34), ("Drug", 18, 24)])
    assert (fourth.id, mentions(fourth), fourth.relations) == ("12-1", [("Drug", 0, 5)], ())
    assert str(ledger) == "1 entity (not in their sentence), 1 relation (with a mention that is not in the sentence)"
    assert ledger.notes == {}


def test_all_lines_of_a_sentence_decide_its_start(tmp_path: Path) -> None:
    """The first line alone allows two starts; with the second, one remains."""
    text = "rash by zinc, rash by zinc and iron"
    line = f"11|{text}|rash|214|218|zinc|222|226\n"
    (alone,), ledger = load(file(tmp_path, line))
    assert mentions(alone) == [("Adverse-Effect", 0, 4), ("Drug", 8, 12)]
    assert ledger.notes == {"sentences whose mentions fit in several ways, aligned to the leftmost": 1}
    (both,), ledger = load(file(tmp_path, line + f"11|{text}|rash|214|218|iron|231|235\n"))
    assert mentions(both) == [("Adverse-Effect", 14, 18), ("Drug", 22, 26), ("Drug", 31, 35)]
    assert ledger.notes == {}


def test_repairs_are_noted(tmp_path: Path) -> None:
    effects = ("RASH|20|26", "rash|20|24", "rash|29|33")
    content = "".join(f"1|Zinc gave rash.|{effect}|Zinc|10|14\n" for effect in effects)
    (sentence,), ledger = load(file(tmp_path, content))
    assert (mentions(sentence), sentence.relations) == (
        [("Adverse-Effect", 10, 14), ("Drug", 0, 4)],
        (Relation("Adverse-Effect", 0, 1),),
    )
    assert ledger.notes == {
        "mentions whose offsets do not match their length": 1,
        "mentions that differ from their sentence in case": 1,
        "mentions whose offset does not match, placed at the nearest occurrence": 1,
        "duplicate relations, merged": 2,
    }
    assert ledger.lost == 0


def test_doses(tmp_path: Path) -> None:
    line = "1|Zinc, 5 mg daily.|5 mg|16|20|Zinc|10|14\n"
    dose = (Entity("Dose", ((2, 4),)), Entity("Drug", ((0, 1),)))
    for path, options in ((file(tmp_path, line, "DRUG-DOSE.rel"), {}), (file(tmp_path, line), {"kind": "dose"})):
        (sentence,), _ = load(path, **options)
        assert (sentence.entities, sentence.relations) == (dose, (Relation("Dose", 0, 1),))
    assert [e.type for s in read(tmp_path / "DRUG-DOSE.rel", "ade_rel:kind=effect") for e in s.entities] == [
        "Adverse-Effect",
        "Drug",
    ]
    assert write([sentence], tmp_path / "out.rel", "ade_rel:kind=dose").lost == 0
    assert list(read(tmp_path / "out.rel", "ade_rel:kind=dose")) == [sentence]


def test_written_with_offsets_in_the_sentence(tmp_path: Path) -> None:
    sentences, _ = load(file(tmp_path, FILE.replace("12|Other.|pain|330|334|Other|318|323\n", "")))
    lines, ledger = written(sentences, tmp_path)
    assert lines == [
        "11|Zinc-induced rash and zinc fever.|rash|13|17|Zinc|0|4",
        "11|Zinc-induced rash and zinc fever.|zinc fever|22|32|Zinc|0|4",
        "11|Iron, then iron | copper gave pain, iron pain.|iron pain|36|45|iron|11|15",
        "12|Iron, then iron | copper gave pain, iron pain.|pain|30|34|copper|18|24",
    ]
    assert (ledger.lost, load(tmp_path / "out.rel")[0]) == (0, sentences)


def test_losses_are_counted(tmp_path: Path) -> None:
    words = ("a|b", "x", "y", "z", "w")
    effect, drug, barred = Entity("Adverse-Effect", ((1, 2),)), Entity("Drug", ((2, 3),)), Entity("Drug", ((0, 1),))
    gap, lone, place = Entity("Drug", ((1, 2), (3, 4))), Entity("Drug", ((4, 5),)), Entity("Place", ((2, 3),))
    full = Sentence(
        "s1", words, (effect, drug, barred, gap, lone, place, drug),
        (Relation("Adverse-Effect", 0, 1), Relation("Adverse-Effect", 0, 2), Relation("Other", 0, 1),
         Relation("Adverse-Effect", 1, 0), Relation("Adverse-Effect", 0, 6)),
        (Link("Adverse-Effect", 0, 1, 1),), document="d|1\n", position=0, text="a|b x\ny\rz w",
    )  # fmt: skip
    twin = Sentence("s2", words, (effect, drug), (Relation("Adverse-Effect", 0, 1),), document="d|1\n", text="a|b x y z w")
    empty = Sentence("s3", ("Nothing", "here"))
    lines, ledger = written([full, empty, twin], tmp_path)
    assert lines == ["d_1_|a|b x y z w|x|4|5|y|6|7"]
    assert dict(ledger.losses) == {
        ("entities", "with | in their text"): 1,
        ("entities", "discontinuous"): 1,
        ("entities", "of a type other than Adverse-Effect and Drug"): 1,
        ("relations", "across sentences"): 1,
        ("relations", "with a dropped entity"): 1,
        ("relations", "other than Adverse-Effect from Adverse-Effect to Drug"): 2,
        ("entities", "without a relation"): 1,
        ("sentences", "without a relation of this kind"): 1,
        ("sentences", "identical to the previous one"): 1,
        ("entities", "in a dropped sentence"): 2,
        ("relations", "in a dropped sentence"): 1,
    }
    assert ledger.notes["duplicate entities, merged"] == ledger.notes["duplicate relations, merged"] == 1
    (reread,), _ = load(tmp_path / "out.rel")
    assert [reread.text_of(e) for e in reread.entities] == ["x", "y"]


def test_losses_of_a_repeated_sentence_are_counted_once(tmp_path: Path) -> None:
    effect, drug, blank = Entity("Adverse-Effect", ((0, 1),)), Entity("Drug", ((1, 2),)), Entity("Drug", ((2, 3),))
    related = (Relation("Adverse-Effect", 0, 1), Relation("Adverse-Effect", 0, 3))
    sentence = Sentence("s", ("rash", "zinc", " "), (effect, drug, drug, blank), related)
    _, ledger = written([sentence, sentence], tmp_path)
    assert dict(ledger.losses) == {
        ("entities", "that are only whitespace"): 2,
        ("relations", "with a dropped entity"): 2,
        ("sentences", "identical to the previous one"): 1,
        ("entities", "in a dropped sentence"): 2,
        ("relations", "in a dropped sentence"): 1,
    }
    assert ledger.notes["duplicate entities, merged"] == 2


@pytest.mark.parametrize(
    "line",
    ["1|Zinc|Zinc|0|4|Zinc|0", "1|Zinc|Zinc|0|x|Zinc|0|4", "Zinc", "|Zinc|Zinc|0|4|Zinc|0|4", "1| |Zinc|0|4|Zinc|0|4",
     "1|Zinc||0|4|Zinc|0|4", "1|Zinc|Zinc|-1|4|Zinc|0|4", f"1|Zinc|Zinc|0|{'4' * 5000}|Zinc|0|4"],
)  # fmt: skip
def test_errors_name_the_line(tmp_path: Path, line: str) -> None:
    path = file(tmp_path, f"1|Zinc|Zinc|0|4|Zinc|0|4\n{line}\n")
    with pytest.raises(FormatError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}:2: expected PMID|sentence|effect|start|end|drug|start|end")


def test_empty_files_and_invalid_bytes(tmp_path: Path) -> None:
    assert load(file(tmp_path, ""))[0] == []
    path = tmp_path / "bytes.rel"
    path.write_bytes(b"\n1|\xff")
    with pytest.raises(FormatError, match="rel:2: not UTF-8 at byte 3"):
        load(path)


def squeezed(words: list[str], start: int, end: int) -> tuple[int, int]:
    return len("".join(words[:start])), len("".join(words[:end]))


def test_ade(shared_data: Path, tmp_path: Path, corpus: Any) -> None:
    path = shared_data / "ade/raw_sample/DRUG-AE.rel.sample"
    assert detect(path).name == "ade_rel"
    sentences, ledger = load(path)
    rows = [line.split("|") for line in path.read_text(encoding="utf-8").splitlines()]
    assert sum(len(s.relations) for s in sentences) == len(rows) == 440
    assert [(s.document, s.text) for s in sentences] == list(dict.fromkeys((row[0], row[1]) for row in rows))
    assert (len(sentences), ledger.lost) == (295, 0)
    known = {
        "".join(record["tokens"]): record
        for split in ("train", "test")
        for record in corpus(shared_data / f"ade/{split}.jsonl")
    }
    for number, s in enumerate(sentences):
        record = known["".join(s.words)]
        mine = [(e.type, squeezed(list(s.words), *e.range)) for e in s.entities]
        theirs = [(e["type"], squeezed(record["tokens"], *e["spans"][0])) for e in record["entities"]]
        assert sorted(mine) == sorted(theirs)
        mine_related = {(r.type, mine[r.head], mine[r.tail]) for r in s.relations}
        related = {(r["type"], theirs[r["head"]], theirs[r["tail"]]) for r in record["relations"]}
        # The sample ends in the middle of the lines of its last sentence.
        assert mine_related == related if number < len(sentences) - 1 else mine_related < related
    assert write(sentences, tmp_path / "out.rel").lost == 0
    assert list(read(tmp_path / "out.rel")) == sentences
