"""Data types: valid values, rejected values and derived properties."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import spanwise
from spanwise import Corpus, Entity, Link, Relation, Sentence, Span


def test_relations_between_spans() -> None:
    outer, inner, shifted, disjoint = Span(2, 6), Span(3, 5), Span(5, 8), Span(6, 8)
    assert outer.contains(inner)
    assert outer.contains(outer)
    assert not inner.contains(outer)
    assert outer.crosses(shifted)
    assert shifted.crosses(outer)
    assert not outer.crosses(inner)
    assert not outer.overlaps(disjoint)


def test_entities_compare_by_type_and_fragments_only() -> None:
    gold = Entity("Drug", (Span(0, 1),))
    predicted = Entity("Drug", ((0, 1),), score=0.7, extra={"note": "x"})
    assert gold == predicted
    assert len({gold, predicted}) == 1
    assert gold != Entity("Dose", (Span(0, 1),))
    assert gold != Entity("Drug", (Span(0, 2),))


def test_adjacent_fragments_are_joined() -> None:
    assert Entity("X", ((0, 2), (2, 4), (6, 7))).fragments == (Span(0, 4), Span(6, 7))


@pytest.mark.parametrize(
    ("fragments", "message"),
    [
        ((), "no fragments"),
        (((3, 3),), "half-open"),
        (((4, 3),), "half-open"),
        (((-1, 3),), "half-open"),
        (((0, 3), (2, 5)), "overlap or are out of order"),
        (((4, 5), (0, 1)), "overlap or are out of order"),
    ],
)
def test_invalid_fragments_are_rejected(fragments: tuple[tuple[int, int], ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Entity("X", fragments)  # type: ignore[arg-type]


@pytest.mark.parametrize("type_", ["", None, 3])
def test_a_type_is_a_non_empty_string(type_: object) -> None:
    with pytest.raises(ValueError, match="non-empty string"):
        Entity(type_, ((0, 1),))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="non-empty string"):
        Relation(type_, 0, 1)  # type: ignore[arg-type]


def test_values_are_frozen() -> None:
    sentence = Sentence("s", ("a",))
    for value, name in ((sentence, "words"), (Entity("X", ((0, 1),)), "type"), (Relation("R", 0, 0), "head")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, name, "b")


def test_default_text_and_offsets() -> None:
    sentence = Sentence("s", ("IL-2", "gene", "."))
    assert sentence.text == "IL-2 gene ."
    assert [sentence.text[a:b] for a, b in sentence.offsets] == ["IL-2", "gene", "."]
    assert Sentence("empty", ()).offsets == ()


def test_text_and_offsets_with_a_given_text() -> None:
    sentence = Sentence("s", ("IL", "-", "2", "gene"), text="IL-2  gene.\n")
    assert sentence.starts == (0, 2, 3, 6)
    assert sentence.text_of(Entity("G", ((0, 3),))) == "IL-2"
    assert sentence.text_of(Entity("G", ((0, 1), (3, 4)))) == "IL gene"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"words": ("a", "")}, "word 1 is empty"),
        ({"words": ("a", "b"), "text": "a c"}, "word 1, 'b', is not in the text"),
        ({"words": ("a", "b"), "text": "a b", "starts": (0, 1)}, "is not at character 1"),
        ({"words": ("a", "b"), "text": "a b", "starts": (0,)}, "1 word start for 2 words"),
        ({"words": ("a",), "entities": (Entity("X", ((0, 2),)),)}, "ends at word 2, but the sentence has 1"),
        ({"words": ("a",), "relations": (Relation("R", 0, 1),)}, "refers to entity 0, but the sentence has 0"),
        ({"words": ("a",), "pos": ("N", "V")}, "2 part-of-speech tags for 1 word"),
        (
            {"words": ("a",), "entities": (Entity("X", ((0, 1),)),), "links": (Link("R", 0, 3, 0),)},
            "must have a document",
        ),
    ],
)
def test_inconsistent_sentences_are_rejected(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Sentence("s", **arguments)  # type: ignore[arg-type]


def test_lists_become_tuples() -> None:
    sentence = Sentence("s", ["a", "b"], [Entity("X", ((0, 1),))])  # type: ignore[arg-type]
    assert sentence == Sentence("s", ("a", "b"), (Entity("X", ((0, 1),)),))


def test_types_of_a_corpus() -> None:
    first = Sentence("1", ("a", "b"), (Entity("X", ((0, 1),)), Entity("A", ((1, 2),))), (Relation("R", 0, 1),))
    second = Sentence("2", ("a",), (Entity("B", ((0, 1),)),), links=(Link("Q", 0, 0, 0),), document="d", position=1)
    corpus = Corpus({"train": (first,), "test": (second,)})
    assert corpus.types == ("A", "B", "X")
    assert corpus.relation_types == ("Q", "R")
    assert "dev" not in corpus
    assert list(corpus) == ["train", "test"]


@pytest.mark.parametrize("score", ["0.5", True, float("nan"), float("inf"), 10**400, [1]])
def test_a_score_is_a_finite_number(score: object) -> None:
    with pytest.raises(ValueError, match="an entity's score must be a finite number"):
        Entity("X", ((0, 1),), score)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a relation's score must be a finite number"):
        Relation("X", 0, 1, score)  # type: ignore[arg-type]
    assert Entity("X", ((0, 1),), -2.5).score == -2.5  # a logit is a valid score


@pytest.mark.parametrize("fragment", [(0, 1.0), (True, 2), ("0", "1"), (0,), (0, 1, 2), 3])
def test_fragments_are_pairs_of_integers(fragment: object) -> None:
    with pytest.raises(ValueError, match="is not a half-open range of words"):
        Entity("X", (fragment,))  # type: ignore[arg-type]


@pytest.mark.parametrize("index", [1.5, "1", True, -1, None])
def test_relations_refer_to_entities_by_index(index: Any) -> None:
    for make in (lambda: Relation("r", index, 0), lambda: Relation("r", 0, index), lambda: Link("r", 0, index, 0)):
        with pytest.raises(ValueError, match="must be integers from 0"):
            make()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"words": "Oslo"}, "words must be a sequence, not the string 'Oslo'"),
        ({"words": ("a", None)}, "words must be strings, found None"),
        ({"words": ("a", 3)}, "words must be strings, found 3"),
        ({"words": ("a",), "pos": "N"}, "pos must be a sequence"),
        ({"words": ("a",), "pos": (1,)}, "part-of-speech tags must be strings"),
        ({"words": ("a",), "text": "a", "starts": (0.0,)}, "is not at character"),
        ({"words": ("a",), "position": -3}, "position must be an integer from 0, not -3"),
        ({"words": ("a",), "start": 1.0}, "start must be an integer"),
        ({"words": ("a",), "document": 3}, "document must be a string, not 3"),
        ({"words": ("a",), "id": 3}, "id must be a string, not 3"),
    ],
)
def test_values_of_the_wrong_type_are_rejected(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Sentence(**{"id": "s", **arguments})


def test_all_sequences_become_tuples() -> None:
    sentence = Sentence("s", ["a", "b"], pos=["N", "V"], text="a b", starts=[0, 2])  # type: ignore[arg-type]
    assert sentence == Sentence("s", ("a", "b"), pos=("N", "V"), text="a b", starts=(0, 2))
    assert hash(sentence) == hash(Sentence("s", ("a", "b"), pos=("N", "V"), text="a b", starts=(0, 2)))


def test_repr_of_a_corpus_fits_a_screen() -> None:
    words = ("a",) * 50
    sentences = tuple(Sentence(f"s{i}", words, (Entity(f"TYPE-{i % 40}", ((0, 1),)),)) for i in range(1200))
    text = repr(Corpus({"train": sentences, "dev": sentences[:7]}, name="news"))
    assert len(text) < 300
    assert text.startswith("Corpus('news', train: 1,200 sentences, dev: 7 sentences; 40 types: TYPE-0, TYPE-1, ")
    assert repr(Corpus({})) == "Corpus('', no splits)"


def test_dir_of_the_package_shows_the_public_names_only() -> None:
    assert dir(spanwise) == sorted(spanwise.__all__)
    assert "train" in dir(spanwise)
    assert "import_module" not in dir(spanwise)
