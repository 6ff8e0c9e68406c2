"""Which predicted sentence belongs to which gold sentence."""

from __future__ import annotations

import pytest

from spanwise import Entity, Link, Relation, Sentence, Span, SpanwiseError
from spanwise.evaluation.alignment import Pair, in_characters, in_step
from spanwise.evaluation.pairing import Pairing, pair


def sentence(id: str, text: str, *entities: Entity) -> Sentence:
    return Sentence(id, tuple(text.split()), entities)


def in_document(id: str, document: str, position: int, text: str, *entities: Entity) -> Sentence:
    return Sentence(id, tuple(text.split()), entities, document=document, position=position)


def predicted_in(pairing: Pairing) -> list[Sentence | None]:
    return [pair.predicted for pair in pairing.pairs]


OSLO = Entity("Place", ((0, 1),))


def test_ids_pair_sentences_in_any_order_and_gold_gives_the_order() -> None:
    gold = [sentence("a", "Oslo is cold"), sentence("b", "Cairo is hot")]
    predicted = [sentence("b", "Cairo is hot", OSLO), sentence("a", "Oslo is cold")]
    pairing = pair(gold, predicted)
    assert pairing.pairs == (Pair(gold[0], predicted[1], (gold[0],)), Pair(gold[1], predicted[0], (gold[1],)))
    assert (pairing.by, pairing.sentences, pairing.missing, pairing.retokenised, pairing.recut) == ("id", 2, (), 0, 0)


def test_a_shared_id_is_paired_in_order_of_occurrence() -> None:
    gold = [sentence("a", "one"), sentence("b", "x"), sentence("a", "two"), sentence("a", "three")]
    predicted = [sentence("a", "one"), sentence("a", "two"), sentence("b", "x")]
    pairing = pair(gold, predicted)
    assert predicted_in(pairing) == [predicted[0], predicted[2], predicted[1], None]
    assert (pairing.missing, pairing.recut) == (("a",), 0)


def test_an_empty_prediction_misses_everything() -> None:
    assert pair([sentence("a", "x"), sentence("b", "y")], []).missing == ("a", "b")
    assert pair([], []).pairs == ()


def test_ids_that_fit_nothing_leave_the_order() -> None:
    gold = [sentence("g-7", "Oslo is cold"), sentence("g-9", "Cairo is hot")]
    predicted = [sentence("p-1", "Oslo is cold", OSLO), sentence("p-2", "Cairo is hot")]
    pairing = pair(gold, predicted)
    assert pairing.by == "order"
    assert predicted_in(pairing) == predicted


def test_numbers_that_are_off_by_one_leave_the_order() -> None:
    """A corpus numbered from 0, written to a format without ids, read and numbered from 1."""
    gold = [sentence("test-0", "Oslo is cold"), sentence("test-1", "Cairo is hot")]
    predicted = [sentence("test-1", "Oslo is cold", OSLO), sentence("test-2", "Cairo is hot")]
    pairing = pair(gold, predicted)
    assert pairing.by == "order"
    assert predicted_in(pairing) == predicted


def test_words_decide_where_texts_have_more_than_the_words() -> None:
    gold = [Sentence("g", ("Oslo", "cold"), text="Oslo * cold"), sentence("h", "x")]
    predicted = [sentence("p", "Oslo cold"), sentence("q", "x")]
    assert predicted_in(pair(gold, predicted)) == predicted


def test_other_words_for_the_same_text_are_compared_by_characters() -> None:
    gold = Sentence("a", ("NF", "-", "kappa", "B", "binds"), (Entity("Protein", ((0, 4),)),), text="NF-kappa B binds\n")
    found = Sentence("a", ("NF-kappa", "B", "binds"), (Entity("Protein", ((0, 2),)),))
    pairing = pair([gold], [found])
    assert (pairing.retokenised, pairing.recut) == (1, 0)
    (both,) = pairing.pairs
    assert both.originals == (gold,)
    assert both.predicted is not None
    assert both.gold.words == both.predicted.words == tuple("NF-kappaBbinds")
    assert both.gold.entities == both.predicted.entities == (Entity("Protein", ((0, 9),)),)


def test_characters_keep_fragments_and_relations() -> None:
    original = Sentence(
        "a",
        ("lung", "and", "liver", "cancer"),
        (Entity("Disease", ((0, 1), (3, 4)), score=0.5), Entity("Organ", ((2, 3),))),
        (Relation("in", 0, 1),),
        text="lung  and liver\u3000cancer",
    )
    found = in_characters([original])
    assert found.words == tuple("lungandlivercancer")
    assert [e.fragments for e in found.entities] == [(Span(0, 4), Span(12, 18)), (Span(7, 12),)]
    assert found.entities[0].score == 0.5
    assert found.relations == original.relations


def test_a_gap_of_white_space_words_is_no_gap_between_characters() -> None:
    spaced = Sentence("a", ("x", " ", "y"), (Entity("T", ((0, 1), (2, 3))),))
    assert in_characters([spaced]).entities == (Entity("T", ((0, 2),)),)


def test_several_sentences_become_one() -> None:
    first = Sentence("a", ("Oslo", "is"), (OSLO,), document="d", position=0)
    second = Sentence(
        "b", ("in", "Norway"), (Entity("Place", ((1, 2),)), Entity("X", ((0, 1),))), (Relation("r", 1, 0),),
        (Link("back", 0, 0, 0),), document="d", position=1,
    )  # fmt: skip
    joined = in_characters([first, second])
    assert joined.words == tuple("OsloisinNorway")
    assert joined.entities == (Entity("Place", ((0, 4),)), Entity("Place", ((8, 14),)), Entity("X", ((6, 8),)))
    assert joined.relations == (Relation("r", 2, 1),)
    assert [link.head for link in joined.links] == [1]


def test_sentences_cut_elsewhere_are_compared_together() -> None:
    """Annotations by characters are cut into sentences around their entities, so that other entities make other sentences."""
    gold = [sentence("g-0", "Oslo is", OSLO), sentence("g-1", "cold ."), sentence("g-2", "Snow ."), sentence("g-3", "Ice .")]
    predicted = [sentence("g-0", "Oslo is cold."), sentence("g-1", "Snow ."), sentence("g-2", "Ice"), sentence("g-3", ".")]
    pairing = pair(gold, predicted)
    assert (pairing.by, pairing.sentences, pairing.retokenised, pairing.recut) == ("order", 4, 0, 3)
    assert [[s.id for s in p.originals] for p in pairing.pairs] == [["g-0", "g-1"], ["g-2"], ["g-3"]]
    assert [p.gold.words for p in pairing.pairs] == [tuple("Osloiscold."), ("Snow", "."), tuple("Ice.")]
    assert all(p.predicted is not None and p.gold.words == p.predicted.words for p in pairing.pairs)
    assert pairing.pairs[0].gold.entities == (Entity("Place", ((0, 4),)),)


def test_documents_pair_what_neither_ids_nor_order_do() -> None:
    gold = [in_document("a-0", "a", 0, "One ."), in_document("a-1", "a", 1, "Two ."), in_document("b-0", "b", 0, "Three .")]
    gold += [in_document("c-0", "c", 0, "Four .")]
    predicted = [in_document("c-0", "c", 0, "Four ."), in_document("a-0", "a", 0, "One . Two .")]
    pairing = pair(gold, predicted)
    assert (pairing.by, pairing.missing, pairing.recut) == ("document", ("b-0",), 2)
    assert [[s.id for s in p.originals] for p in pairing.pairs] == [["a-0", "a-1"], ["b-0"], ["c-0"]]
    assert predicted_in(pairing)[1:] == [None, predicted[0]]


def test_sentences_without_words_do_no_harm() -> None:
    empty = Sentence("e", ())
    groups = in_step([empty, sentence("a", "x"), empty], [sentence("b", "x"), empty, empty, empty])
    assert [(len(g.gold), len(g.predicted or ())) for g in groups] == [(2, 1), (1, 3)]
    groups = in_step([sentence("a", "x")], [sentence("b", "x"), empty, empty])
    assert [(len(g.gold), len(g.predicted or ())) for g in groups] == [(1, 3)]


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
            "sentence 'a': the prediction has 2 instead of 3 words",
        ),
        (
            [sentence("a", "x")],
            [sentence("a", "x y")],
            "sentence 'a': the prediction has 2 instead of 1 words",
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
            [in_document("a", "d", 0, "x"), in_document("b", "d", 1, "y"), in_document("e", "e", 0, "z")],
            [in_document("a", "d", 0, "x y"), in_document("c", "empty", 0, "")],
            "predicted sentence 'c' is not in gold; predictions are paired with gold by id",
        ),
        (
            [in_document("a", "d", 0, "x y"), in_document("b", "e", 0, "y")],
            [in_document("a", "d", 0, "x")],
            "sentence 'a': the prediction has 1 instead of 2 words",
        ),
        (
            [],
            [Sentence("a", ())],
            "no id of the predictions (the first is 'a') occurs in gold, and they cannot be paired in order: "
            "1 predicted, 0 in gold",
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
