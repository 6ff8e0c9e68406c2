"""Typing of given spans, worked out by hand."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from spanwise.core.types import Entity, Sentence
from spanwise.evaluation.tasks import Entities, GivenSpans, task_of
from spanwise.evaluation.typing import Lookup, Typing, print_typing, typing_scores

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
            Entity("Place", ((0, 1),)),  # string: Place 1, Group 1; of the two, Group is the commoner type in training
            Entity("Place", ((2, 4),)),  # last word: Place 2, Group 1
            Entity("Group", ((5, 7),)),  # last word: Group 2, Song 1
            Entity("Place", ((8, 9),)),  # unknown: Group, the commonest type
        ),
    ),
    Sentence("g2", tuple("Bergen hall Choir".split()), (Entity("Group", ((0, 1), (2, 3))),)),  # string of both fragments
)


def test_the_look_up_backs_off_to_the_last_word_and_then_to_the_commonest_type() -> None:
    look_up = Lookup(TRAIN)
    assert [look_up(s, e) for s in GOLD for e in s.entities] == ["Group", "Place", "Group", "Group", "Group"]


def test_accuracy_counts_entities_and_stands_beside_the_look_up() -> None:
    found = (replace(GOLD[0], entities=(*GOLD[0].entities[:3], Entity("Song", ((8, 9),)))), replace(GOLD[1], entities=()))
    typing = typing_scores(GOLD, found, TRAIN)
    assert typing.to_json()["typing"] == {
        "accuracy": 3 / 5,
        "correct": 3,
        "entities": 5,
        "paper_f1": pytest.approx(2 * 0.6 / 1.6),
        "lookup": {"accuracy": 3 / 5, "correct": 3, "entities": 5},
        "types": {
            "Place": {"accuracy": 2 / 3, "correct": 2, "entities": 3},
            "Group": {"accuracy": 1 / 2, "correct": 1, "entities": 2},
        },
    }


@pytest.mark.parametrize(("accuracy", "paper"), [(0.9176, 0.9570), (0.8793, 0.9358), (0.9687, 0.9841), (0.6947, 0.8199)])
def test_the_papers_figure_is_what_its_tables_print(accuracy: float, paper: float) -> None:
    from spanwise.evaluation.typing import Accuracy

    assert Typing({"X": Accuracy(round(accuracy * 10_000), 10_000)}).paper_f1 == pytest.approx(paper, abs=1e-4)


def test_two_types_of_one_span_are_two_entities_of_which_one_can_be_right() -> None:
    gold = Sentence("s", ("Bergen",), (Entity("Place", ((0, 1),)), Entity("Group", ((0, 1),))))
    assert typing_scores([gold], [replace(gold, entities=gold.entities[:1])]).accuracy == 0.5


def test_nothing_of_nothing() -> None:
    bare = Sentence("s", ("Bergen",))
    typing = typing_scores([bare], [bare], [])
    assert (typing.accuracy, typing.paper_f1) == (0.0, 0.0)
    assert Lookup([])(GOLD[0], GOLD[0].entities[0]) is None


def test_tasks_choose_by_their_own_figure() -> None:
    typing, entities = GivenSpans(), Entities()
    found = (replace(GOLD[0], entities=GOLD[0].entities[:3]), GOLD[1])
    dev = typing.dev(GOLD, found)
    assert dev == {"typing": {"accuracy": 4 / 5}}
    assert typing.best(dev) == 4 / 5
    assert typing.epoch(dev) == "typing accuracy 0.8000"
    assert entities.best(entities.dev(GOLD, found)) == pytest.approx(2 * 0.8 / 1.8)
    scores = typing.scores(GOLD, found, TRAIN)
    assert isinstance(task_of(scores), GivenSpans)
    assert typing.value(scores) == 4 / 5
    assert "f1" not in str(scores).replace("paper_f1", "").lower()
    assert isinstance(task_of(entities.scores(GOLD, found, TRAIN)), Entities)


def test_people_read_accuracy_look_up_and_the_papers_figure_by_its_name() -> None:
    out = io.StringIO()
    print_typing(replace(typing_scores(GOLD, GOLD, TRAIN), notes=("something",)), Console(file=out, width=80))
    text = " ".join(out.getvalue().split())
    assert "typing accuracy 1.0000 (5 of 5; look-up 0.6000; paper_f1 = 2a / (1 + a) = 1.0000)" in text
    assert "Place 100.00 3 3" in text
    assert text.endswith("note: something")
