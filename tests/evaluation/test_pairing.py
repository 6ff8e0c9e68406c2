"""Which predicted sentence belongs to which gold sentence."""

from __future__ import annotations

import pytest

from spanwise import Entity, Relation, Sentence, Span, SpanwiseError
from spanwise.evaluation.pairing import Pair, in_characters, pair


def sentence(id: str, text: str, *entities: Entity) -> Sentence:
    return Sentence(id, tuple(text.split()), entities)


OSLO = Entity("Place", ((0, 1),))


def test_ids_pair_sentences_in_any_order_and_gold_gives_the_order() -> None:
    gold = [sentence("a", "Oslo is cold"), sentence("b", "Cairo is hot")]
    predicted = [sentence("b", "Cairo is hot", OSLO), sentence("a", "Oslo is cold")]
    pairing = pair(gold, predicted)
    assert pairing.pairs == (Pair(gold[0], predicted[1]), Pair(gold[1], predicted[0]))
    assert (pairing.by, pairing.missing, pairing.retokenised) == ("id", [], 0)


def test_a_shared_id_is_paired_in_order_of_occurrence() -> None:
    gold = [sentence("a", "one"), sentence("b", "x"), sentence("a", "two"), sentence("a", "three")]
    predicted = [sentence("a", "one"), sentence("a", "two"), sentence("b", "x")]
    pairing = pair(gold, predicted)
    assert [p.predicted for p in pairing.pairs] == [predicted[0], predicted[2], predicted[1], None]
    assert pairing.missing == ["a"]


def test_an_empty_prediction_misses_everything() -> None:
    assert pair([sentence("a", "x"), sentence("b", "y")], []).missing == ["a", "b"]
    assert pair([], []).pairs == ()


def test_ids_that_fit_nothing_leave_the_order() -> None:
    gold = [sentence("g-7", "Oslo is cold"), sentence("g-9", "Cairo is hot")]
    predicted = [sentence("p-1", "Oslo is cold", OSLO), sentence("p-2", "Cairo is hot")]
    pairing = pair(gold, predicted)
    assert pairing.by == "order"
    assert pairing.pairs == (Pair(gold[0], predicted[0]), Pair(gold[1], predicted[1]))


def test_numbers_that_are_off_by_one_leave_the_order() -> None:
    """A corpus numbered from 0, written to a format without ids, read and numbered from 1."""
    gold = [sentence("test-0", "Oslo is cold"), sentence("test-1", "Cairo is hot")]
    predicted = [sentence("test-1", "Oslo is cold", OSLO), sentence("test-2", "Cairo is hot")]
    pairing = pair(gold, predicted)
    assert pairing.by == "order"
    assert [p.predicted for p in pairing.pairs] == predicted


def test_other_words_for_the_same_text_are_compared_by_characters() -> None:
    gold = Sentence("a", ("NF", "-", "kappa", "B", "binds"), (Entity("Protein", ((0, 4),)),), text="NF-kappa B binds\n")
    found = Sentence("a", ("NF-kappa", "B", "binds"), (Entity("Protein", ((0, 2),)),))
    pairing = pair([gold], [found])
    assert pairing.retokenised == 1
    (both,) = pairing.pairs
    assert both.predicted is not None
    assert both.gold.words == both.predicted.words == tuple("NF-kappaBbinds")
    assert both.gold.entities == both.predicted.entities == (Entity("Protein", ((0, 9),)),)


def test_characters_keep_fragments_relations_and_their_place_in_the_document() -> None:
    text = "lung  and liver\u3000cancer"
    original = Sentence(
        "a",
        ("lung", "and", "liver", "cancer"),
        (Entity("Disease", ((0, 1), (3, 4)), score=0.5), Entity("Organ", ((2, 3),))),
        (Relation("in", 0, 1),),
        text=text,
        document="d",
        position=4,
    )
    found = in_characters(original)
    assert found.words == tuple("lungandlivercancer")
    assert [e.fragments for e in found.entities] == [(Span(0, 4), Span(12, 18)), (Span(7, 12),)]
    assert found.entities[0].score == 0.5
    assert (found.relations, found.document, found.position) == (original.relations, "d", 4)


def test_a_gap_of_white_space_words_is_no_gap_between_characters() -> None:
    spaced = Sentence("a", ("x", " ", "y"), (Entity("T", ((0, 1), (2, 3))),))
    assert in_characters(spaced).entities == (Entity("T", ((0, 2),)),)


@pytest.mark.parametrize(
    ("gold", "predicted", "message"),
    [
        (
            [sentence("a", "x y"), sentence("b", "y")],
            [sentence("a", "x y"), sentence("c", "y z"), sentence("d", "y"), sentence("e", "y")],
            "predicted sentence 'c' is not in gold (nor are 2 others); predictions are paired with gold by id",
        ),
        (
            [sentence("a", "x y")],
            [sentence("a", "x y"), sentence("c", "y"), sentence("d", "y")],
            "predicted sentence 'c' is not in gold (nor is 1 other); predictions are paired with gold by id",
        ),
        (
            [sentence("a", "x")],
            [sentence("a", "x"), sentence("c", "y")],
            "predicted sentence 'c' is not in gold; predictions are paired with gold by id",
        ),
        (
            [sentence("a", "x")],
            [sentence("a", "x"), sentence("a", "x"), sentence("a", "x")],
            "sentence 'a' occurs 3 times in the predictions and once in gold",
        ),
        (
            [sentence("a", "x"), sentence("b", "the cold Oslo")],
            [sentence("b", "the hot Oslo")],
            "sentence 'b': the prediction has other words than gold: word 1 is 'hot', expected 'cold'",
        ),
        (
            [sentence("a", "x y z")],
            [sentence("a", "x y")],
            "sentence 'a': the prediction has 2 words, gold has 3",
        ),
        (
            [sentence("a", "x")],
            [sentence("a", "x y")],
            "sentence 'a': the prediction has 2 words, gold has 1",
        ),
        (
            [sentence("a", "x"), sentence("b", "y")],
            [sentence("p-1", "x")],
            "no id of the predictions (the first is 'p-1') occurs in gold, and they cannot be paired in order: "
            "1 predicted, 2 in gold",
        ),
        (
            [sentence("a", "x"), sentence("b", "y")],
            [sentence("p-1", "x"), sentence("p-2", "z")],
            "no id of the predictions (the first is 'p-1') occurs in gold, and they cannot be paired in order: "
            "sentence 2 ('b' in gold): the prediction has other words than gold: word 0 is 'z', expected 'y'",
        ),
        (
            [Sentence("a", ("x", " ", "y"), (Entity("T", ((1, 2),)),))],
            [sentence("a", "xy")],
            "sentence 'a': an entity of type 'T' is white space only, which cannot be compared with another tokenisation",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_paired_is_named(gold: list[Sentence], predicted: list[Sentence], message: str) -> None:
    with pytest.raises(SpanwiseError) as error:
        pair(gold, predicted)
    assert str(error.value) == message
