"""Typing of given spans, computed by hand."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from spanwise.core.types import Entity, Sentence
from spanwise.evaluation.tasks import EntityTask, TypingTask, task_from_scores
from spanwise.evaluation.typing import LookupBaseline, TypingScores, print_typing, score_typing

TRAIN = (
    Sentence(
        "t1",
        tuple("the Bergen Choir sang in Bergen and in North Bergen .".split()),
        (Entity("Group", ((1, 3),)), Entity("Place", ((5, 6),)), Entity("Place", ((8, 10),))),
    ),
    Sentence("t2", tuple("Bergen Choir , Choir".split()), (Entity("Group", ((0, 2),)), Entity("Song", ((3, 4),)))),
    Sentence("t3", ("Bergen",), (Entity("Group", ((0, 1),)),)),
)
GOLD = (
    Sentence(
        "g1",
        tuple("Bergen or South Bergen or Boys Choir or Lom".split()),
        (
            Entity("Place", ((0, 1),)),  # string: Place 1, Group 1; Group is more frequent in training
            Entity("Place", ((2, 4),)),  # last word: Place 2, Group 1
            Entity("Group", ((5, 7),)),  # last word: Group 2, Song 1
            Entity("Place", ((8, 9),)),  # unknown: Group, the most frequent type
        ),
    ),
    Sentence("g2", tuple("Bergen hall Choir".split()), (Entity("Group", ((0, 1), (2, 3))),)),  # the string of both fragments
)


def test_lookup_backs_off_to_the_last_word_and_then_to_the_most_frequent_type() -> None:
    lookup = LookupBaseline(TRAIN)
    assert [lookup(s, e) for s in GOLD for e in s.entities] == ["Group", "Place", "Group", "Group", "Group"]


def test_accuracy_and_lookup_baseline() -> None:
    predicted = (replace(GOLD[0], entities=(*GOLD[0].entities[:3], Entity("Song", ((8, 9),)))), replace(GOLD[1], entities=()))
    typing = score_typing(GOLD, predicted, TRAIN)
    assert typing.to_json()["typing"] == {
        "accuracy": 3 / 5,
        "correct": 3,
        "entities": 5,
        "paper_precision": 3 / 4,
        "paper_recall": 3 / 5,
        "paper_f1": pytest.approx(2 * 3 / 4 * 3 / 5 / (3 / 4 + 3 / 5)),  # 3 of 4 contiguous; the discontinuous one is wrong
        "discontinuous": {"accuracy": 0.0, "correct": 0, "entities": 1},
        "lookup": {"accuracy": 3 / 5, "correct": 3, "entities": 5},
        "types": {
            "Place": {"accuracy": 2 / 3, "correct": 2, "entities": 3},
            "Group": {"accuracy": 1 / 2, "correct": 1, "entities": 2},
        },
    }


@pytest.mark.parametrize(("accuracy", "paper"), [(0.9176, 0.9570), (0.8793, 0.9358), (0.9687, 0.9841), (0.6947, 0.8199)])
def test_paper_f1_matches_the_published_tables(accuracy: float, paper: float) -> None:
    from spanwise.evaluation.typing import Accuracy

    assert TypingScores({"X": Accuracy(round(accuracy * 10_000), 10_000)}).paper_f1 == pytest.approx(paper, abs=1e-4)


@pytest.mark.parametrize(
    ("contiguous", "discontinuous", "paper"),
    [
        ((68_746, 100_000), (65, 220), (0.6866, 0.6875, 0.6864, 0.6869)),
        ((8905, 10_000), (501, 610), (0.8865, 0.8905, 0.8809, 0.8857)),
    ],
    ids=["NEREL", "CADEC"],
)
def test_scores_with_discontinuous_entities_match_the_published_table(
    contiguous: tuple[int, int], discontinuous: tuple[int, int], paper: tuple[float, ...]
) -> None:
    from spanwise.evaluation.typing import Accuracy

    all_entities = Accuracy(contiguous[0] + discontinuous[0], contiguous[1] + discontinuous[1])
    scores = TypingScores({"X": all_entities}, discontinuous=Accuracy(*discontinuous))
    ours = (scores.accuracy, scores.paper_precision, scores.paper_recall, scores.paper_f1)
    assert tuple(round(value, 4) for value in ours) == paper


def test_only_one_of_two_types_on_a_span_can_be_correct() -> None:
    gold = Sentence("s", ("Bergen",), (Entity("Place", ((0, 1),)), Entity("Group", ((0, 1),))))
    assert score_typing([gold], [replace(gold, entities=gold.entities[:1])]).accuracy == 0.5


def test_without_entities() -> None:
    empty = Sentence("s", ("Bergen",))
    typing = score_typing([empty], [empty], [])
    assert (typing.accuracy, typing.paper_f1) == (0.0, 0.0)
    assert LookupBaseline([])(GOLD[0], GOLD[0].entities[0]) is None


def test_tasks_select_by_their_own_metric() -> None:
    typing, entities = TypingTask(), EntityTask()
    predicted = (replace(GOLD[0], entities=GOLD[0].entities[:3]), GOLD[1])
    dev = typing.score_dev(GOLD, predicted)
    assert dev == {"typing": {"accuracy": 4 / 5}}
    assert typing.selection_score(dev) == 4 / 5
    assert typing.format_epoch(dev) == "typing accuracy 80.00"
    assert entities.selection_score(entities.score_dev(GOLD, predicted)) == pytest.approx(2 * 0.8 / 1.8)
    assert entities.format_epoch(entities.score_dev(GOLD, predicted)) == "P 100.00 R 80.00 F1 88.89"
    scores = typing.score_split(GOLD, predicted, TRAIN)
    assert isinstance(task_from_scores(scores), TypingTask)
    assert typing.metric_value(scores) == 4 / 5
    assert "f1" not in str(scores).replace("paper_f1", "").lower()
    assert isinstance(task_from_scores(entities.score_split(GOLD, predicted, TRAIN)), EntityTask)


def test_printed_typing_scores() -> None:
    out = io.StringIO()
    print_typing(replace(score_typing(GOLD, GOLD, TRAIN), notes=("something",)), Console(file=out, width=80))
    text = " ".join(out.getvalue().split())
    assert (
        "typing accuracy 100.00 (5 of 5; lookup baseline 60.00; paper_f1 with wrong discontinuous entities as misses = 100.00)"
        in text
    )
    assert "Place 100.00 3 3" in text
    assert text.endswith("note: something")
