"""Printed evaluations."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from spanwise import Entity, Relation, Sentence
from spanwise.evaluation import evaluate, print_evaluation
from spanwise.evaluation.evaluation import Evaluation
from spanwise.evaluation.scores import Score, Scores


def printed(evaluation: Evaluation, width: int = 80) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    print_evaluation(evaluation, console)
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def one_word_entities(types: list[str]) -> Sentence:
    entities = tuple(Entity(type, ((n, n + 1),)) for n, type in enumerate(types))  # type: ignore[arg-type]
    return Sentence("s", tuple("w" * len(types)), entities)


def test_complete_table() -> None:
    gold = Sentence(
        "s1",
        tuple("abcdef"),
        (
            Entity("Place", ((0, 3),)),  # nested in the discontinuous entity, like the next
            Entity("Place", ((0, 1),)),
            Entity("Food", ((4, 6),)),
            Entity("Food", ((0, 1), (3, 4))),
        ),
        (Relation("in", 0, 1),),
    )
    predicted = Sentence("s1", gold.words, (*gold.entities[:2], Entity("Place", ((4, 6),))), (Relation("in", 0, 1),))
    lines = printed(evaluate([gold, Sentence("s2", ("x",))], [predicted], train=[]))
    assert lines == [
        "2 sentences              P       R      F1  support  predicted  correct",
        "────────────────────────────────────────────────────────────────────────",
        "Food                  0.00    0.00    0.00        2          0        0",
        "Place                66.67  100.00   80.00        2          3        2",
        "",
        "micro                66.67   50.00   57.14        4          3        2",
        "macro (2 types)      33.33   50.00   40.00",
        "unlabelled          100.00   75.00   85.71        4          3        3",
        "relaxed              66.67   50.00   57.14        4          3",
        "discontinuous         0.00    0.00    0.00        1          0        0",
        "nested              100.00  100.00  100.00        2          2        2",
        "2 unseen sentences   66.67   50.00   57.14        4          3        2",
        "",
        "relations                    P       R      F1  support  predicted  correct",
        "────────────────────────────────────────────────────────────────────────────",
        "in                      100.00  100.00  100.00        1          1        1",
        "",
        "micro                   100.00  100.00  100.00        1          1        1",
        "macro (1 type)          100.00  100.00  100.00",
        "micro, boundaries only  100.00  100.00  100.00        1          1        1",
        "macro, boundaries only  100.00  100.00  100.00",
        "",
        "wrong type on the same words:",
        "  1 × Food predicted as Place",
        "",
        "note: gold sentences without a prediction, whose entities count as missed: 1 of 2 (first: 's2')",
    ]


def test_narrow_terminals_omit_the_last_counts() -> None:
    gold = [one_word_entities(["Adverse-Effect"])]
    evaluation = evaluate(gold, gold, train=[])
    header, row = printed(evaluation, 60)[0], printed(evaluation, 60)[-1]
    assert header == "1 sentence              P       R      F1  support"
    assert row == "1 unseen sentence  100.00  100.00  100.00        1"
    assert printed(evaluation, 62)[0].endswith("support  predicted")
    assert printed(evaluation, 80)[0].endswith("support  predicted  correct")
    assert printed(evaluation, 80) == printed(evaluation, 120)
    assert printed(evaluation, 48)[0].endswith("F1  support")


def test_no_score_on_unseen_sentences_if_there_are_none() -> None:
    gold = [one_word_entities(["X"])]
    lines = printed(evaluate(gold, gold, train=gold))
    assert not any("unseen" in line for line in lines)
    assert lines[-1] == "note: all sentences are also in the training data: the scores on new text may be much lower"


def test_interval_is_printed_for_enough_sentences() -> None:
    gold = [Sentence(str(n), ("a", "b"), (Entity("X", ((0, 1),)),)) for n in range(20)]
    predicted = [Sentence(str(n), ("a", "b"), (Entity("X", ((0, 1),)), Entity("X", ((1, 2),)))) for n in range(20)]
    interval_lines = [line for line in printed(evaluate(gold, predicted)) if "interval" in line]
    assert interval_lines == ["95% bootstrap interval of micro F1: 66.67 to 66.67"]


def test_types_after_the_fortieth_are_summed() -> None:
    def rows(types: int) -> list[str]:
        # The first types have more support, so the last ones are summed.
        names = [f"T{n:02}" for n in range(types)]
        sentence = one_word_entities(names + names[:39])
        return [line for line in printed(evaluate([sentence], [sentence])) if line.startswith(("T", "("))]

    assert len(rows(40)) == 40
    assert not any("other" in line for line in rows(40))
    assert len(rows(41)) == 40
    assert rows(41)[-1].split() == ["(2", "other", "types)", "100.00", "100.00", "100.00", "2", "2", "2"]


def test_long_and_unusual_names_are_wrapped_within_80_columns() -> None:
    long, markup, control = "Very" * 15, "[red]Place[/red]", "a\x1b[31mb"
    sentence = one_word_entities(["x"])
    scores = Scores({name: Score(1_200_000, 1_200_000, 1_200_000) for name in (long, markup, control)})
    lines = printed(replace(evaluate([sentence], [sentence]), entities=scores))
    assert max(map(len, lines)) <= 80
    assert "".join(line.split()[0] for line in lines if line.startswith(("Very", "eryV", "ryVe", "yVer"))) == long
    assert any(line.startswith("[red]Place[/red]") for line in lines)
    assert any(line.startswith(r"'a\x1b[31mb'") for line in lines)
    assert any(line.count("1,200,000") == 3 for line in lines), "large counts are not truncated"


def test_most_frequent_type_errors_are_listed_and_the_rest_counted() -> None:
    types = [f"T{n:02}" for n in range(13)]
    gold, predicted = one_word_entities(types), one_word_entities(types[1:] + types[:1])
    lines = printed(evaluate([gold, gold], [predicted]))
    assert "  1 × T00 predicted as T01" in lines
    assert "  3 × 3 other pairs of types" in lines


def test_a_single_remaining_type_error_is_listed() -> None:
    types = [f"T{n:02}" for n in range(11)]
    lines = printed(evaluate([one_word_entities(types)], [one_word_entities(types[1:] + types[:1])]))
    assert sum(" predicted as " in line for line in lines) == 11
