"""Paired tests against direct simulations, exact p-values and statistical properties."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from statistics import fmean

import numpy as np
import pytest

from spanwise import Entity, Sentence, SpanwiseError
from spanwise.evaluation import compare, evaluate
from spanwise.evaluation.bootstrap import MIN_UNITS

LENGTH = 12
WORDS = tuple(f"w{n}" for n in range(LENGTH))
ENTITIES, WRONG = (tuple(Entity(type, ((n, n + 1),)) for n in range(LENGTH)) for type in ("X", "Y"))


def corpus(counts: np.ndarray) -> tuple[list[Sentence], list[list[Sentence]]]:
    """Gold sentences and the output of each run, for counts of sentences × runs × (correct, predicted, gold)."""
    gold, runs = [], [[] for _ in range(counts.shape[1])]
    for number, row in enumerate(counts.tolist()):
        gold.append(Sentence(str(number), WORDS, ENTITIES[: row[0][2]]))
        for run, (correct, predicted, _) in zip(runs, row, strict=True):
            run.append(Sentence(str(number), WORDS, (*ENTITIES[:correct], *WRONG[: predicted - correct])))
    return gold, runs


def sample(rng: np.random.Generator, sentences: int, recalls: list[float]) -> np.ndarray:
    """Counts of runs with these recalls; difficult sentences are difficult for all runs."""
    gold = rng.poisson(2.0, sentences).clip(max=LENGTH)
    hardness = rng.beta(4, 2, sentences) * 1.5
    columns = []
    for recall in recalls:
        correct = rng.binomial(gold, (hardness * recall).clip(0, 1))
        columns.append(np.stack([correct, (correct + rng.poisson(0.5, sentences)).clip(max=LENGTH), gold], axis=1))
    return np.stack(columns, axis=1)


def f1(rows: np.ndarray) -> float:
    correct, predicted, gold = rows.sum(axis=0)
    return 2 * correct / (predicted + gold) if predicted + gold else 0.0


def f1_difference(counts: np.ndarray) -> float:
    half = counts.shape[1] // 2
    scores = [f1(counts[:, run]) for run in range(counts.shape[1])]
    return fmean(scores[:half]) - fmean(scores[half:])


def compared(counts: np.ndarray, **options: int | float):  # type: ignore[no-untyped-def]
    gold, runs = corpus(counts)
    half = len(runs) // 2
    return compare(gold, runs[:half], runs[half:], **options)  # type: ignore[arg-type]


def test_scores_match_evaluate() -> None:
    counts = sample(np.random.default_rng(0), 40, [0.6, 0.5, 0.4, 0.7])
    gold, runs = corpus(counts)
    result = compare(gold, runs[:2], runs[2:], resamples=10)
    assert [*result.first.f1, *result.second.f1] == pytest.approx([evaluate(gold, run).f1 for run in runs])
    assert result.difference == pytest.approx(f1_difference(counts)) == pytest.approx(result.first.mean - result.second.mean)
    assert result.first.deviation == pytest.approx(np.std(result.first.f1, ddof=1))
    assert compare(gold, runs[:1], runs[1:2], resamples=10).first.deviation is None


@pytest.mark.parametrize("recalls", [[0.5, 0.6], [0.5, 0.55, 0.5, 0.65]])
def test_randomisation_matches_the_exact_p_value(recalls: list[float]) -> None:
    """Enumerate all 512 exchanges of nine sentences."""
    counts = sample(np.random.default_rng(4), 9, recalls)
    half = len(recalls) // 2
    swapped = np.concatenate([counts[:, half:], counts[:, :half]], axis=1)
    differences = []
    for tosses in product((False, True), repeat=9):
        differences.append(f1_difference(np.where(np.array(tosses)[:, None, None], swapped, counts)))
    exact = fmean(abs(difference) >= abs(f1_difference(counts)) - 1e-12 for difference in differences)
    assert 0.02 < exact < 0.98
    assert compared(counts, resamples=40_000).randomisation_p == pytest.approx(exact, abs=0.01)


@pytest.mark.parametrize("recalls", [[0.5, 0.5], [0.5, 0.55, 0.5, 0.5]])
def test_bootstrap_matches_drawing_single_sentences(recalls: list[float]) -> None:
    rng = np.random.default_rng(6)
    counts = sample(rng, 60, recalls)
    differences = np.array([f1_difference(counts[rng.integers(0, 60, 60)]) for _ in range(4_000)])
    result = compared(counts, resamples=40_000)
    low, high = np.quantile(differences, [0.025, 0.975])
    assert (result.interval.low, result.interval.high) == pytest.approx((low, high), abs=0.006)
    expected = fmean(np.abs(differences - f1_difference(counts)) >= abs(f1_difference(counts)))
    assert 0.02 < expected < 0.98
    assert result.bootstrap_p == pytest.approx(expected, abs=0.03)


def test_equal_outputs_have_no_difference() -> None:
    counts = sample(np.random.default_rng(1), 50, [0.6])
    result = compared(np.concatenate([counts, counts], axis=1), resamples=500)
    assert (result.difference, result.bootstrap_p, result.randomisation_p) == (0, 1, 1)
    assert (result.interval.low, result.interval.high) == (0, 0)


def test_p_values_are_never_zero() -> None:
    counts = np.array([[[2, 2, 2], [0, 2, 2]]] * 60)
    result = compared(counts, resamples=999)
    assert result.difference == 1
    assert result.randomisation_p == 1 / 1000
    # All resamples have the same difference, so none is as extreme.
    assert result.bootstrap_p == 1 / 1000


def test_p_value_if_one_system_wins_all_ten_sentences() -> None:
    """Two of 1,024 exchanges have the full difference."""
    result = compared(np.array([[[1, 1, 1], [0, 1, 1]]] * 10), resamples=100_000)
    assert result.randomisation_p == pytest.approx(2 / 1024, abs=0.0006)


def test_swapping_the_systems_changes_the_sign_only() -> None:
    counts = sample(np.random.default_rng(2), 80, [0.5, 0.6])
    result, mirrored = compared(counts, resamples=20_000), compared(counts[:, ::-1], resamples=20_000)
    assert mirrored.difference == pytest.approx(-result.difference)
    assert mirrored.bootstrap_p == pytest.approx(result.bootstrap_p, abs=0.02)
    assert mirrored.randomisation_p == pytest.approx(result.randomisation_p, abs=0.02)
    assert (mirrored.interval.low, mirrored.interval.high) == pytest.approx(
        (-result.interval.high, -result.interval.low), abs=0.005
    )


def test_false_positive_rate_matches_the_level() -> None:
    rng = np.random.default_rng(9)
    results = [compared(sample(rng, 60, [0.5, 0.5]), resamples=400, seed=n) for n in range(300)]
    for name in ("bootstrap_p", "randomisation_p"):
        values = np.array([getattr(result, name) for result in results])
        assert 0.02 <= (values <= 0.05).mean() <= 0.09
        assert 0.42 <= (values <= 0.5).mean() <= 0.58
    word_indices = fmean(result.interval.low <= 0 <= result.interval.high for result in results)
    assert 0.91 <= word_indices <= 0.98


def test_a_large_difference_is_significant() -> None:
    counts = sample(np.random.default_rng(3), 400, [0.7, 0.55])
    result = compared(counts)
    assert result.difference > 0.05
    assert result.interval.low > 0
    assert max(result.bootstrap_p, result.randomisation_p) < 0.01


def test_result_depends_on_the_seed() -> None:
    counts = sample(np.random.default_rng(5), 50, [0.5, 0.6])
    assert compared(counts, resamples=100) == compared(counts, resamples=100)
    assert compared(counts, resamples=100) != compared(counts, resamples=100, seed=1)


def test_differently_split_outputs_are_compared_in_common_units() -> None:
    """One system joins the first two sentences, the other the next two. All four entities are correct."""
    gold = [Sentence(str(n), (f"w{n}", "x"), (Entity("X", ((0, 1),)),) if n else ()) for n in range(5)]

    def joined(first: int) -> list[Sentence]:
        left, right = gold[first], gold[first + 1]
        entities = [*left.entities, *(Entity(e.type, tuple((a + 2, b + 2) for a, b in e.fragments)) for e in right.entities)]
        whole = Sentence("x", left.words + right.words, tuple(entities))
        return [Sentence(f"x{n}", s.words, s.entities) for n, s in enumerate([*gold[:first], whole, *gold[first + 2 :]])]

    result = compare(gold, [joined(0)], [joined(2)], resamples=20)
    assert result.units == 3
    assert (result.first.f1, result.second.f1) == ((1.0,), (1.0,))
    assert compare(gold, [joined(0)], [joined(1)], resamples=20).units == 3
    assert compare(gold, [gold], [gold], resamples=20).units == 5


def test_repeated_sentences_are_separate_units() -> None:
    sentence = Sentence("s", ("a",), (Entity("X", ((0, 1),)),))
    empty = Sentence("s", ("a",))
    result = compare([sentence] * 30, [[sentence, empty] * 15], [[empty, sentence] * 15], resamples=50)
    assert result.units == 30
    assert result.difference == 0
    assert result.interval is not None
    assert result.interval.low < 0 < result.interval.high


def test_an_output_of_one_sentence_is_one_unit() -> None:
    """The second system misses one more of 50 entities. As one long sentence, it leaves a single unit."""
    words = ("a", "b", "c", ".")
    gold = [Sentence(str(n), words, (Entity("X", ((0, 1),)),)) for n in range(50)]
    empty = [replace(sentence, entities=()) for sentence in gold]
    first, second = [*empty[:1], *gold[1:]], [*empty[:2], *gold[2:]]
    whole = [Sentence("x", words * 50, tuple(Entity("X", ((4 * n, 4 * n + 1),)) for n in range(2, 50)))]
    separate, joined = compare(gold, [first], [second], resamples=50), compare(gold, [first], [whole], resamples=50)
    assert separate.difference == joined.difference > 0
    assert separate.units == 50
    assert separate.interval is not None
    assert (joined.units, joined.interval, joined.bootstrap_p, joined.randomisation_p) == (1, None, None, 1)


def test_sentences_without_entities_do_not_count_as_units() -> None:
    counts = np.zeros((300, 2, 3), dtype=np.int64)
    counts[: MIN_UNITS - 1] = [[1, 1, 1], [0, 1, 1]]
    result = compared(counts, resamples=500)
    assert (result.interval, result.bootstrap_p, result.units) == (None, None, 300)
    assert result.randomisation_p < 0.01
    counts[MIN_UNITS, 1, 1] = 1  # one more, with a prediction of one system
    assert compared(counts, resamples=500).bootstrap_p is not None


@pytest.mark.parametrize("sentences", [4, 25])
def test_false_positive_rate_with_few_sentences(sentences: int) -> None:
    rng = np.random.default_rng(sentences)
    results = [compared(sample(rng, sentences, [0.5, 0.5]), resamples=400, seed=n) for n in range(300)]
    tested = [result for result in results if result.interval is not None]
    assert sum(result.bootstrap_p <= 0.05 for result in tested) <= 0.09 * len(results)
    assert sum(not result.interval.low <= 0 <= result.interval.high for result in tested) <= 0.1 * len(results)


def test_missing_sentences_count_as_missed() -> None:
    gold, (run, _) = corpus(np.array([[[2, 2, 2], [2, 2, 2]]] * 4))
    assert compare(gold, [run], [run[:2]], resamples=20).second.f1 == pytest.approx([2 * 4 / (4 + 8)])


def test_without_entities() -> None:
    gold = [Sentence("1", ("a",))]
    result = compare(gold, [gold], [gold], resamples=20)
    assert (result.difference, result.interval, result.bootstrap_p, result.randomisation_p) == (0, None, None, 1)


def test_json() -> None:
    record = json.loads(
        json.dumps(compared(sample(np.random.default_rng(5), 20, [0.5, 0.6, 0.5, 0.6]), resamples=50).to_json())
    )
    assert list(record) == [
        "first_scores",
        "second_scores",
        "difference",
        "interval",
        "bootstrap_p",
        "randomisation_p",
        "units",
    ]
    assert len(record["first_scores"]["f1"]) == 2


def test_comparison_errors() -> None:
    gold = [Sentence("1", ("a",))]
    with pytest.raises(SpanwiseError, match="the same number of runs of both systems, found 2 and 1"):
        compare(gold, [gold, gold], [gold])
    with pytest.raises(SpanwiseError, match="the same number of runs of both systems, found 0 and 0"):
        compare(gold, [], [])
    with pytest.raises(SpanwiseError, match="no gold sentences"):
        compare([], [[]], [[]])
    with pytest.raises(SpanwiseError, match="at least one resample, found 0"):
        compare(gold, [gold], [gold], resamples=0)
