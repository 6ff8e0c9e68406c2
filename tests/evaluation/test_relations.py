"""Scores of relations, computed by hand."""

from __future__ import annotations

import pytest

from spanwise import Entity, Link, Relation, Sentence
from spanwise.evaluation import Score, evaluate
from spanwise.evaluation.relations import micro_relations, scored_relations
from spanwise.evaluation.tasks import MIN_RELATIONS, EntityTask

WORDS = tuple("abcdefgh")
A, B, C = Entity("Org", ((0, 2),)), Entity("Place", ((3, 4),)), Entity("Place", ((5, 6),))
A_RETYPED = Entity("Person", ((0, 2),))
B_WIDER = Entity("Place", ((3, 5),))


def test_strict_and_boundaries_only() -> None:
    gold = [
        Sentence("1", WORDS, (A, B, C), (Relation("based", 0, 1), Relation("based", 0, 2), Relation("near", 1, 2))),
        Sentence("2", WORDS, (A, B), (Relation("based", 0, 1),)),
    ]
    predicted = [
        Sentence(
            "1",
            WORDS,
            (C, A, B, A_RETYPED, A),
            (
                Relation("based", 1, 2),  # correct; the entities are in another order
                Relation("based", 4, 2),  # a duplicate, by a duplicate of its head: counts once
                Relation("based", 3, 0),  # the head has another type: correct by boundaries only
                Relation("near", 0, 2),  # wrong direction
            ),
        ),
        Sentence("2", WORDS, (A, B_WIDER), (Relation("based", 0, 1), Relation("owns", 1, 0))),  # wrong boundaries; wrong type
    ]
    relations = evaluate(gold, predicted).relations
    assert relations is not None
    # strict: 4 in gold; 5 predicted (based 1-2, based 3-0, near, based, owns); 1 correct
    assert relations.strict.types == {"based": Score(3, 3, 1), "near": Score(1, 1, 0), "owns": Score(0, 1, 0)}
    assert relations.strict.micro == Score(4, 5, 1)
    # macro over gold's two types: (1/3 + 0) / 2, because P = R = F1 = 1/3 for "based"
    macro = relations.strict.macro
    assert (macro.precision, macro.recall, macro.f1, macro.types) == (pytest.approx(1 / 6),) * 3 + (2,)
    assert relations.boundaries.types == {"based": Score(3, 3, 2), "near": Score(1, 1, 0), "owns": Score(0, 1, 0)}
    assert relations.boundaries.micro == Score(4, 5, 2)
    assert relations.to_json()["strict"]["micro"]["f1"] == pytest.approx(2 * 1 / (4 + 5))
    assert relations.to_json()["boundaries"]["types"]["based"]["recall"] == pytest.approx(2 / 3)


def test_relations_may_be_equal_by_boundaries() -> None:
    gold = [Sentence("1", WORDS, (A, B, A_RETYPED), (Relation("r", 0, 1), Relation("r", 2, 1)))]
    relations = evaluate(gold, gold).relations
    assert relations is not None
    assert relations.strict.micro == Score(2, 2, 2)
    assert relations.boundaries.micro == Score(1, 1, 1)


def test_links_in_documents_with_the_same_name() -> None:
    """Links stay within their document, for any order of the sentences."""
    first = [
        Sentence("1", WORDS, (A,), links=(Link("near", 0, 1, 1),), document="d", position=0),
        Sentence("2", WORDS, (A, B), document="d", position=1),
    ]
    second = [
        Sentence("3", WORDS, (A,), links=(Link("near", 0, 1, 0),), document="d", position=0),
        Sentence("4", WORDS, (C,), document="d", position=1),
    ]
    for gold in ([*first, *second], [*second, *first], first[::-1]):
        relations = evaluate(gold, gold).relations
        links = sum(len(sentence.links) for sentence in gold)
        assert relations is not None
        assert relations.strict.micro == Score(links, links, links)


def test_relations_are_not_scored_if_none_are_predicted() -> None:
    gold = [Sentence("1", WORDS, (A, B), (Relation("r", 0, 1), Relation("s", 0, 1)))]
    evaluation = evaluate(gold, [Sentence("1", WORDS, (A, B))])
    assert evaluation.relations is None
    assert evaluation.f1 == 1
    assert evaluation.notes == ("relations are not scored: the predictions have none (gold has 2)",)
    assert evaluation.to_json()["relations"] is None


def test_relations_are_not_scored_if_gold_has_none() -> None:
    predicted = [Sentence("1", WORDS, (A, B), (Relation("r", 0, 1),))]
    evaluation = evaluate([Sentence("1", WORDS, (A, B))], predicted)
    assert evaluation.relations is None
    assert evaluation.notes == ("relations are not scored: gold has none (the predictions have 1)",)


def test_relations_of_a_missing_sentence_count_as_missed() -> None:
    gold = [Sentence(id, WORDS, (A, B), (Relation("r", 0, 1),)) for id in ("1", "2")]
    relations = evaluate(gold, gold[1:]).relations
    assert relations is not None
    assert relations.strict.micro == Score(2, 1, 1)


def in_document(id: str, position: int, *entities: Entity, links: tuple[Link, ...] = ()) -> Sentence:
    return Sentence(id, WORDS, entities, links=links, document="d", position=position)


def test_relations_across_sentences_are_compared_by_their_entities() -> None:
    gold = [
        in_document("1", 0, A, links=(Link("same", 0, 1, 1), Link("same", 0, 1, 0))),
        in_document("2", 1, B, C),
    ]
    predicted = [
        # C is entity 0 here. Two links are unresolved: to a missing sentence and to a missing entity.
        in_document("1", 5, A, links=(Link("same", 0, 6, 0), Link("same", 0, 9, 0), Link("same", 0, 6, 7))),
        in_document("2", 6, C),
    ]
    relations = evaluate(gold, predicted).relations
    assert relations is not None
    assert relations.strict.micro == Score(2, 3, 1)


def test_unresolved_links_are_never_correct() -> None:
    sentences = [in_document("1", 0, A, links=(Link("same", 0, 3, 0),))]
    relations = evaluate(sentences, sentences).relations
    assert relations is not None
    assert relations.strict.micro == Score(1, 1, 0)


def test_last_words_compare_the_ends_of_entities() -> None:
    longer, shifted = Entity("Org", ((1, 2),)), Entity("Place", ((3, 5),))
    gold = [Sentence("1", WORDS, (A, B, C), (Relation("r", 0, 1), Relation("r", 1, 2)))]
    predicted = [Sentence("1", WORDS, (longer, B, shifted, C), (Relation("r", 0, 1), Relation("r", 2, 3)))]
    assert evaluate(gold, predicted).relations == evaluate(gold, predicted, last_words=False).relations
    relations = evaluate(gold, predicted, last_words=True).relations
    assert relations is not None
    assert relations.boundaries.micro == Score(2, 2, 0)
    assert relations.last_words is not None
    # The first relation has the last words of gold (1 and 3); the second does not (4 instead of 3).
    assert relations.last_words.micro == Score(2, 2, 1)
    assert relations.to_json()["last_words"]["types"]["r"]["correct"] == 1
    without = evaluate(gold, predicted).relations
    assert without is not None
    assert "last_words" not in without.to_json()


def test_a_relation_system_without_predictions_scores_zero() -> None:
    gold = [Sentence("1", WORDS, (A, B), (Relation("r", 0, 1),))]
    evaluation = evaluate(gold, [Sentence("1", WORDS, (A, B))], finds_relations=True)
    assert evaluation.relations is not None
    assert evaluation.relations.strict.micro == Score(1, 0, 0)
    assert not any("relations are not scored" in note for note in evaluation.notes)


def test_micro_relations_and_scored_relations() -> None:
    gold = [Sentence("1", WORDS, (A, B), (Relation("r", 0, 1),)), Sentence("2", WORDS, (A, B, C), (Relation("r", 1, 2),))]
    predicted = [
        Sentence("1", WORDS, (B, A), (Relation("r", 1, 0, score=0.9), Relation("s", 1, 0, score=0.4))),
        Sentence("2", WORDS, (A, B_WIDER, C), (Relation("r", 1, 2, score=0.7),)),
    ]
    assert micro_relations(gold, predicted) == Score(2, 3, 1)
    assert list(scored_relations(gold, predicted)) == [(0.9, True), (0.4, False), (0.7, False)]


def test_links_in_documents_with_the_same_name_and_a_missing_prediction() -> None:
    word = (Entity("X", ((0, 1),)),)

    def sentence(number: int, position: int, *links: Link) -> Sentence:
        return Sentence(f"s{number}", (f"w{number}",), word, links=links, document="d", position=position)

    gold = [sentence(0, 0), sentence(1, 1), sentence(2, 0, Link("R", 0, 1, 0)), sentence(3, 1)]  # two documents named d
    relations = evaluate(gold, gold[1:]).relations
    assert relations is not None
    assert relations.strict.micro.correct == 1


@pytest.mark.parametrize("related", [1, MIN_RELATIONS])
def test_few_relations_do_not_select_an_epoch(related: int) -> None:
    """The first epoch has the relations right and half of the entities, the second has all entities and no relation."""
    relations = (Relation("based", 0, 1),)
    gold = [Sentence(str(n), WORDS, (A, B), relations if n < related else ()) for n in range(2 * MIN_RELATIONS)]
    first = [sentence if n < MIN_RELATIONS else Sentence(sentence.id, WORDS) for n, sentence in enumerate(gold)]
    second = [Sentence(sentence.id, WORDS, sentence.entities) for sentence in gold]
    task = EntityTask(finds_relations=True)
    scores = [task.selection_score(task.score_dev(gold, predicted)) for predicted in (first, second)]
    assert scores == pytest.approx([2 / 3, 1.0] if related == 1 else [5 / 6, 0.5])
