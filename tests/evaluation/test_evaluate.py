"""A whole evaluation, every number worked out by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spanwise import Entity, Sentence
from spanwise.evaluation import Evaluation, evaluate
from spanwise.formats import Ledger
from spanwise.formats.jsonl import read


def words(count: int) -> tuple[str, ...]:
    return tuple(f"w{number}" for number in range(count))


def entity(type: str, *fragments: tuple[int, int]) -> Entity:
    return Entity(type, fragments)  # type: ignore[arg-type]


GOLD = [
    # One Protein in another's range, and a DNA given twice, which counts once: 3 entities.
    Sentence("s1", words(8), (entity("Protein", (0, 4)), entity("Protein", (1, 3)), *[entity("DNA", (5, 7))] * 2)),
    # One discontinuous, and a Cell with the words between: 2 entities.
    Sentence("s2", words(9), (entity("DNA", (0, 1), (3, 5)), entity("Cell", (6, 8)))),
    Sentence("s3", words(4), (entity("Protein", (0, 2)),)),  # not predicted: 1 miss
    Sentence("s4", words(3)),
]
PREDICTED = [
    # Right: Protein[1,3). Wrong: Protein[0,3) for [0,4), and DNA's words as a Cell. 3 predicted, 1 right.
    Sentence("s1", words(8), (entity("Protein", (0, 3)), entity("Protein", (1, 3)), entity("Cell", (5, 7)))),
    # Right: both, the Cell given twice. Wrong: DNA with the gap closed. 3 predicted, 2 right.
    Sentence("s2", words(9), (entity("DNA", (0, 1), (3, 5)), *[entity("Cell", (6, 8))] * 2, entity("DNA", (0, 5)))),
    Sentence("s4", words(3), (entity("RNA", (0, 1)),)),  # 1 predicted, a type gold does not have
]


@pytest.fixture(scope="module")
def evaluation() -> Evaluation:
    train = [replace(GOLD[0], id="t1"), Sentence("t2", ("other",))]
    return evaluate(GOLD, PREDICTED, train)


def score(support: int, predicted: int, correct: int) -> dict[str, Any]:
    """The three numbers from the three counts, by the textbook."""
    return {
        "precision": pytest.approx(correct / predicted if predicted else 0),
        "recall": pytest.approx(correct / support if support else 0),
        "f1": pytest.approx(2 * correct / (support + predicted) if correct else 0),
        "support": support,
        "predicted": predicted,
        "correct": correct,
    }


def test_strict(evaluation: Evaluation) -> None:
    result = evaluation.to_json()
    assert result["types"] == {
        "Protein": score(3, 2, 1),  # gold [0,4) [1,3) [0,2); predicted [0,3) [1,3)
        "DNA": score(2, 2, 1),  # gold [5,7) and the broken one; predicted the broken one and [0,5)
        "Cell": score(1, 2, 1),
        "RNA": score(0, 1, 0),
    }
    assert list(result["types"]) == ["Protein", "DNA", "Cell", "RNA"], "most support first"
    assert result["micro"] == score(3 + 2 + 1, 2 + 2 + 2 + 1, 1 + 1 + 1)
    assert evaluation.f1 == pytest.approx(2 * 3 / (6 + 7))
    assert result["macro"] == {
        "precision": pytest.approx((1 / 2 + 1 / 2 + 1 / 2) / 3),
        "recall": pytest.approx((1 / 3 + 1 / 2 + 1) / 3),
        "f1": pytest.approx((2 / 5 + 2 / 4 + 2 / 3) / 3),
        "types": 3,
    }


def test_unlabelled_adds_the_words_with_another_type(evaluation: Evaluation) -> None:
    assert evaluation.to_json()["unlabelled"] == score(6, 7, 3 + 1)


def test_relaxed(evaluation: Evaluation) -> None:
    # Of the predictions Protein[0,3), Protein[1,3), both DNA and Cell[6,8) share words with one of their type: 5 of 7.
    # Of gold, Protein[0,4) and [1,3), the broken DNA and the Cell: 4 of 6.
    expected = {**score(6, 7, 5), "recall": pytest.approx(4 / 6), "found": 4}
    expected["f1"] = pytest.approx(2 * (5 / 7) * (4 / 6) / (5 / 7 + 4 / 6))
    assert evaluation.to_json()["relaxed"] == expected


def test_discontinuous_and_nested(evaluation: Evaluation) -> None:
    result = evaluation.to_json()
    assert result["discontinuous"] == score(1, 1, 1)
    # Gold: Protein[1,3). Predicted inside another: Protein[1,3), right. DNA[0,1)+[3,5) has the range of DNA[0,5): not inside.
    assert result["nested"] == score(1, 1, 1)


def test_unseen_sentences(evaluation: Evaluation) -> None:
    # s1 is in train. s2, s3 and s4 are not: gold 2 + 1 + 0, predicted 3 + 0 + 1, right 2.
    assert evaluation.to_json()["unseen_sentences"] == {**score(3, 4, 2), "sentences": 3}


def test_confusion(evaluation: Evaluation) -> None:
    assert evaluation.to_json()["confusion"] == {
        "counts": {"Cell": {"Cell": 1}, "DNA": {"Cell": 1, "DNA": 1}, "Protein": {"Protein": 1}},
        "missed": {"Protein": 2},
        "spurious": {"DNA": 1, "Protein": 1, "RNA": 1},
    }


def test_the_rest(evaluation: Evaluation) -> None:
    result = evaluation.to_json()
    assert (result["sentences"], result["missing_sentences"], result["paired_by"]) == (4, 1, "id")
    assert result["relations"] is None
    assert result["interval"] is None  # of so few sentences
    assert result["notes"] == [
        "gold sentences that are not in the predictions, and whose entities count as misses: 1 of 4 (the first is 's3')",
        "the predictions have types that gold does not have: RNA",
    ]
    assert json.loads(json.dumps(result)) == result


def test_enough_sentences_have_an_interval(evaluation: Evaluation) -> None:
    often = [[replace(s, id=f"{n}-{s.id}") for n in range(10) for s in side] for side in (GOLD, PREDICTED)]
    result = evaluate(*often)
    assert result.f1 == evaluation.f1
    interval = result.to_json()["interval"]
    assert 0 <= interval["low"] < evaluation.f1 < interval["high"] <= 1


def test_what_gold_does_not_have_is_null() -> None:
    flat = [Sentence("a", words(3), (entity("X", (0, 1)),))]
    nesting = [Sentence("a", words(3), (entity("X", (0, 2)), entity("X", (0, 1)), entity("X", (0, 1), (2, 3))))]
    result = evaluate(flat, nesting).to_json()
    for name in ("discontinuous", "nested", "unseen_sentences", "relations"):
        assert result[name] is None, name
    assert result["micro"] == score(1, 3, 1)


def test_nothing_in_gold_and_nothing_predicted() -> None:
    result = evaluate([Sentence("a", words(3))], [Sentence("a", words(3))]).to_json()
    assert result["micro"] == score(0, 0, 0)
    assert result["macro"] == {"precision": 0, "recall": 0, "f1": 0, "types": 0}
    assert (result["types"], result["interval"], result["notes"]) == ({}, None, [])
    assert evaluate([], []).to_json()["sentences"] == 0


def test_no_predictions_at_all_miss_everything() -> None:
    result = evaluate(GOLD, []).to_json()
    assert result["micro"] == score(6, 0, 0)
    assert result["missing_sentences"] == 4


def test_entities_too_wide_to_be_found_are_misses() -> None:
    """The denominator is what gold has, whatever a system can reach."""
    gold = [Sentence("a", words(600), (entity("X", (0, 500)), entity("X", (590, 600)), entity("X", (3, 4))))]
    found = [Sentence("a", words(600), (entity("X", (3, 4)),))]
    assert evaluate(gold, found).entities.micro.support == 3
    assert evaluate(gold, found).entities.micro.recall == pytest.approx(1 / 3)


def test_streams_are_enough() -> None:
    assert evaluate(iter(GOLD), iter(PREDICTED), iter(GOLD)).unseen is not None
    assert evaluate(iter(GOLD), iter(GOLD)).f1 == 1


def test_other_words_for_the_same_text() -> None:
    gold = [Sentence("a", ("Oslo", ",", "Norway"), (entity("Place", (0, 1)), entity("Place", (2, 3))), text="Oslo, Norway")]
    found = [Sentence("a", ("Oslo,", "Norway"), (entity("Place", (0, 1)), entity("Place", (1, 2))))]
    evaluation = evaluate(gold, found, train=gold)
    # "Oslo," is not "Oslo", "Norway" is "Norway"; of the relaxed score both are found.
    assert evaluation.to_json()["micro"] == score(2, 2, 1)
    assert evaluation.relaxed.f1 == 1
    assert evaluation.notes == ("sentences with other words than gold but the same text, compared by characters: 1",)
    assert evaluation.unseen is not None
    assert evaluation.unseen.sentences == 0, "train is compared with gold's own words"


def test_sentences_compared_together_are_unseen_when_one_of_them_is() -> None:
    gold = [Sentence("a", ("Oslo",), (entity("Place", (0, 1)),)), Sentence("b", ("Cairo",), (entity("Place", (0, 1)),))]
    found = [Sentence("a", ("Oslo", "Cairo"), (entity("Place", (1, 2)),))]
    evaluation = evaluate(gold, found, train=gold[:1])
    assert evaluation.to_json()["unseen_sentences"] == {**score(2, 1, 1), "sentences": 2}
    assert evaluation.notes == (
        "the sentences are paired in order, for their ids do not fit; all have the same text",
        "sentences that the predictions cut elsewhere, compared together with their neighbours: 2",
    )
    assert evaluate(gold, found, train=gold).to_json()["unseen_sentences"] == {**score(0, 0, 0), "sentences": 0}


def test_notes_about_order_and_many_strange_types() -> None:
    gold = [Sentence("g", words(9))]
    found = [Sentence("p", words(9), tuple(entity(f"T{n}", (n, n + 1)) for n in range(7)))]
    assert evaluate(gold, found).notes == (
        "the sentences are paired in order, for their ids do not fit; all have the same text",
        "the predictions have types that gold does not have: T0, T1, T2, T3, T4, …",
    )


def test_real_corpora_agree_with_themselves_and_share_sentences_with_train(shared_data: Path) -> None:
    test, train = (list(read(shared_data / "conll04" / f"{split}.jsonl", Ledger())) for split in ("test", "train"))
    evaluation = evaluate(test, test, train)
    assert evaluation.f1 == evaluation.entities.macro.f1 == 1
    assert evaluation.relations is not None
    assert evaluation.relations.strict.micro.f1 == evaluation.relations.boundaries.micro.f1 == 1
    lines = (shared_data / "conll04" / "test.jsonl").read_text(encoding="utf-8").splitlines()
    assert evaluation.entities.micro.support == sum(
        len({(e["type"], str(e["spans"])) for e in json.loads(line)["entities"]}) for line in lines
    )
    assert evaluation.unseen is not None
    assert evaluation.sentences - evaluation.unseen.sentences == 18
