"""What people read."""

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


def test_a_whole_table() -> None:
    gold = Sentence(
        "s1",
        tuple("abcdef"),
        (
            Entity("Place", ((0, 3),)),  # within the range of the broken one, as is the next
            Entity("Place", ((0, 1),)),
            Entity("Food", ((4, 6),)),
            Entity("Food", ((0, 1), (3, 4))),
        ),
        (Relation("in", 0, 1),),
    )
    found = Sentence("s1", gold.words, (*gold.entities[:2], Entity("Place", ((4, 6),))), (Relation("in", 0, 1),))
    lines = printed(evaluate([gold, Sentence("s2", ("x",))], [found], train=[]))
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
        "same words, other type:",
        "  1 × Food taken for Place",
        "",
        "note: gold sentences that are not in the predictions, and whose entities count as misses: 1 of 2 (the first is 's2')",
    ]


def test_the_interval_of_enough_sentences_is_said() -> None:
    gold = [Sentence(str(n), ("a", "b"), (Entity("X", ((0, 1),)),)) for n in range(20)]
    found = [Sentence(str(n), ("a", "b"), (Entity("X", ((0, 1),)), Entity("X", ((1, 2),)))) for n in range(20)]
    said = [line for line in printed(evaluate(gold, found)) if "interval" in line]
    assert said == ["micro F1 between 66.67 and 66.67 (95% bootstrap interval)"]


def test_forty_types_are_shown_and_of_more_the_rest_is_summed() -> None:
    def rows(types: int) -> list[str]:
        # The first types have more support, so that the last ones are the rest.
        names = [f"T{n:02}" for n in range(types)]
        sentence = one_word_entities(names + names[:39])
        return [line for line in printed(evaluate([sentence], [sentence])) if line.startswith(("T", "("))]

    assert len(rows(40)) == 40
    assert not any("other" in line for line in rows(40))
    assert len(rows(41)) == 40
    assert rows(41)[-1].split() == ["(2", "other", "types)", "100.00", "100.00", "100.00", "2", "2", "2"]


def test_long_and_odd_names_stay_whole_within_eighty_columns() -> None:
    long, markup, control = "Very" * 15, "[red]Place[/red]", "a\x1b[31mb"
    sentence = one_word_entities(["x"])
    scores = Scores({name: Score(1_200_000, 1_200_000, 1_200_000) for name in (long, markup, control)})
    lines = printed(replace(evaluate([sentence], [sentence]), entities=scores))
    assert max(map(len, lines)) <= 80
    assert "".join(line.split()[0] for line in lines if line.startswith(("Very", "eryV", "ryVe", "yVer"))) == long
    assert any(line.startswith("[red]Place[/red]") for line in lines)
    assert any(line.startswith(r"'a\x1b[31mb'") for line in lines)
    assert any(line.count("1,200,000") == 3 for line in lines), "large counts are not cut"


def test_the_commonest_confusions_are_named_and_the_rest_counted() -> None:
    types = [f"T{n:02}" for n in range(13)]
    gold, found = one_word_entities(types), one_word_entities(types[1:] + types[:1])
    lines = printed(evaluate([gold, gold], [found]))
    assert "  1 × T00 taken for T01" in lines
    assert "  3 × 3 other pairs of types" in lines
