"""The printed report."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from spanwise.core.types import Entity, Link, Relation, Sentence
from spanwise.description import describe, print_description
from spanwise.description.findings import findings


def sentence(id: str, text: str, *entities: tuple[str, int, int]) -> Sentence:
    return Sentence(id, tuple(text.split()), tuple(Entity(t, ((a, b),)) for t, a, b in entities))


def report(splits: dict[str, list[Sentence]], width: int = 80) -> str:
    out = io.StringIO()
    print_description(describe(splits), Console(file=out, width=width))
    return out.getvalue()


def messages(splits: dict[str, list[Sentence]]) -> list[str]:
    return [finding.message for finding in findings(describe(splits))]


CLEAN = {
    "train": [sentence("a", "Oslo is old", ("City", 0, 1)), sentence("b", "we left Oslo", ("City", 2, 3))],
    "test": [sentence("c", "we left Turku", ("City", 2, 3))],
}


def test_a_clean_corpus_has_no_findings() -> None:
    assert messages(CLEAN) == []
    assert report(CLEAN).splitlines() == [
        "                          train    test",
        "───────────────────────────────────────",
        "sentences                     2       1",
        "words                         6       3",
        "entities                      2       1",
        "  nested                      0       0",
        "  crossing                    0       0",
        "  discontinuous               0       0",
        "entity width, median          1       1",
        "  99% of them up to           1       1",
        "  widest                      1       1",
        "sentence length, median       3       3",
        "  99% of them up to           3       3",
        "  longest                     3       3",
        "words not in train                33.3%",
        "",
        "entity types   train   test",
        "───────────────────────────",
        "City               2      1",
        "",
    ]


def test_optional_rows() -> None:
    rich = Sentence(
        "a",
        tuple("Oslo is old".split()),
        (Entity("City", ((0, 1),)), Entity("Port", ((0, 1),)), Entity("Port", ((0, 1),))),
        (Relation("is", 0, 1),),
        (Link("same", 0, 1, 0),),
        document="d",
        position=0,
    )
    text = report({"train": [rich, rich, Sentence("b", ("rain",), annotated=())]})
    for row in (
        "  annotated partially            1",
        "documents                        1",
        "  spans with several types       2",
        "  duplicate entities             2",
        "relations                        2",
        "relations across sentences       2",
        "sentences without entities       1",
        "duplicate sentences              1",
    ):
        assert row in text.splitlines()
    assert "relation types   train" in text


def test_findings_are_sorted_by_importance() -> None:
    splits = {
        "train": [
            sentence("a", "we left Oslo .", ("City", 2, 4), ("City", 2, 3)),
            sentence("b", "we left Oslo .", ("City", 2, 3)),
            sentence("c", "Oslo is old", ("City", 0, 1), ("City", 0, 1)),
        ],
        "dev": [sentence("d", "Oslo is old", ("Town", 0, 1)), sentence("e", "x y", ("town", 0, 1))],
        "test": [sentence("f", "Oslo is old")],
    }
    assert messages(splits) == [
        "test has no entities",
        "1 of the 2 sentences of dev (50.0%) is also in train",
        "1 of the 1 sentences of test (100.0%) is also in train",
        "splits share sentences: dev and test 1",
        "2 sentences occur several times with different labels "
        "(within train 1, train and dev 1, train and test 1, dev and test 1)",
        "dev has 2 entity types that train does not have: Town, town",
        "the entity types “Town” (1) and “town” (1) differ only in spelling",
        "1 entity repeats another one of the same type and words (train 1)",
        "1 sentence repeats an earlier one of its split (train 1)",
        "dev lacks 1 entity type that another split has: City",
        "2 entity types occur only once: Town, town",
    ]
    text = report(splits)
    assert text.index("Findings") < text.index("- test has no entities") < text.index("- 1 of the 2 sentences")
    assert "e.g. b “we left Oslo .”, d “Oslo is old”, f “Oslo is old”" in text


def test_wrong_ends_are_the_first_finding() -> None:
    late = [sentence(f"s{n}", f"near Oslo , and Bergen , number {n}", ("City", 1, 3), ("City", 4, 6)) for n in range(80)]
    expected = messages({"train": late, "dev": late})
    assert expected[0].startswith("train, dev: entities seem to end one word too late")
    assert "one word too" not in " ".join(expected[1:])
    assert "e.g. s0 “Oslo ,”, s0 “Bergen ,”, s1 “Oslo ,”" in report({"train": late, "dev": late})


def test_a_split_without_relations_where_others_have_some() -> None:
    related = Sentence("a", ("Oslo", "Fjord"), (Entity("A", ((0, 1),)), Entity("A", ((1, 2),))), (Relation("r", 0, 1),) * 2)
    assert messages({"train": [related], "test": [sentence("b", "Turku grows", ("A", 0, 1))]}) == [
        "test has no relations, but another split has some"
    ]


def test_further_types_are_summed() -> None:
    def rows(count: int) -> list[str]:
        split = [sentence(f"s{k}", f"word{k} x", *[(f"T{k:02}", 0, 1)] * (k + 2)) for k in range(count)]
        lines = report({"train": split}).splitlines()
        return lines[lines.index("entity types   train") + 2 : lines.index("Findings") - 1]

    assert len(rows(31)) == 31
    assert rows(31)[-1].split() == ["T00", "2"]
    assert len(rows(35)) == 31
    assert rows(35)[-1].split() == ["5", "more", str(2 + 3 + 4 + 5 + 6)]


@pytest.mark.parametrize("width", [80, 120])
def test_lines_fit_the_terminal_and_numbers_are_complete(width: int) -> None:
    long = "an-entity-type-with-a-very-long-name-" * 5
    splits = {
        f"fold-with-a-long-name-{k}": [
            sentence(f"id-{'x' * 50}-{n}", "港 " * 90 + f"word{n}", (long, 0, 90)) for n in range(k + 2)
        ]
        for k in range(9)
    }
    text = report(splits, width)
    assert max(map(cell_len, text.splitlines())) <= width
    assert text.count("sentences  ") >= 2  # further splits follow below
    numbers = [int(cell) for line in text.splitlines() if line.startswith("words ") for cell in line.split()[1:]]
    assert numbers == [91 * (k + 2) for k in range(9)]
    assert not any(line.endswith(" ") for line in text.split("Findings")[1].splitlines())


def test_large_numbers_fit() -> None:
    description = describe(CLEAN)
    description.splits["train"].words = 1_234_567_890
    out = io.StringIO()
    print_description(description, Console(file=out, width=80))
    assert "1,234,567,890" in out.getvalue()


@pytest.mark.parametrize(
    ("splits", "expected"),
    [
        ({}, "no splits to describe"),
        ({"train": []}, "- train has no sentences"),
        ({"train": [Sentence("a", ("rain",))]}, "- train has no entities"),
    ],
)
def test_empty_corpora(splits: dict[str, list[Sentence]], expected: str) -> None:
    assert expected in report(splits).splitlines()


def test_findings_of_a_single_split_do_not_name_it() -> None:
    assert messages({"data": [sentence("a", "to Oslo ,", ("City", 1, 3)), sentence("b", "to Oslo ,", ("City", 1, 3))]}) == [
        "2 entities start or end with punctuation",
        "1 sentence repeats an earlier one of its split",
    ]


def test_names_are_printed_without_markup_or_control_codes() -> None:
    odd = Sentence("\x1b[31m", ("[bold]Oslo", ":smile:", ","), (Entity("[red]T\x07", ((0, 3),)), Entity("[/]", ((0, 1),))))
    text = report({"tr[i]n": [odd]})
    assert "\x1b" not in text
    assert "\x07" not in text
    for name in ("tr[i]n", "[red]T�", "[/]", "“[bold]Oslo :smile: ,”"):
        assert name in text
