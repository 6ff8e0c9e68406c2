"""What is said before training, and about a first epoch that found nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny import STATIC, corpus, fit, model

from spanwise import Corpus, Entity, Link, Relation, Sentence
from spanwise.models.model import Model
from spanwise.recipes.catalog import configure
from spanwise.training.checks import before_training, out_of_reach, why_nothing


def one(*entities: tuple[str, int, int], name: str = "s") -> Sentence:
    found = tuple(Entity(type, ((start, end),)) for type, start, end in entities)
    return Sentence(name, tuple("abcdefgh"), found)


@pytest.fixture(scope="module")
def built() -> Model:
    return model("static", "spanner")


def test_nothing_to_say_of_sound_data(built: Model) -> None:
    assert before_training(corpus(60), built.head) == []


def test_entities_out_of_reach(built: Model) -> None:
    wide = one(("Drug", 0, 6), ("Place", 6, 7))
    notes = before_training(Corpus({"train": (*corpus()["train"], wide), "dev": (wide,)}), built.head)
    assert notes[-1] == (
        "dev: 1 of 2 entities (50.0%) are out of reach of this method (1 too wide); they count as misses in every score"
    )
    assert notes[0].startswith("train: 1 of ")


SEVERAL = Sentence(
    "several",
    tuple("abcdefghij"),
    (
        Entity("Drug", ((0, 1),)), Entity("Place", ((0, 1),)), Entity("Place", ((0, 1),)),  # two types, one of them said twice
        Entity("Drug", ((1, 4),)), Entity("Place", ((2, 3),)),  # nested
        Entity("Drug", ((4, 5), (7, 8))), Entity("Gene", ((5, 6),)), Entity("Place", ((4, 10),)),
    ),
)  # fmt: skip
ALWAYS = {"discontinuous": 1, "of a type that train does not have": 1}
CAUSES = {
    ("seqner", ""): {**ALWAYS, "of a second type on their span": 1, "overlapping another": 1},
    ("spanner", "head.max_width=5"): {**ALWAYS, "too wide": 1, "of a second type on their span": 1, "overlapping another": 1},
    ("spanner", "head.decoding=nested head.max_width=9"): {**ALWAYS, "of a second type on their span": 1},
    ("biaffine", "head.decoding=nested"): {**ALWAYS, "of a second type on their span": 1},
    ("global-pointer", "head.decoding=nested"): ALWAYS,
    ("efficient-global-pointer", "head.decoding=nested head.max_width=5"): {**ALWAYS, "too wide": 1},
    ("efficient-global-pointer", ""): {**ALWAYS, "of a second type on their span": 1, "overlapping another": 1},
    ("bl-seqner", ""): {**ALWAYS, "of a second type on their span": 1, "overlapping another": 1},
    ("bl-spanner", "head.span.kind=global-pointer head.span.decoding=nested"): ALWAYS,
}


@pytest.mark.parametrize(("recipe", "overrides"), CAUSES)
def test_why_entities_are_out_of_reach(recipe: str, overrides: str) -> None:
    head = model("static", recipe, overrides.split()).head
    causes = out_of_reach(SEVERAL, head)
    assert causes == CAUSES[recipe, overrides]
    assert causes.total() == head.out_of_reach(SEVERAL)
    assert not out_of_reach(corpus()["train"][0], head)


def test_a_span_with_two_types_is_said_before_training_and_lost_to_softmax_heads_alone() -> None:
    twice = Sentence("twice", ("a", "b"), (Entity("Drug", ((0, 1),)), Entity("Place", ((0, 1),))))
    data = Corpus({"train": (*corpus()["train"], twice), "dev": (twice, twice)})

    def notes(recipe: str) -> list[str]:
        built = Model.build(configure(recipe, encoder="static", overrides=STATIC), data)
        return [note for note in before_training(data, built.head) if note.startswith("dev")]

    assert notes("global-pointer") == notes("efficient-global-pointer") == []
    for recipe in ("biaffine", "spanner", "seqner-crf", "bl-spanner"):
        assert notes(recipe) == [
            "dev: 2 of 4 entities (50.0%) are out of reach of this method (2 of a second type on their span); "
            "they count as misses in every score"
        ]


def test_relations_out_of_reach() -> None:
    place, wide, drug = Entity("Place", ((0, 1),)), Entity("Place", ((0, 9),)), Entity("Drug", ((3, 4),))
    words = tuple("abcdefghij")
    train = [Sentence(f"t{n}", words, (place, drug), (Relation("near", 0, 1),)) for n in range(200)]
    other = Sentence(
        "d", words, (place, wide, drug), (Relation("near", 0, 2), Relation("near", 1, 2), Relation("owns", 0, 2), Relation("owns", 1, 2)),
        (Link("near", 0, 5, 0),), document="d", position=0,
    )  # fmt: skip
    data = Corpus({"train": train, "dev": [other]})
    notes = before_training(
        data,
        Model.build(configure("gp-relations", encoder="static", overrides=(*STATIC, "head.entities.max_width=3")), data).head,
    )
    (line,) = (note for note in notes if "relations" in note)
    assert line == (
        "dev: 4 of 5 relations (80.0%) are out of reach (2 of a type that train does not have, 1 between sentences, "
        "1 of entities out of reach); they count as misses"
    )


def test_labels_that_differ_between_splits(built: Model) -> None:
    splits = {"train": corpus()["train"], "dev": (one(("Drug", 0, 1), ("Gene", 1, 2), ("Gene", 2, 3)),), "test": (one(),)}
    notes = before_training(Corpus(splits), built.head)
    assert "dev has types that train does not, which no model can learn: Gene (2)" in notes
    assert "dev has no entity of Place" in notes
    assert "test has no entities at all: its scores will be 0" in notes
    assert not any(note.startswith("train has") for note in notes)


CASES = {
    "no gold": ([one()], [one()], "dev has no entities"),
    "out of reach": ([one(("Drug", 0, 7), ("Drug", 0, 7))], [one()], "every dev entity is out of reach"),
    "nothing proposed": ([one(("Drug", 0, 1))], [one()], "the model proposes no entity yet"),
    "wrong types": (
        [one(("Drug", 0, 1), ("Drug", 2, 3))],
        [one(("Place", 0, 1), ("Place", 4, 5))],
        "1 of 2 proposals have a right boundary and a wrong type",
    ),
    "ends too early": (
        [one(("Drug", 0, 2), ("Drug", 3, 5), ("Drug", 6, 7))],
        [one(("Drug", 0, 1), ("Drug", 3, 4), ("Drug", 7, 8))],
        "most proposals end one word early or late: are the ends in one of the files inclusive",
    ),
    "all wrong": ([one(("Drug", 0, 2))], [one(("Drug", 4, 5))], "proposes 1 entities for 1 and none is right yet"),
}


@pytest.mark.parametrize("name", CASES)
def test_why_nothing_was_found(built: Model, name: str) -> None:
    gold, predicted, expected = CASES[name]
    assert expected in why_nothing(gold, predicted, built.head, 0.001)


def test_the_cause_is_said_after_the_first_epoch_alone(tmp_path: Path) -> None:
    said: list[str] = []
    fit(tmp_path / "run", corpus(), epochs=3, head_rate=0.0, log=said.append)
    assert len([line for line in said if line.startswith("dev F1 is 0 after the first epoch: ")]) == 1


def test_what_looks_wrong_is_said_before_the_first_step(tmp_path: Path) -> None:
    said: list[str] = []
    data = Corpus({**corpus().splits, "dev": (one(("Gene", 0, 1)),)})
    fit(tmp_path / "run", data, epochs=1, log=said.append)
    notes = [number for number, line in enumerate(said) if line.startswith("note: dev has types that train does not")]
    assert notes[0] < next(number for number, line in enumerate(said) if line.startswith("training seqner on 24 sentences"))
