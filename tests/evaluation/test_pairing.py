"""Pairing of predicted and gold sentences."""

from __future__ import annotations

import pytest

from spanwise import Entity, Link, Relation, Sentence, Span, SpanwiseError
from spanwise.evaluation.alignment import SentencePair, align_sentences, to_characters
from spanwise.evaluation.pairing import Pairing, pair


def sentence(id: str, text: str, *entities: Entity) -> Sentence:
    return Sentence(id, tuple(text.split()), entities)


def in_document(id: str, document: str, position: int, text: str, *entities: Entity) -> Sentence:
    return Sentence(id, tuple(text.split()), entities, document=document, position=position)


def predicted_in(pairing: Pairing) -> list[Sentence | None]:
    return [pair.predicted for pair in pairing.pairs]


OSLO = Entity("Place", ((0, 1),))


def test_sentences_are_paired_by_id_in_the_order_of_gold() -> None:
    gold = [sentence("a", "Oslo is cold"), sentence("b", "Cairo is hot")]
    predicted = [sentence("b", "Cairo is hot", OSLO), sentence("a", "Oslo is cold")]
    pairing = pair(gold, predicted)
    assert pairing.pairs == (SentencePair(gold[0], predicted[1], (gold[0],)), SentencePair(gold[1], predicted[0], (gold[1],)))
    assert (pairing.by, pairing.sentences, pairing.missing, pairing.retokenised, pairing.resegmented) == ("id", 2, (), 0, 0)


def test_duplicate_ids_are_paired_in_order() -> None:
    gold = [sentence("a", "one"), sentence("b", "x"), sentence("a", "two"), sentence("a", "three")]
    predicted = [sentence("a", "one"), sentence("a", "two"), sentence("b", "x")]
    pairing = pair(gold, predicted)
    assert predicted_in(pairing) == [predicted[0], predicted[2], predicted[1], None]
    assert (pairing.missing, pairing.resegmented) == (("a",), 0)


def test_missing_predictions() -> None:
    assert pair([sentence("a", "x"), sentence("b", "y")], []).missing == ("a", "b")
    assert pair([], []).pairs == ()


def test_sentences_without_common_ids_are_paired_in_order() -> None:
    gold = [sentence("g-7", "Oslo is cold"), sentence("g-9", "Cairo is hot")]
    predicted = [sentence("p-1", "Oslo is cold", OSLO), sentence("p-2", "Cairo is hot")]
    pairing = pair(gold, predicted)
    assert pairing.by == "order"
    assert predicted_in(pairing) == predicted


def test_shifted_ids_are_paired_in_order() -> None:
    """Gold is numbered from 0; the predictions were read from a format without ids and numbered from 1."""
    gold = [sentence("test-0", "Oslo is cold"), sentence("test-1", "Cairo is hot")]
    predicted = [sentence("test-1", "Oslo is cold", OSLO), sentence("test-2", "Cairo is hot")]
    pairing = pair(gold, predicted)
    assert pairing.by == "order"
    assert predicted_in(pairing) == predicted


def test_equal_words_match_despite_different_texts() -> None:
    gold = [Sentence("g", ("Oslo", "cold"), text="Oslo * cold"), sentence("h", "x")]
    predicted = [sentence("p", "Oslo cold"), sentence("q", "x")]
    assert predicted_in(pair(gold, predicted)) == predicted


def test_different_tokenisations_are_compared_by_characters() -> None:
    gold = Sentence("a", ("NF", "-", "kappa", "B", "binds"), (Entity("Protein", ((0, 4),)),), text="NF-kappa B binds\n")
    predicted = Sentence("a", ("NF-kappa", "B", "binds"), (Entity("Protein", ((0, 2),)),))
    pairing = pair([gold], [predicted])
    assert (pairing.retokenised, pairing.resegmented) == (1, 0)
    (sentence_pair,) = pairing.pairs
    assert sentence_pair.originals == (gold,)
    assert sentence_pair.predicted is not None
    assert sentence_pair.gold.words == sentence_pair.predicted.words == tuple("NF-kappaBbinds")
    assert sentence_pair.gold.entities == sentence_pair.predicted.entities == (Entity("Protein", ((0, 9),)),)


def test_to_characters_keeps_fragments_and_relations() -> None:
    original = Sentence(
        "a",
        ("lung", "and", "liver", "cancer"),
        (Entity("Disease", ((0, 1), (3, 4)), score=0.5), Entity("Organ", ((2, 3),))),
        (Relation("in", 0, 1),),
        text="lung  and liver\u3000cancer",
    )
    result = to_characters([original])
    assert result.words == tuple("lungandlivercancer")
    assert [e.fragments for e in result.entities] == [(Span(0, 4), Span(12, 18)), (Span(7, 12),)]
    assert result.entities[0].score == 0.5
    assert result.relations == original.relations


def test_to_characters_ignores_white_space_words() -> None:
    spaced = Sentence("a", ("x", " ", "y"), (Entity("T", ((0, 1), (2, 3))),))
    assert to_characters([spaced]).entities == (Entity("T", ((0, 2),)),)


def test_to_characters_joins_sentences() -> None:
    first = Sentence("a", ("Oslo", "is"), (OSLO,), document="d", position=0)
    second = Sentence(
        "b", ("in", "Norway"), (Entity("Place", ((1, 2),)), Entity("X", ((0, 1),))), (Relation("r", 1, 0),),
        (Link("back", 0, 0, 0),), document="d", position=1,
    )  # fmt: skip
    joined = to_characters([first, second])
    assert joined.words == tuple("OsloisinNorway")
    assert joined.entities == (Entity("Place", ((0, 4),)), Entity("Place", ((8, 14),)), Entity("X", ((6, 8),)))
    assert joined.relations == (Relation("r", 2, 1),)
    assert [link.head for link in joined.links] == [1]


def test_differently_split_sentences_are_paired_together() -> None:
    """Character annotations are split into sentences around their entities, so different entities give different sentences."""
    gold = [sentence("g-0", "Oslo is", OSLO), sentence("g-1", "cold ."), sentence("g-2", "Snow ."), sentence("g-3", "Ice .")]
    predicted = [sentence("g-0", "Oslo is cold."), sentence("g-1", "Snow ."), sentence("g-2", "Ice"), sentence("g-3", ".")]
    pairing = pair(gold, predicted)
    assert (pairing.by, pairing.sentences, pairing.retokenised, pairing.resegmented) == ("order", 4, 0, 3)
    assert [[s.id for s in p.originals] for p in pairing.pairs] == [["g-0", "g-1"], ["g-2"], ["g-3"]]
    assert [p.gold.words for p in pairing.pairs] == [tuple("Osloiscold."), ("Snow", "."), tuple("Ice.")]
    assert all(p.predicted is not None and p.gold.words == p.predicted.words for p in pairing.pairs)
    assert pairing.pairs[0].gold.entities == (Entity("Place", ((0, 4),)),)


def test_documents_are_paired_if_ids_and_order_differ() -> None:
    gold = [in_document("a-0", "a", 0, "One ."), in_document("a-1", "a", 1, "Two ."), in_document("b-0", "b", 0, "Three .")]
    gold += [in_document("c-0", "c", 0, "Four .")]
    predicted = [in_document("c-0", "c", 0, "Four ."), in_document("a-0", "a", 0, "One . Two .")]
    pairing = pair(gold, predicted)
    assert (pairing.by, pairing.missing, pairing.resegmented) == ("document", ("b-0",), 2)
    assert [[s.id for s in p.originals] for p in pairing.pairs] == [["a-0", "a-1"], ["b-0"], ["c-0"]]
    assert predicted_in(pairing)[1:] == [None, predicted[0]]


def test_empty_sentences() -> None:
    empty = Sentence("e", ())
    groups = align_sentences([empty, sentence("a", "x"), empty], [sentence("b", "x"), empty, empty, empty])
    assert [(len(g.gold), len(g.predicted or ())) for g in groups] == [(2, 1), (1, 3)]
    groups = align_sentences([sentence("a", "x")], [sentence("b", "x"), empty, empty])
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
            "sentence 'b': the prediction has other words than gold: expected 'cold' at word 1, found 'hot'",
        ),
        (
            [sentence("a", "x y z")],
            [sentence("a", "x y")],
            "sentence 'a': expected 3 words as in gold, found 2 in the prediction",
        ),
        (
            [sentence("a", "x")],
            [sentence("a", "x y")],
            "sentence 'a': expected 1 word as in gold, found 2 in the prediction",
        ),
        (
            [sentence("a", "x"), sentence("b", "y")],
            [sentence("p-1", "x")],
            "gold has none of the predictions' ids (first: 'p-1'), and they cannot be paired in order: "
            "expected 2 sentences as in gold, found 1",
        ),
        (
            [sentence("a", "x"), sentence("b", "y")],
            [sentence("p-1", "x"), sentence("p-2", "z")],
            "gold has none of the predictions' ids (first: 'p-1'), and they cannot be paired in order: "
            "sentence 2 ('b' in gold): the prediction has other words than gold: expected 'y' at word 0, found 'z'",
        ),
        (
            [in_document("a", "d", 0, "x"), in_document("b", "d", 1, "y"), in_document("e", "e", 0, "z")],
            [in_document("a", "d", 0, "x y"), in_document("c", "empty", 0, "")],
            "predicted sentence 'c' is not in gold; predictions are paired with gold by id",
        ),
        (
            [in_document("a", "d", 0, "x y"), in_document("b", "e", 0, "y")],
            [in_document("a", "d", 0, "x")],
            "sentence 'a': expected 2 words as in gold, found 1 in the prediction",
        ),
        (
            [],
            [Sentence("a", ())],
            "gold has none of the predictions' ids (first: 'a'), and they cannot be paired in order: "
            "expected 0 sentences as in gold, found 1",
        ),
        (
            [Sentence("a", ("x", " ", "y"), (Entity("T", ((1, 2),)),))],
            [sentence("a", "xy")],
            "sentence 'a': an entity of type 'T' consists of white space only and cannot be compared with another tokenisation",
        ),
    ],
)  # fmt: skip
def test_pairing_errors(gold: list[Sentence], predicted: list[Sentence], message: str) -> None:
    with pytest.raises(SpanwiseError) as error:
        pair(gold, predicted)
    assert str(error.value) == message
