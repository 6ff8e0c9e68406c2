"""A complete evaluation, computed by hand."""

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
    # One Protein inside another, and a duplicate DNA, which counts once: 3 entities.
    Sentence("s1", words(8), (entity("Protein", (0, 4)), entity("Protein", (1, 3)), *[entity("DNA", (5, 7))] * 2)),
    # A discontinuous DNA and a Cell: 2 entities.
    Sentence("s2", words(9), (entity("DNA", (0, 1), (3, 5)), entity("Cell", (6, 8)))),
    Sentence("s3", words(4), (entity("Protein", (0, 2)),)),  # without a prediction: 1 missed
    Sentence("s4", words(3)),
]
PREDICTED = [
    # Correct: Protein[1,3). Wrong: Protein[0,3) instead of [0,4), and Cell on DNA's words. 3 predicted, 1 correct.
    Sentence("s1", words(8), (entity("Protein", (0, 3)), entity("Protein", (1, 3)), entity("Cell", (5, 7)))),
    # Correct: both, the Cell twice. Wrong: DNA without the gap. 3 predicted, 2 correct.
    Sentence("s2", words(9), (entity("DNA", (0, 1), (3, 5)), *[entity("Cell", (6, 8))] * 2, entity("DNA", (0, 5)))),
    Sentence("s4", words(3), (entity("RNA", (0, 1)),)),  # 1 predicted, with a type that gold does not have
]


@pytest.fixture(scope="module")
def evaluation() -> Evaluation:
    train = [replace(GOLD[0], id="t1"), Sentence("t2", ("other",))]
    return evaluate(GOLD, PREDICTED, train)


def score(support: int, predicted: int, correct: int) -> dict[str, Any]:
    """Precision, recall and F1 by their definitions."""
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
        "DNA": score(2, 2, 1),  # gold [5,7) and the discontinuous one; predicted the discontinuous one and [0,5)
        "Cell": score(1, 2, 1),
        "RNA": score(0, 1, 0),
    }
    assert list(result["types"]) == ["Protein", "DNA", "Cell", "RNA"], "sorted by support"
    assert result["micro"] == score(3 + 2 + 1, 2 + 2 + 2 + 1, 1 + 1 + 1)
    assert evaluation.f1 == pytest.approx(2 * 3 / (6 + 7))
    assert result["macro"] == {
        "precision": pytest.approx((1 / 2 + 1 / 2 + 1 / 2) / 3),
        "recall": pytest.approx((1 / 3 + 1 / 2 + 1) / 3),
        "f1": pytest.approx((2 / 5 + 2 / 4 + 2 / 3) / 3),
        "types": 3,
    }


def test_unlabelled_ignores_types(evaluation: Evaluation) -> None:
    assert evaluation.to_json()["unlabelled"] == score(6, 7, 3 + 1)


def test_relaxed(evaluation: Evaluation) -> None:
    # Predictions that overlap gold: Protein[0,3), Protein[1,3), both DNA and Cell[6,8): 5 of 7.
    # Gold that overlaps predictions: Protein[0,4) and [1,3), the discontinuous DNA and the Cell: 4 of 6.
    expected = {**score(6, 7, 5), "recall": pytest.approx(4 / 6), "matched_gold": 4}
    expected["f1"] = pytest.approx(2 * (5 / 7) * (4 / 6) / (5 / 7 + 4 / 6))
    assert evaluation.to_json()["relaxed"] == expected


def test_discontinuous_and_nested(evaluation: Evaluation) -> None:
    result = evaluation.to_json()
    assert result["discontinuous"] == score(1, 1, 1)
    # Gold: Protein[1,3). Predicted: Protein[1,3), correct. DNA[0,1)+[3,5) has the range of DNA[0,5), so it is not nested.
    assert result["nested"] == score(1, 1, 1)


def test_unseen_sentences(evaluation: Evaluation) -> None:
    # s1 is in train. s2, s3 and s4 are not: gold 2 + 1 + 0, predicted 3 + 0 + 1, correct 2.
    assert evaluation.to_json()["unseen_sentences"] == {**score(3, 4, 2), "sentences": 3}


def test_confusion(evaluation: Evaluation) -> None:
    assert evaluation.to_json()["confusion"] == {
        "counts": {"Cell": {"Cell": 1}, "DNA": {"Cell": 1, "DNA": 1}, "Protein": {"Protein": 1}},
        "missed": {"Protein": 2},
        "spurious": {"DNA": 1, "Protein": 1, "RNA": 1},
    }


def test_other_fields(evaluation: Evaluation) -> None:
    result = evaluation.to_json()
    assert (result["sentences"], result["missing_sentences"], result["paired_by"]) == (4, 1, "id")
    assert result["relations"] is None
    assert result["interval"] is None  # too few sentences
    assert result["notes"] == [
        "gold sentences without a prediction, whose entities count as missed: 1 of 4 (first: 's3')",
        "predicted types that do not occur in gold: RNA",
    ]
    assert json.loads(json.dumps(result)) == result


def test_interval_of_enough_sentences(evaluation: Evaluation) -> None:
    repeated = [[replace(s, id=f"{n}-{s.id}") for n in range(10) for s in side] for side in (GOLD, PREDICTED)]
    result = evaluate(*repeated)
    assert result.f1 == evaluation.f1
    interval = result.to_json()["interval"]
    assert 0 <= interval["low"] < evaluation.f1 < interval["high"] <= 1


def test_scores_without_gold_entities_are_null() -> None:
    flat = [Sentence("a", words(3), (entity("X", (0, 1)),))]
    nesting = [Sentence("a", words(3), (entity("X", (0, 2)), entity("X", (0, 1)), entity("X", (0, 1), (2, 3))))]
    result = evaluate(flat, nesting).to_json()
    for name in ("discontinuous", "nested", "unseen_sentences", "relations"):
        assert result[name] is None, name
    assert result["micro"] == score(1, 3, 1)


def test_without_entities() -> None:
    result = evaluate([Sentence("a", words(3))], [Sentence("a", words(3))]).to_json()
    assert result["micro"] == score(0, 0, 0)
    assert result["macro"] == {"precision": 0, "recall": 0, "f1": 0, "types": 0}
    assert (result["types"], result["interval"], result["notes"]) == ({}, None, [])
    assert evaluate([], []).to_json()["sentences"] == 0


def test_without_predictions_everything_is_missed() -> None:
    result = evaluate(GOLD, []).to_json()
    assert result["micro"] == score(6, 0, 0)
    assert result["missing_sentences"] == 4


def test_very_wide_entities_count_as_missed() -> None:
    """The denominator is the number of gold entities, even if a system cannot predict some of them."""
    gold = [Sentence("a", words(600), (entity("X", (0, 500)), entity("X", (590, 600)), entity("X", (3, 4))))]
    predicted = [Sentence("a", words(600), (entity("X", (3, 4)),))]
    assert evaluate(gold, predicted).entities.micro.support == 3
    assert evaluate(gold, predicted).entities.micro.recall == pytest.approx(1 / 3)


def test_iterators_are_accepted() -> None:
    assert evaluate(iter(GOLD), iter(PREDICTED), iter(GOLD)).unseen is not None
    assert evaluate(iter(GOLD), iter(GOLD)).f1 == 1


def test_different_tokenisation_of_the_same_text() -> None:
    gold = [Sentence("a", ("Oslo", ",", "Norway"), (entity("Place", (0, 1)), entity("Place", (2, 3))), text="Oslo, Norway")]
    predicted = [Sentence("a", ("Oslo,", "Norway"), (entity("Place", (0, 1)), entity("Place", (1, 2))))]
    evaluation = evaluate(gold, predicted, train=gold)
    # "Oslo," is not "Oslo", "Norway" is "Norway"; both match in the relaxed score.
    assert evaluation.to_json()["micro"] == score(2, 2, 1)
    assert evaluation.relaxed.f1 == 1
    assert evaluation.notes == (
        "sentences tokenised differently from gold, compared by characters: 1",
        "all sentences are also in the training data: the scores on new text may be much lower",
    )
    assert evaluation.unseen is not None
    assert evaluation.unseen.sentences == 0, "train is compared with the original words of gold"


def test_joined_sentences_are_unseen_if_one_of_them_is() -> None:
    gold = [Sentence("a", ("Oslo",), (entity("Place", (0, 1)),)), Sentence("b", ("Cairo",), (entity("Place", (0, 1)),))]
    predicted = [Sentence("a", ("Oslo", "Cairo"), (entity("Place", (1, 2)),))]
    evaluation = evaluate(gold, predicted, train=gold[:1])
    assert evaluation.to_json()["unseen_sentences"] == {**score(2, 1, 1), "sentences": 2}
    assert evaluation.notes == (
        "sentences are paired in order: their ids differ, but their text is the same",
        "sentences split differently from gold, compared together with their neighbours: 2",
    )
    assert evaluate(gold, predicted, train=gold).to_json()["unseen_sentences"] == {**score(0, 0, 0), "sentences": 0}


def test_notes_on_order_and_unknown_types() -> None:
    gold = [Sentence("g", words(9))]
    predicted = [Sentence("p", words(9), tuple(entity(f"T{n}", (n, n + 1)) for n in range(7)))]
    assert evaluate(gold, predicted).notes == (
        "sentences are paired in order: their ids differ, but their text is the same",
        "predicted types that do not occur in gold: T0, T1, T2, T3, T4, …",
    )


def test_a_real_corpus_against_itself(shared_data: Path) -> None:
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
