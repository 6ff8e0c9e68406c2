"""Notes before training, and explanations of a score of 0 after the first epoch."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny import STATIC, corpus, fit, model

from spanwise import Corpus, Entity, Link, Relation, Sentence
from spanwise.models.model import Model
from spanwise.recipes.catalog import configure
from spanwise.training.checks import check_corpus, explain_zero_score, unreachable_causes


def make_sentence(*entities: tuple[str, int, int], name: str = "s") -> Sentence:
    """A sentence with entities of one fragment."""
    return Sentence(name, tuple("abcdefgh"), tuple(Entity(type, ((start, end),)) for type, start, end in entities))


@pytest.fixture(scope="module")
def built() -> Model:
    return model("static", "spanner")


def test_no_notes_for_good_data(built: Model) -> None:
    assert check_corpus(corpus(60), built.head) == []


def test_unreachable_entities(built: Model) -> None:
    wide = make_sentence(("Drug", 0, 6), ("Place", 6, 7))
    new = Sentence("new", tuple("ABCDEFGH"), wide.entities)
    notes = check_corpus(Corpus({"train": (*corpus()["train"], wide), "dev": (new,)}), built.head)
    assert notes[-1] == (
        "dev: this model cannot predict 1 of 2 entities (50.0%): 1 too wide; they count as missed in every score"
    )
    assert notes[0].startswith("train: this model cannot predict 1 of ")


SEVERAL = Sentence(
    "several",
    tuple("abcdefghij"),
    (
        Entity("Drug", ((0, 1),)), Entity("Place", ((0, 1),)), Entity("Place", ((0, 1),)),  # two types, one of them twice
        Entity("Drug", ((1, 4),)), Entity("Place", ((2, 3),)),  # nested
        Entity("Drug", ((4, 5), (7, 8))), Entity("Gene", ((5, 6),)), Entity("Place", ((4, 10),)),
    ),
)  # fmt: skip
ALWAYS = {"discontinuous": 1, "of a type that is not in train": 1}
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
def test_causes_of_unreachable_entities(recipe: str, overrides: str) -> None:
    head = model("static", recipe, overrides.split()).head
    causes = unreachable_causes(SEVERAL, head)
    assert causes == CAUSES[recipe, overrides]
    assert causes.total() == head.count_unreachable(SEVERAL)
    assert not unreachable_causes(corpus()["train"][0], head)


def test_only_softmax_heads_miss_a_second_type_on_a_span() -> None:
    twice = Sentence("twice", ("a", "b"), (Entity("Drug", ((0, 1),)), Entity("Place", ((0, 1),))))
    new = Sentence("new", ("c", "d"), twice.entities)
    data = Corpus({"train": (*corpus()["train"], twice), "dev": (new, new)})

    def notes(recipe: str) -> list[str]:
        built = Model.build(configure(recipe, encoder="static", overrides=STATIC), data)
        return [note for note in check_corpus(data, built.head) if note.startswith("dev")]

    assert notes("global-pointer") == notes("efficient-global-pointer") == []
    for recipe in ("biaffine", "spanner", "seqner-crf", "bl-spanner"):
        assert notes(recipe) == [
            "dev: this model cannot predict 2 of 4 entities (50.0%): 2 of a second type on their span; "
            "they count as missed in every score"
        ]


def test_unreachable_relations() -> None:
    place, wide, drug = Entity("Place", ((0, 1),)), Entity("Place", ((0, 9),)), Entity("Drug", ((3, 4),))
    words = tuple("abcdefghij")
    train = [Sentence(f"t{n}", words, (place, drug), (Relation("near", 0, 1),)) for n in range(200)]
    sentence = Sentence(
        "d", words, (place, wide, drug), (Relation("near", 0, 2), Relation("near", 1, 2), Relation("owns", 0, 2), Relation("owns", 1, 2)),
        (Link("near", 0, 5, 0),), document="d", position=0,
    )  # fmt: skip
    data = Corpus({"train": train, "dev": [sentence]})
    notes = check_corpus(
        data,
        Model.build(configure("gp-relations", encoder="static", overrides=(*STATIC, "head.entities.max_width=3")), data).head,
    )
    (line,) = (note for note in notes if "relations" in note)
    assert line == (
        "dev: this model cannot predict 4 of 5 relations (80.0%): 2 of a type that is not in train, 1 between sentences, "
        "1 between entities that cannot be predicted; they count as missed"
    )


def test_relations_between_distant_entities() -> None:
    """Long sentences are predicted in windows, and no window contains both entities of the second relation."""
    train = [Sentence(f"t{n}", ("a", "b"), (_place(0), _place(1)), (Relation("near", 0, 1),)) for n in range(200)]
    entities = (_place(0), _place(400), _place(600))
    far = Sentence("d", ("word",) * 700, entities, (Relation("near", 0, 1), Relation("near", 0, 2), Relation("near", 2, 1)))
    data = Corpus({"train": train, "dev": [far]})
    notes = check_corpus(data, Model.build(configure("gp-relations", encoder="static", overrides=STATIC), data).head)
    assert [note for note in notes if "relations" in note] == [
        "dev: this model cannot predict 1 of 3 relations (33.3%): 1 between entities that no window of 512 words contains; "
        "they count as missed"
    ]


def _place(start: int) -> Entity:
    return Entity("Place", ((start, start + 1),))


def test_relations_between_sentences_only(built: Model) -> None:
    """No head is built for such relations, so that nothing else would mention them."""
    entities = (Entity("Place", ((0, 1),)), Entity("Drug", ((1, 2),)))
    sentences = [
        Sentence(f"s{n}", ("a", "b"), entities, links=(Link("near", 0, 1 - n, 0),), document="d", position=n) for n in (0, 1)
    ]
    notes = check_corpus(Corpus({"train": sentences, "dev": sentences}), built.head)
    assert "train has 2 relations between sentences, which no recipe learns" in notes


def test_labels_that_differ_between_splits(built: Model) -> None:
    splits = {
        "train": corpus()["train"],
        "dev": (make_sentence(("Drug", 0, 1), ("Gene", 1, 2), ("Gene", 2, 3)),),
        "test": (make_sentence(),),
    }
    notes = check_corpus(Corpus(splits), built.head)
    assert "dev has entity types that are not in train and cannot be learned: Gene (2)" in notes
    assert "dev has no entity of Place" in notes
    assert "test has no entities: its scores will be 0" in notes
    assert not any(note.startswith("train has") for note in notes)


def test_many_labels_are_not_all_listed(built: Model) -> None:
    """With hundreds of types, a note with all their names would hide the others."""
    many = tuple(make_sentence((f"T{number:03}", 0, 1)) for number in range(300))
    one = (make_sentence(("Other", 0, 1)),)
    notes = check_corpus(Corpus({"train": one, "dev": many}), built.head)
    assert any(note.endswith("T008 (1), T009 (1) and 290 more") for note in notes)
    notes = check_corpus(Corpus({"train": many, "dev": one}), built.head)
    assert any(note.startswith("dev has no entity of T000, T001,") and note.endswith("T009 and 290 more") for note in notes)


def test_sentences_that_are_also_in_train(built: Model) -> None:
    sentences = [
        Sentence(f"s{n}", (f"word{n}", "."), (Entity("Place", ((0, 1),)), Entity("Drug", ((1, 2),)))) for n in range(400)
    ]
    train, new = sentences[:100], sentences[100:]
    splits = {"train": train, "dev": [*train[:3], *new[:97]], "test": [*train[:1], *new[97:196]]}
    notes = check_corpus(Corpus({name: tuple(split) for name, split in splits.items()}), built.head)
    message = "dev: 3.0% of the sentences are also in train (3 of 100); scores on new text are probably lower"
    assert [note for note in notes if "also in train" in note] == [message]  # 1 % of test is not mentioned


CASES = {
    "no gold": ([make_sentence()], [make_sentence()], "dev has no entities"),
    "unreachable": (
        [make_sentence(("Drug", 0, 7), ("Drug", 0, 7))],
        [make_sentence()],
        "this model cannot predict any entity of dev",
    ),
    "no predictions": (
        [make_sentence(("Drug", 0, 1))],
        [make_sentence()],
        "otherwise raise training.head_rate (now 0.001) or train longer",
    ),
    "wrong types": (
        [make_sentence(("Drug", 0, 1), ("Drug", 2, 3))],
        [make_sentence(("Place", 0, 1), ("Place", 4, 5))],
        "1 of 2 predictions have the right boundaries and a wrong type. Do dev and train use the same labels?",
    ),
    "ends too early": (
        [make_sentence(("Drug", 0, 2), ("Drug", 3, 5), ("Drug", 6, 7))],
        [make_sentence(("Drug", 0, 1), ("Drug", 3, 4), ("Drug", 7, 8))],
        "most predictions end one word early or late. Are the ends in one of the files inclusive",
    ),
    "all wrong": (
        [make_sentence(("Drug", 0, 2))],
        [make_sentence(("Drug", 4, 5))],
        "1 entity predicted, none of 1 correct yet",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_explanations_of_a_zero_score(built: Model, name: str) -> None:
    gold, predicted, expected = CASES[name]
    assert expected in explain_zero_score(gold, predicted, built.head, 0.001)


def test_the_cause_is_logged_once_after_the_first_epoch(tmp_path: Path) -> None:
    lines: list[str] = []
    fit(tmp_path / "run", corpus(), epochs=3, head_rate=0.0, log=lines.append)
    assert len([line for line in lines if line.startswith("dev F1 is 0 after the first epoch: ")]) == 1


def test_notes_are_logged_before_the_first_step(tmp_path: Path) -> None:
    lines: list[str] = []
    data = Corpus({**corpus().splits, "dev": (make_sentence(("Gene", 0, 1)),)})
    fit(tmp_path / "run", data, epochs=1, log=lines.append)
    notes = [number for number, line in enumerate(lines) if line.startswith("note: dev has entity types that are not in train")]
    assert notes[0] < next(number for number, line in enumerate(lines) if line.startswith("training seqner with "))
