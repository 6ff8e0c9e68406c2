"""brat folders of .txt and .ann files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from spanwise import Entity, FormatError, Link, Relation, Sentence, SpanwiseError
from spanwise.formats import Ledger, brat, detect, read, write

TEXT = "Acute renal\nand liver failure in Oslo. Zinc oxide caused it.\nIt ended.\n"
ANN = """\
T1\tDisease 0 11;22 29\tAcute renal failure
T2\tDisease 0 5;16 29\tAcute liver failure
T3\tPlace 33 37\tOslo
T4\tChemical 39 49\tZinc oxide
T5\tElement 39 43\tZinc
T6\tEvent 50 56\tcaused
T7\tDisease 0 11;12 29\tAcute renal and liver failure
R1\tCauses Arg1:T4 Arg2:T2
R2\tPart_of Arg1:T5 Arg2:T4\t
R3\tMade Source:T4 Site:T6
A1\tNegation T1
A2\tConfidence T1 rather high
M1\tUncertain R2
N1\tReference T3 Wikidata:Q585\tOslo, the town
#1\tAnnotatorNotes T3\tseen \ttwice
#2\tAnnotatorNotes R2\tas an element
#3\tAnnotatorNotes A2\tby the first annotator
E1\tCausing:T6 Cause:T4 Theme:T2 Whole:E2
E2\tEnding:T6
R4\tBefore Arg1:E1 Arg2:E2
A3\tPast E1
*\tEquiv T1 T2 T7
"""


def pair(folder: Path, text: str = TEXT, annotations: str = ANN, name: str = "a") -> Path:
    path = folder / f"{name}.ann"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".txt").write_bytes(text.encode())
    path.write_bytes(annotations.encode())
    return path


def load(path: Path, **options: Any) -> tuple[list[Sentence], Ledger]:
    ledger = Ledger()
    return list(brat.read(path, ledger, **options)), ledger


def written(sentences: list[Sentence], folder: Path) -> Ledger:
    ledger = Ledger()
    folder.mkdir()
    brat.write(iter(sentences), folder, ledger)
    return ledger


def error(path: Path) -> str:
    with pytest.raises(FormatError) as caught:
        load(path)
    return str(caught.value).replace(str(path.parent), "…")


def test_entities_relations_and_links(tmp_path: Path) -> None:
    (first, second, third), ledger = load(pair(tmp_path))
    assert first.words == ("Acute", "renal", "and", "liver", "failure", "in", "Oslo", ".")
    assert first.text == "Acute renal\nand liver failure in Oslo. "
    assert first.entities == (
        Entity("Disease", ((0, 2), (4, 5))),
        Entity("Disease", ((0, 1), (3, 5))),
        Entity("Place", ((6, 7),)),
        Entity("Disease", ((0, 5),)),
    )
    assert second.entities == (Entity("Chemical", ((0, 2),)), Entity("Element", ((0, 1),)), Entity("Event", ((2, 3),)))
    assert second.relations == (Relation("Part_of", 1, 0), Relation("Made", 0, 2))
    assert second.links == (Link("Causes", 0, 0, 1),)
    assert [(s.id, s.document, s.position, s.start) for s in (first, second, third)] == [
        ("a-0", "a", 0, 0),
        ("a-1", "a", 1, 39),
        ("a-2", "a", 2, 61),
    ]
    assert ledger.lost == 0
    assert ledger.notes == {"fragments separated only by whitespace, joined": 1, "attributes with the old prefix M": 1}


def test_attributes_references_notes_and_events_are_kept(tmp_path: Path) -> None:
    (first, second, _), _ = load(pair(tmp_path))
    assert first.entities[0].extra == {
        "attributes": [
            {"type": "Negation"},
            {
                "type": "Confidence",
                "value": "rather high",
                "notes": [{"type": "AnnotatorNotes", "text": "by the first annotator"}],
            },
        ],
        "id": "T1",
    }
    assert first.entities[2].extra == {
        "references": [{"type": "Reference", "to": "Wikidata:Q585", "text": "Oslo, the town"}],
        "notes": [{"type": "AnnotatorNotes", "text": "seen \ttwice"}],
    }
    assert second.entities[1].extra is None
    assert [relation.extra for relation in second.relations] == [
        {"attributes": [{"type": "Uncertain"}], "notes": [{"type": "AnnotatorNotes", "text": "as an element"}]},
        {"roles": ["Source", "Site"]},
    ]
    assert first.extra == {
        "brat": [
            {"id": "E1", "line": "Causing:T6 Cause:T4 Theme:T2 Whole:E2", "attributes": [{"type": "Past"}]},
            {"id": "E2", "line": "Ending:T6"},
            {"id": "R4", "line": "Before Arg1:E1 Arg2:E2"},
            {"id": "*", "line": "Equiv T1 T2 T7"},
        ]
    }


def test_written_data_equals_the_original(tmp_path: Path) -> None:
    """T lines are in the order of sentences, so their ids change; everything else is equal."""
    sentences, _ = load(pair(tmp_path / "in", name="sub/a").parents[1])
    assert sentences[0].document == "sub/a"
    assert written(sentences, tmp_path / "out").lost == 0
    assert (tmp_path / "out/sub/a.txt").read_bytes() == TEXT.encode()
    assert (tmp_path / "out/sub/a.ann").read_text(encoding="utf-8").splitlines() == [
        "T1\tDisease 0 11;22 29\tAcute renal failure",
        "A1\tNegation T1",
        "A2\tConfidence T1 rather high",
        "#1\tAnnotatorNotes A2\tby the first annotator",
        "T2\tDisease 0 5;16 29\tAcute liver failure",
        "T3\tPlace 33 37\tOslo",
        "N1\tReference T3 Wikidata:Q585\tOslo, the town",
        "#2\tAnnotatorNotes T3\tseen \ttwice",
        "T4\tDisease 0 11;12 29\tAcute renal and liver failure",
        "T5\tChemical 39 49\tZinc oxide",
        "T6\tElement 39 43\tZinc",
        "T7\tEvent 50 56\tcaused",
        "R1\tPart_of Arg1:T6 Arg2:T5",
        "A3\tUncertain R1",
        "#3\tAnnotatorNotes R1\tas an element",
        "R2\tMade Source:T5 Site:T7",
        "R3\tCauses Arg1:T5 Arg2:T2",
        "E1\tCausing:T7 Cause:T5 Theme:T2 Whole:E2",
        "A4\tPast E1",
        "E2\tEnding:T7",
        "R4\tBefore Arg1:E1 Arg2:E2",
        "*\tEquiv T1 T2 T4",
    ]
    reread, _ = load(tmp_path / "out")
    assert reread == sentences
    assert [[e.type for e in s.entities if e.extra] for s in reread] == [
        ["Disease"] * 2 + ["Place", "Disease"],
        ["Chemical", "Event"],
        [],
    ]


def test_events_and_equivalences_with_missing_references_are_counted(tmp_path: Path) -> None:
    (first, *_), _ = load(pair(tmp_path))
    assert str(written([first], tmp_path / "out")) == (
        "2 events (that refer to something not in the data), 1 relation (that refer to something not in the data)"
    )
    assert (tmp_path / "out/a.ann").read_text(encoding="utf-8").splitlines()[-1] == "*\tEquiv T1 T2 T4"


def test_options(tmp_path: Path) -> None:
    path = pair(tmp_path)
    (whole,), _ = load(path, split=False)
    assert (whole.id, whole.text, whole.links, len(whole.relations)) == ("a", TEXT, (), 3)
    (first, second, _), ledger = load(path, notes=False)
    assert ([e.extra for e in first.entities], second.relations[0].extra) == (
        [{"id": "T1"}, {"id": "T2"}, None, {"id": "T7"}],
        None,
    )
    assert (ledger.notes["additions to entities (attributes, references, notes), skipped"], ledger.lost) == (8, 0)


def test_a_folder(tmp_path: Path) -> None:
    for name in ("b", "a", "deep/er/c", ".hidden/d", "deep/.e"):
        pair(tmp_path, "Oslo.", "T1\tPlace 0 4\tOslo\n", name)
    (tmp_path / "annotation.conf").write_text("[entities]\nPlace\n")
    (tmp_path / "readme.txt").write_text("Nothing.")
    sentences, ledger = load(tmp_path)
    assert [s.document for s in sentences] == ["a", "b", "deep/er/c"]
    assert ledger.notes == {".txt files without a .ann file, skipped": 1}
    assert detect(tmp_path).name == "brat"
    assert [s.document for s in read(tmp_path, "brat:split=no")] == ["a", "b", "deep/er/c"]


def test_other_files_of_a_folder_are_noted(tmp_path: Path) -> None:
    pair(tmp_path, "Oslo.", "T1\tPlace 0 4\tOslo\n", "deep/a")
    for name in ("a.jsonl", "deep/b.conll", "deep/.stats", ".hidden/c.jsonl", "d.jsonl~", "annotation.conf"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    assert load(tmp_path)[1].notes == {"files other than .txt and .ann, not read (a.jsonl, deep/b.conll)": 2}
    for number in range(3):
        (tmp_path / f"c{number}.tsv").write_text("x")
    assert load(tmp_path)[1].notes == {"files other than .txt and .ann, not read (a.jsonl, c0.tsv, c1.tsv, …)": 5}


def test_all_texts_of_a_folder_are_read_without_annotations(tmp_path: Path) -> None:
    pair(tmp_path, "Oslo.", "T1\tPlace 0 4\tOslo\nT2\tPlace 2 40\tlo\ninvalid line", "deep/a")
    (tmp_path / "b.txt").write_text("Bergen. Zinc.")
    (tmp_path / "lost.ann").write_text("T1\tPlace 0 4\tOslo\n")
    ledger = Ledger()
    sentences = list(read(tmp_path, ledger=ledger, with_annotations=False))
    assert [(s.document, s.id, s.words) for s in sentences] == [
        ("b", "b-0", ("Bergen", ".")), ("b", "b-1", ("Zinc", ".")), ("deep/a", "deep/a", ("Oslo", ".")),
    ]  # fmt: skip
    assert ledger.notes == {".ann files without a .txt file, skipped": 1}
    (tmp_path / "b.txt").unlink()
    (tmp_path / "deep/a.txt").unlink()
    with pytest.raises(FormatError, match=r"no .txt file in this folder or its subfolders"):
        list(read(tmp_path, with_annotations=False))


@pytest.mark.parametrize("name", ["a.ann", "a.txt"])
def test_a_single_pair(tmp_path: Path, name: str) -> None:
    pair(tmp_path)
    assert detect(tmp_path / name).name == "brat"
    assert [s.document for s in read(tmp_path / name)] == ["a"] * 3


def test_a_single_pair_without_annotations(tmp_path: Path) -> None:
    path = pair(tmp_path, "Oslo.", "")
    assert detect(path).name == "brat"
    assert [s.words for s in read(path)] == [("Oslo", ".")]
    assert load(pair(tmp_path, " \n", "", "blank"))[1].notes == {"documents without words, skipped": 1}


def test_a_different_entity_text_is_noted(tmp_path: Path) -> None:
    _, ledger = load(pair(tmp_path, "In Oslo\nFjord.", "T1\tPlace 3 7\tOslø\nT2\tPlace 3 13\tOslo Fjord\nT3\tPlace 3 7\n"))
    assert ledger.notes == {"entities whose text differs from the document at their offsets": 1}


def test_an_entity_text_over_several_lines(tmp_path: Path) -> None:
    path = pair(tmp_path, "In Oslo\nFjord.", "T1\tPlace 3 13\tOslo\nFjord\nT2\tPlace 3 7\tOslo\n")
    (sentence,), ledger = load(path)
    assert sentence.entities == (Entity("Place", ((1, 3),)), Entity("Place", ((1, 2),)))
    assert ledger.notes == {"entity texts broken over several lines, joined": 1}
    assert error(pair(tmp_path, "In Oslo\nFjord.", "T1\tPlace 3 13\tOslo\nBay\n")).startswith("…/a.ann:2: invalid line")


def test_an_entity_text_over_very_many_lines(tmp_path: Path) -> None:
    """The time is linear in the size of the file."""
    (sentence,), ledger = load(pair(tmp_path, "Oslo\n" * 20_000, f"T1\tPlace 0 {5 * 20_000}\tOslo\n" + "Oslo\n" * 19_999))
    assert sentence.entities == (Entity("Place", ((0, 20_000),)),)
    assert ledger.notes == {
        "entity texts broken over several lines, joined": 19_999,
        "entities with leading or trailing whitespace, trimmed": 1,
    }


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("T1 Place 0 4 Oslo", "1: invalid line; expected T1⇥TYPE START END⇥TEXT or similar, found 'T1 Place 0 4 Oslo'"),
        ("T1\tPlace 0\tOslo", "1: invalid line; expected T1⇥TYPE START END⇥TEXT, found 'T1\\tPlace 0\\tOslo'"),
        ("T1\tPlace 0 99999999999999999999\tO", "1: invalid line; expected T1⇥TYPE START END⇥TEXT, found"),
        ("T1\tPlace 0 4\tOslo\n\nT2\tPlace 2 40\tlo", "3: Place [2, 40] is outside the text of 5 characters"),
        ("T1\tPlace 0 4\tOslo\nT1\tCity 0 4\tOslo", "2: duplicate id 'T1'"),
        ("T1\tPlace 0 3;2 4\tOslo", "1: the fragments of Place T1 overlap"),
        ("T1\tPlace 0 4\tOslo\nR1\tIn Arg1:T1 Arg2:T9", "2: relation 'In' refers to the unknown entity 'T9'"),
        ("R1\tIn Arg1:T1", "1: invalid line; expected R1⇥TYPE Arg1:T1 Arg2:T2, found"),
        ("R1\t", "1: invalid line; expected R1"),
        ("E1\t", "1: invalid line; expected E1"),
        ("E1\tEnd:T1 T2", "1: invalid line; expected E1"),
        ("*\tEquiv T1", "1: invalid line; expected *⇥Equiv T1 T2 …, found"),
        ("A1\tNegation", "1: invalid line; expected A1"),
        ("N1\tReference T1\tOslo", "1: invalid line; expected N1"),
        ("#1\tAnnotatorNotes", "1: invalid line; expected #1"),
        ("X1\tPlace 0 4\tOslo", "1: invalid line; expected T1"),
    ],
)
def test_errors_name_the_line(tmp_path: Path, lines: str, message: str) -> None:
    assert error(pair(tmp_path, "Oslo.", lines)).startswith(f"…/a.ann:{message}")


def test_later_windows_line_breaks_do_not_move_entities(tmp_path: Path) -> None:
    expected, _ = load(pair(tmp_path / "as-annotated"))
    copied, ledger = load(pair(tmp_path / "copied", TEXT.replace("\n", "\r\n"), ANN.replace("\n", "\r\n")))
    assert [s.entities for s in copied] == [s.entities for s in expected]
    assert ledger.notes["texts with Windows line breaks, counted as one character each"] == 1
    # Offsets may also count both characters of a line break.
    (_, second), ledger = load(pair(tmp_path / "own", "Oslo.\r\nZinc.", "T1\tPlace 0 4\tOslo\nT2\tElement 7 11\tZinc\n"))
    assert second.text_of(second.entities[0]) == "Zinc"
    assert not ledger.notes


def test_errors_name_the_file(tmp_path: Path) -> None:
    path = pair(tmp_path, "Oslo.", "T1\tPlace 0 4\tOslo\n")
    path.with_suffix(".txt").write_bytes(b"One\nTw\xff")
    assert error(path) == "…/a.txt:2: not UTF-8; pass --encoding latin-1"
    path.with_suffix(".txt").unlink()
    assert error(path) == "…/a.ann: a.txt is missing; brat stores the text in .txt and the annotations in .ann"
    pair(tmp_path).write_bytes(b"T1\tPlace 0 4\tOslo\nT2\t\xff")
    assert error(path) == "…/a.ann:2: not UTF-8 at byte 4 of the line; pass --encoding latin-1"
    (tmp_path / "other").mkdir()
    assert load(tmp_path / "other")[0] == []
    (tmp_path / "other/x.json").write_text("{}")
    assert error(tmp_path / "other") == "…/other: no .ann file in this folder or its subfolders"
    assert error(tmp_path / "other/x.json") == "…/x.json: expected a folder, a .ann file or a .txt file"
    with pytest.raises(SpanwiseError, match="pubtator expects a file, found a folder"):
        read(tmp_path, "pubtator")


def test_notes_with_missing_targets_are_lost(tmp_path: Path) -> None:
    lines = "T1\tPlace 0 4\tOslo\n#1\tAnnotatorNotes T7\tx\nN1\tReference A1 W:1\tx\nA1\tBig T1\n#2\tAnnotatorNotes #1\ty\n"
    (sentence,), ledger = load(pair(tmp_path, "Oslo.", lines))
    assert sentence.entities[0].extra == {"attributes": [{"type": "Big"}]}
    assert str(ledger) == (
        "2 notes (with a target that is missing or cannot have any), "
        "1 reference (with a target that is missing or cannot have any)"
    )


def test_windows_line_breaks_count_as_characters(tmp_path: Path) -> None:
    text = "Oslo\r\nFjord.\r\nBergen."
    sentences, _ = load(pair(tmp_path, text, "T1\tPlace 0 4;6 11\tOslo Fjord\r\nT2\tPlace 14 20\tBergen\r\n"))
    assert [s.text_of(e) for s in sentences for e in s.entities] == ["Oslo\r\nFjord", "Bergen"]
    assert written(sentences, tmp_path / "out").lost == 0
    assert (tmp_path / "out/a.txt").read_bytes() == text.encode()
    assert (tmp_path / "out/a.ann").read_bytes() == b"T1\tPlace 0 4;6 11\tOslo Fjord\nT2\tPlace 14 20\tBergen\n"


def test_a_byte_order_mark_counts_as_a_character(tmp_path: Path) -> None:
    sentences, _ = load(pair(tmp_path, "\ufeffOslo.", "T1\tPlace 1 5\tOslo\n"))
    assert [s.text_of(e) for s in sentences for e in s.entities] == ["Oslo"]
    assert written(sentences, tmp_path / "out").lost == 0
    assert (tmp_path / "out/a.ann").read_bytes() == b"T1\tPlace 1 5\tOslo\n"


def test_file_names_never_leave_the_folder(tmp_path: Path) -> None:
    ids = [
        "../../up",
        "/elsewhere/x",
        "a\0b\nc",
        "..",
        "",
        "same",
        "same",
        "Same",
        "C:\\x?",
        "nul",
        ".git",
        "é" * 300,
        "a.txt/b",
        "a",
        "a//b",
    ]
    ledger = written([Sentence(name, ("Oslo", ".")) for name in ids], tmp_path / "out")
    names = sorted(path.relative_to(tmp_path / "out").with_suffix("").as_posix() for path in tmp_path.rglob("*.ann"))
    assert names == sorted(
        [
            "_/_/up",
            "elsewhere/x",
            "a_b_c",
            "_",
            "_-2",
            "same",
            "same-2",
            "Same-3",
            "C__x_",
            "nul_",
            "git",
            "é" * 100,
            "a.txt_/b",
            "a",
            "a/b",
        ]
    )
    assert (len(load(tmp_path / "out")[0]), ledger.lost) == (len(ids), 0)
    assert ledger.notes == {
        "documents renamed because their id cannot be a file name": 11,
        "documents with a duplicate name, numbered": 3,
    }


def test_documents_with_the_same_id_stay_separate(tmp_path: Path) -> None:
    sentences = [
        Sentence("1", ("Oslo", "lies", "here"), (Entity("Place", ((0, 1),)),), document="d", position=0),
        Sentence("2", ("Bergen", "too"), (Entity("Place", ((0, 1),)),), links=(Link("by", 0, 0, 0),), document="d", position=1),
        Sentence("3", ("Bergen", "again"), (Entity("City", ((0, 1),)),), document="d", position=0),
        Sentence("4", ("Alone",)),
    ]
    ledger = written(sentences, tmp_path / "out")
    assert ledger.notes == {"documents with a duplicate name, numbered": 1}
    assert (tmp_path / "out/d.txt").read_text() == "Oslo lies here\nBergen too"
    assert (tmp_path / "out/d.ann").read_text() == "T1\tPlace 0 4\tOslo\nT2\tPlace 15 21\tBergen\nR1\tby Arg1:T2 Arg2:T1\n"
    assert (tmp_path / "out/d-2.ann").read_text() == "T1\tCity 0 6\tBergen\n"


def test_losses_are_counted(tmp_path: Path) -> None:
    extra = {"notes": [{"type": "Remark", "text": "two\nlines"}], "attributes": [{"type": "Is big", "value": "a\tb"}]}
    sentence = Sentence(
        "s", ("Oslo", "x"), (Entity("Big city", ((0, 1),), extra=extra), Entity("X", ((1, 2),), extra={"notes": "free"})),
        extra={"brat": {"of": "another shape"}},
    )  # fmt: skip
    ledger = written([sentence], tmp_path / "out")
    assert str(ledger) == "2 names (with whitespace, replaced by _)"
    assert ledger.notes == {
        "line breaks in attributes, references or notes, replaced by spaces": 2,
        "keys dropped: not in the shape of brat data": 2,
    }
    assert (tmp_path / "out/s.ann").read_text() == (
        "T1\tBig_city 0 4\tOslo\nA1\tIs_big T1 a b\n#1\tRemark T1\ttwo lines\nT2\tX 5 6\tx\n"
    )


def test_reading_and_writing_by_name(tmp_path: Path) -> None:
    sentences = list(read(pair(tmp_path)))
    ledger = write(sentences, tmp_path / "out", "brat")
    assert (ledger.lost, list(read(tmp_path / "out"))) == (0, sentences)
    write(sentences, tmp_path / "a.jsonl", "jsonl")
    write(read(tmp_path / "a.jsonl"), tmp_path / "again", "brat")
    assert (tmp_path / "again/a.ann").read_bytes() == (tmp_path / "out/a.ann").read_bytes()


def standoff(path: Path) -> tuple[set[Any], set[Any], list[str]]:
    """Parse the entities, relations and references of a .ann file with regular expressions."""
    lines = path.read_text(encoding="utf-8").splitlines()
    entities = {m[1]: (m[2], m[3], m[4]) for line in lines if (m := re.fullmatch(r"(T\d+)\t(\S+) ([\d ;]+)\t(.*)", line))}
    relations = [m.groups() for line in lines if (m := re.fullmatch(r"R\d+\t(\S+) Arg1:(T\d+) Arg2:(T\d+)\s*", line))]
    references = [
        (m[2], entities[m[1]], m[3]) for line in lines if (m := re.fullmatch(r"N\d+\tReference (T\d+) (\S+)\t(.*)", line))
    ]
    return set(entities.values()), {(kind, entities[a], entities[b]) for kind, a, b in relations}, sorted(references)


def test_nerel(shared_data: Path, tmp_path: Path) -> None:
    folder = shared_data / "nerel/raw_sample"
    files = sorted(folder.glob("*.ann"))
    sentences, ledger = load(folder)
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    assert sum(len(s.entities) for s in sentences) == sum(line.startswith("T") for line in lines) == 603
    assert sum(len(s.relations) + len(s.links) for s in sentences) == sum(line.startswith("R") for line in lines) == 469
    references = [reference for s in sentences for e in s.entities for reference in (e.extra or {}).get("references", ())]
    assert len(references) == sum(line.startswith("N") for line in lines) == 409
    assert (sum(e.is_discontinuous for s in sentences for e in s.entities), ledger.lost) == (1, 0)
    assert sorted({s.document for s in sentences}) == [file.stem for file in files]
    assert written(sentences, tmp_path / "out").lost == 0
    for file in files:
        assert (tmp_path / "out" / file.name).with_suffix(".txt").read_bytes() == file.with_suffix(".txt").read_bytes()
        assert standoff(tmp_path / "out" / file.name) == standoff(file)
    assert load(tmp_path / "out")[0] == sentences


def test_nerel_agrees_with_the_interchange_file(shared_data: Path) -> None:
    """Sentences were split by another rule there, so the words of documents are compared."""
    sentences, _ = load(shared_data / "nerel/raw_sample")
    mine: dict[str, tuple[list[str], set[Any]]] = {}
    for s in sentences:
        words, entities = mine.setdefault(f"dev/{s.document}", ([], set()))
        entities |= {(e.type, *((a + len(words), b + len(words)) for a, b in e.fragments)) for e in s.entities}
        words += s.words
    theirs: dict[str, tuple[list[str], set[Any]]] = {}
    with (shared_data / "nerel/dev.jsonl").open(encoding="utf-8") as file:
        for record in map(json.loads, file):
            if record["document"] in mine:
                words, entities = theirs.setdefault(record["document"], ([], set()))
                entities |= {
                    (e["type"], *((a + len(words), b + len(words)) for a, b in e["spans"])) for e in record["entities"]
                }
                words += record["tokens"]
    assert len(mine) == 12
    assert mine == theirs


def test_litbank(shared_data: Path, tmp_path: Path) -> None:
    file = shared_data / "litbank/raw_sample/105_persuasion_brat.ann"
    sentences, ledger = load(file)
    rows = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()]
    entities = [(e.type, " ".join(s.text_of(e).split())) for s in sentences for e in s.entities]
    assert sorted(entities) == sorted((row[1].split()[0], " ".join(row[2].split())) for row in rows)
    assert (len(entities), ledger.lost, written(sentences, tmp_path / "out").lost) == (178, 0, 0)
    assert load(tmp_path / "out")[0] == sentences
    assert standoff(tmp_path / "out" / file.name) == standoff(file)
