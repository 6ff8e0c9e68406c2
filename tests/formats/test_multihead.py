"""Columns of multi-head selection."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from spanwise import Entity, FormatError, Link, Relation, Sentence
from spanwise.formats import multihead

TEXT = """#doc 17
0\tNew\tB-Loc\t['N']\t[0]
1\tYork\tI-Loc\t['Far_From', "Isn't"]\t[3, 3]
2\tand\tO\t['N']\t[2]
3\tOslo\tB-Loc\t['N']\t[3]
#doc 18
0\tIt\tO\t['N']\t[0]
"""


def test_relations_refer_to_last_words(workbench: Any) -> None:
    (first, second), ledger = workbench.load(multihead, TEXT)
    assert first == Sentence(
        "17",
        ("New", "York", "and", "Oslo"),
        (Entity("Loc", ((0, 2),)), Entity("Loc", ((3, 4),))),
        (Relation("Far_From", 0, 1), Relation("Isn't", 0, 1)),
    )
    assert (second.id, second.words) == ("18", ("It",))
    assert (ledger.lost, ledger.notes) == (0, {})
    text, written = workbench.write(multihead, [first, second])
    assert (text, written.lost) == (TEXT, 0)


def test_blank_lines_ids_and_repairs(workbench: Any) -> None:
    sentences, ledger = workbench.load(multihead, "#doc\n\n0\ta b\tI-X\t[ 'N' ]\t[ 0 ]\r\n\n#doc  d 2 \n")
    assert [(s.id, s.words) for s in sentences] == [("data-0", ("a b",)), ("d 2", ())]
    assert list(ledger.notes.values()) == [1]
    assert workbench.round_trip(multihead, sentences)[0] == sentences


def test_relations_between_other_words_are_lost(workbench: Any) -> None:
    (sentence,), ledger = workbench.load(multihead, "#doc 1\n0\ta\tB-X\t['r', 'r']\t[0, 1]\n1\tb\tO\t['N']\t[1]\n")
    assert sentence.relations == (Relation("r", 0, 0),)
    assert str(ledger) == "1 relation (between words that do not end an entity)"


def test_losses_are_counted(workbench: Any) -> None:
    words = ("a\tb", "c", "d", "e")
    entities = (
        Entity("X", ((1, 3),)),
        Entity("Y", ((2, 3),)),  # nested, with the same last word
        Entity("X", ((1, 2), (3, 4))),
        Entity("tab\tbed", ((3, 4),)),
        Entity("Z", ((0, 1),)),
    )
    relations = (Relation("r", 4, 0), Relation("r", 4, 1), Relation("N", 4, 0), Relation("a\\b", 4, 0))
    sentence = Sentence("two\nlines", words, entities, relations, (Link("l", 0, 1, 0),), document="d", position=0)
    (read,), ledger = workbench.round_trip(multihead, [sentence])
    assert (read.id, read.words) == ("two lines", ("a_b", "c", "d", "e"))
    assert (read.entities, read.relations) == ((entities[4], entities[0]), (Relation("r", 0, 1),))
    assert {key: n for key, n in ledger.losses.items() if key[0] != "words"} == {
        ("entities", "overlapping another"): 1,
        ("entities", "discontinuous"): 1,
        ("entities", "with whitespace in the type"): 1,
        ("relations", "with a dropped entity"): 1,
        ("relations", "across sentences"): 1,
        ("relations", "with a type that the columns cannot hold"): 2,
    }
    assert ledger.lost == 8


@pytest.mark.parametrize(
    ("rows", "line", "problem"),
    [
        ("0\ta\tO\t['N']\t[0]", 1, "expected '#doc ID' before the first word"),
        ("#doc 1\n0\ta\tO\t['N']", 2, "found 4 columns, expected 5"),
        ("#doc 1\n0\ta\tO\t['N']\t[0]\n2\tb\tO\t['N']\t[2]", 3, "found the word index '2', expected 1"),
        ("#doc 1\n0\ta\tLoc\t['N']\t[0]", 2, "'Loc' is not a tag"),
        ("#doc 1\n0\ta\tO\tN\t[0]", 2, "found 'N' and '[0]', expected two lists"),
        ("#doc 1\n0\ta\tO\t['N']\t[" + "9" * 5000 + "]", 2, "found"),
        ("#doc 1\n0\ta\tO\t['r', 'q']\t[0]", 2, "found 2 relations and 1 target word"),
        ("#doc 1\n0\ta\tO\t['']\t[0]", 2, "a relation has no type"),
        ("#doc 1\n0\ta\tB-X\t['r']\t[1]\n#doc 2", 2, "relation 'r' points to word 1 of 1 word"),
    ],
)
def test_errors_name_the_line(workbench: Any, rows: str, line: int, problem: str) -> None:
    with pytest.raises(FormatError) as error:
        workbench.load(multihead, rows)
    assert str(error.value).startswith(f"{workbench.folder / 'data.json'}:{line}: {problem}")


def test_real_sample(workbench: Any, corpus: Any, shared_data: Path) -> None:
    path = shared_data / "conll04/raw_sample/multihead_dev.sample.txt"
    sentences, ledger = workbench.load(multihead, path)
    text = path.read_text(encoding="utf-8")
    assert len(sentences) == text.count("#doc")
    assert sum(len(s.entities) for s in sentences) == text.count("\tB-")
    names = [name for names in re.findall(r"\t\[('.*')\]\t", text) for name in names.split(", ")]
    assert sum(len(s.relations) for s in sentences) == sum(name != "'N'" for name in names) > 100
    # The corpus has the same sentences, some with a different split of the last full stop.
    known = {r["id"]: r for split in ("train", "dev") for r in corpus(shared_data / f"conll04/{split}.jsonl")}
    for sentence in sentences:
        record = known[f"conll04-{sentence.id}"]
        spans = [(e["type"], e["spans"][0]) for e in record["entities"]]
        assert [(e.type, list(e.range)) for e in sentence.entities] == spans
        assert sorted((r.type, r.head, r.tail) for r in sentence.relations) == sorted(
            (r["type"], r["head"], r["tail"]) for r in record["relations"]
        )
    reread, written = workbench.round_trip(multihead, sentences)
    assert reread == sentences
    assert (ledger.lost, written.lost) == (0, 0)
    assert (workbench.folder / "out.json").read_text(encoding="utf-8") == text


def test_any_whitespace_is_allowed_in_lists(workbench: Any) -> None:
    (sentence,), _ = workbench.load(multihead, "#doc 1\n0\tOslo\tB-Loc\t['N']\t[\x1c0\u00a0]\n")
    assert sentence.words == ("Oslo",)
