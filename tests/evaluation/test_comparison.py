"""Comparison of systems: differences by bucket and error type, agreement, and combination."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from spanwise import Entity, Sentence, SpanwiseError
from spanwise.evaluation import (
    Score,
    SentencePair,
    analyze_errors,
    bucket_differences,
    bucket_scores,
    compare,
    error_differences,
    evaluate,
    pair,
)
from spanwise.evaluation.agreement import agreement, combination
from spanwise.evaluation.alignment import SentenceGroup, pair_groups
from spanwise.evaluation.comparison import SystemsComparison, compare_systems
from spanwise.evaluation.comparison_table import print_comparison
from spanwise.evaluation.significance import difference_interval

WORDS = tuple("abcdefgh")
Mark = tuple[str, int, int]


def sentence(id: str, *marks: Mark) -> Sentence:
    return Sentence(id, WORDS, tuple(Entity(type, ((start, end),)) for type, start, end in marks))  # type: ignore[arg-type]


A, B, C, D = ("X", 0, 1), ("X", 2, 4), ("Y", 5, 6), ("Y", 6, 7)
GOLD = [sentence("1", A, B), sentence("2", C, D)]
# Predicts A, B and C, and D with a wrong type.
FIRST = [sentence("1", A, B), sentence("2", C, ("X", 6, 7))]
# Predicts A and D, B with a wrong boundary, the same wrong type on D, and a spurious entity.
SECOND = [sentence("1", A, ("X", 2, 3)), sentence("2", D, ("X", 6, 7), ("Z", 0, 1))]


def printed(result: SystemsComparison) -> str:
    out = io.StringIO()
    print_comparison(result, Console(file=out, width=120), with_errors=True)
    return out.getvalue()


def test_agreement_by_hand() -> None:
    result = agreement([analyze_errors(GOLD, FIRST)], [analyze_errors(GOLD, SECOND)])
    assert (result.support, result.both, result.neither) == (4, 1, 0)
    assert (result.only_first.count, result.only_first.types) == (2, {"X": 1, "Y": 1})  # B and C
    assert result.only_first.strings == (("X", "c d", 1), ("Y", "f", 1))
    assert (result.only_second.count, result.only_second.strings) == (1, (("Y", "g", 1),))
    assert result.shared_errors == 1
    # Two predictions in common, of 4 and 5.
    assert result.agreement == pytest.approx(2 * 2 / 9)
    assert result.complementarity == (1.0, 1.0)


def test_complementarity_excludes_entities_that_both_find() -> None:
    result = agreement([analyze_errors(GOLD, [sentence("1", A)])], [analyze_errors(GOLD, [sentence("1", B)])])
    assert (result.neither, result.complementarity) == (2, (1 / 3, 1 / 3))
    empty = agreement([analyze_errors(GOLD, [])], [analyze_errors(GOLD, [])])
    assert (empty.agreement, empty.neither, empty.complementarity) == (0.0, 4, (0.0, 0.0))


def test_combination_by_hand() -> None:
    result = combination([[analyze_errors(GOLD, FIRST)], [analyze_errors(GOLD, SECOND)]])
    assert result.union == Score(support=4, predicted=7, correct=4)  # three wrong predictions, one of them shared
    assert result.intersection == Score(support=4, predicted=2, correct=1)
    assert result.oracle == Score(support=4, predicted=4, correct=4)
    three = combination([[analyze_errors(GOLD, run)] for run in (FIRST, SECOND, [])])
    assert (three.union, three.intersection.predicted) == (result.union, 0)


def test_counts_are_sums_over_runs() -> None:
    first, second = (
        [analyze_errors(GOLD, run) for run in (FIRST, SECOND)],
        [analyze_errors(GOLD, run) for run in (SECOND, SECOND)],
    )
    result = agreement(first, second)
    assert (result.runs, result.support, result.both) == (2, 8, 1 + 2)
    assert combination([first, second]).union == Score(support=8, predicted=7 + 5, correct=4 + 2)


def test_agreement_of_different_tokenisations() -> None:
    gold = [Sentence("s", ("New-York", "rain"), (Entity("Place", ((0, 1),)),))]  # type: ignore[arg-type]
    second = [Sentence("s", ("New", "-", "York", "rain"), (Entity("Place", ((0, 3),)), Entity("Place", ((2, 3),))))]  # type: ignore[arg-type]
    # "York" touches the word of the gold entity, but is wrong.
    result = agreement([analyze_errors(gold, gold)], [analyze_errors(gold, second)])
    assert (result.both, result.shared_errors, result.second_predicted) == (1, 0, 2)
    assert combination([[analyze_errors(gold, gold)], [analyze_errors(gold, second)]]).union == Score(
        support=1, predicted=2, correct=1
    )


def test_bucket_differences_match_the_bucket_scores() -> None:
    differences = bucket_differences(GOLD, [FIRST], [SECOND], attribute="eLen")
    first_buckets, second_buckets = (bucket_scores(GOLD, run, attribute="eLen") for run in (FIRST, SECOND))
    for difference, first, second in zip(differences, first_buckets, second_buckets, strict=True):
        assert (difference.name, difference.above, difference.up_to) == (first.name, first.above, first.up_to)
        assert difference.support == first.score.support
        assert (difference.first.f1, difference.second.f1) == ((first.score.f1,), (second.score.f1,))
        assert difference.difference == pytest.approx(first.score.f1 - second.score.f1)
    # Two words: only B, found by the first system only; one sentence is too few for an interval.
    assert (differences[1].support, differences[1].difference, differences[1].interval) == (1, 1.0, None)
    repeated = [[replace(s, id=f"{n}-{s.id}") for n in range(20) for s in run] for run in (GOLD, FIRST, SECOND)]
    interval = bucket_differences(repeated[0], [repeated[1]], [repeated[2]], attribute="eLen")[1].interval
    assert interval is not None
    assert (interval.low, interval.high) == (1.0, 1.0)
    several = bucket_differences(GOLD, [FIRST, SECOND], [SECOND, SECOND], attribute="eLen")
    assert several[1].difference == pytest.approx(0.5)


def test_a_single_bucket_equals_the_overall_comparison() -> None:
    chance = random.Random(4)
    gold, first, second = ([], [], [])
    for number in range(60):
        marks = [("X", start, start + 1) for start in range(8) if chance.random() < 0.4]
        gold.append(sentence(str(number), *marks))
        for run, recall in ((first, 0.9), (second, 0.6)):
            run.append(sentence(str(number), *(mark for mark in marks if chance.random() < recall)))
    (bucket,) = bucket_differences(gold, [first], [second], attribute="tLen", cuts=1)
    overall = compare(gold, [first], [second], resamples=1_000)
    assert bucket.difference == pytest.approx(overall.difference)
    assert bucket.interval == overall.interval


def test_coverage_of_difference_intervals() -> None:
    """400 pairs of systems on 150 sentences with a known difference: about 95 % of the intervals contain it."""
    rng = np.random.default_rng(11)
    recalls, spurious, gold_mean = (0.75, 0.6), 0.5, 2.0
    f1 = [2 * recall * gold_mean / (recall * gold_mean + spurious + gold_mean) for recall in recalls]
    inside = 0
    for seed in range(400):
        gold = rng.poisson(gold_mean, 150)
        correct = [rng.binomial(gold, recall) for recall in recalls]
        columns = [np.stack([hits, hits + rng.poisson(spurious, 150), gold], axis=1) for hits in correct]
        _, interval = difference_interval(np.stack(columns, axis=1), 1, resamples=400, seed=seed)
        assert interval is not None
        inside += interval.low <= f1[0] - f1[1] <= interval.high
    assert 0.92 <= inside / 400 <= 0.98


def test_differences_of_error_rates() -> None:
    rates = [analyze_errors(GOLD, run).rates for run in (FIRST, SECOND)]
    difference = error_differences([analyze_errors(GOLD, FIRST)], [analyze_errors(GOLD, SECOND)])
    assert difference == pytest.approx({error: rates[0][error] - rates[1][error] for error in rates[0]})
    # First: D with a wrong type, FP + FN = 2. Second: B with a wrong boundary, C missed, two spurious, FP + FN = 3 + 2.
    assert difference == pytest.approx({"type": 1 / 2, "boundary": -1 / 5, "both": 0, "spurious": -2 / 5, "missed": -1 / 5})


def test_error_rates_of_several_runs_have_deviations() -> None:
    result = compare_systems(GOLD, {"one": [FIRST, FIRST], "other": [SECOND, FIRST]})
    # Of the second system, FP + FN is 5 with one boundary error, then 2 with one type error, as in the first system.
    rates = [run["error_rates"]["boundary"] for run in result.to_json()["systems"]["other"]["runs"]]
    assert rates == pytest.approx([1 / 5, 0])
    text = " ".join(printed(result).split())
    assert "one 50.00 0.00 0.00 0.00 0.00 0.00 50.00 ± sd 0.00 0.00" in text
    assert "other minus one -25.00 +10.00 +0.00 +20.00 +10.00 +10.00 -15.00 ± sd 35.36 14.14" in text


def test_error_rates_are_also_counted_as_published() -> None:
    """Bundling Learning, Table 7: a boundary error overlaps any gold entity, also of another type or a correct one."""
    gold = [sentence("1", A, B)]
    predicted = [sentence("1", A, ("Y", 1, 3), ("Z", 0, 2), ("Y", 2, 4), ("Y", 6, 7))]
    result = compare_systems(gold, {"this": [predicted], "gold": [gold]})
    # FP + FN = 4 + 1. Matched one to one, Y on 2-4 is the only error on B, and the other three are spurious.
    assert result.systems["this"].error_rates == pytest.approx(
        {"type": 1 / 5, "boundary": 0, "both": 0, "spurious": 3 / 5, "missed": 0}
    )
    assert result.systems["this"].overlap_rates == pytest.approx({"BE-Rate": 2 / 5, "TE-Rate": 1 / 5})
    assert result.to_json()["systems"]["this"]["overlap_rates"]["BE-Rate"] == pytest.approx(2 / 5)
    text = printed(result)
    header = next(line for line in text.splitlines() if "% of FP + FN" in line)
    assert header.split()[-2:] == ["BE-Rate", "TE-Rate"]
    assert "gold minus this -20.00 +0.00 +0.00 -60.00 +0.00 -40.00 -20.00" in " ".join(text.split())
    assert "as published (Bundling Learning, Table 7)" in text


def test_buckets_of_several_runs_have_deviations() -> None:
    result = compare_systems(GOLD, {"first": [FIRST, GOLD], "second": [SECOND, SECOND]}, buckets={"eLen": None})
    row = next(line for line in printed(result).splitlines() if line.startswith("first") and "±" in line)
    assert row.split()[:4] == ["first", "83.33", "±", "23.57"]  # 2/3 and 1 in the bucket of single words
    row = next(line for line in printed(result).splitlines() if line.startswith("second minus") and "±" in line)
    assert row.split()[4:6] == ["±", "23.57"]  # of the differences; both runs of the second system are equal
    assert row.split()[-1] == "–"  # gold has no entities of five words
    assert result.buckets["eLen"]["second"][0].to_json()["deviation"] == pytest.approx(0.2357, abs=1e-4)
    unequal = bucket_differences(GOLD, [SECOND], [FIRST, GOLD])
    assert unequal[0].deviation is None


def test_all_pairs_of_systems_are_compared() -> None:
    runs = {"first": FIRST, "second": SECOND, "gold": GOLD}
    systems = {name: [run] for name, run in runs.items()}
    result = compare_systems(GOLD, systems, buckets={"eLen": None, "tLen": 2})
    assert [(systems_pair.first, systems_pair.second) for systems_pair in result.pairs] == [
        ("first", "second"),
        ("first", "gold"),
        ("second", "gold"),
    ]
    for systems_pair in result.pairs:
        assert systems_pair.test == compare(GOLD, [runs[systems_pair.first]], [runs[systems_pair.second]])
    assert result.systems["first"].runs.f1 == (evaluate(GOLD, FIRST).f1,)
    assert result.systems["second"].scores == (Score(support=4, predicted=5, correct=2),)
    assert result.buckets.keys() == {"eLen", "tLen"}
    assert list(result.buckets["eLen"]) == ["second", "gold"]  # minus the first
    assert result.buckets["eLen"]["gold"][0].difference > 0
    record = json.loads(json.dumps(result.to_json()))
    assert record["combined"]["oracle"]["recall"] == 1.0
    assert record["pairs"][0]["agreement"]["only_first"]["count"] == 2
    assert record["systems"]["first"]["mean"] == pytest.approx(0.75)


def test_each_run_is_paired_with_gold_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def counted(groups: Sequence[SentenceGroup]) -> tuple[SentencePair, ...]:
        calls.append(groups)
        return pair_groups(groups)

    monkeypatch.setattr("spanwise.evaluation.pairing.pair_groups", counted)
    systems = {"first": [FIRST, GOLD], "second": [SECOND, SECOND], "gold": [GOLD, GOLD]}
    compare_systems(GOLD, systems, buckets={"eLen": None, "tLen": 2})
    assert len(calls) == 6


def test_a_pairing_replaces_its_run() -> None:
    first, second = pair(GOLD, FIRST), pair(GOLD, SECOND)
    assert pair(GOLD, first) is first
    assert analyze_errors(GOLD, first) == analyze_errors(GOLD, FIRST)
    assert bucket_scores(GOLD, first) == bucket_scores(GOLD, FIRST)
    assert compare(GOLD, [first], [second]) == compare(GOLD, [FIRST], [SECOND])
    assert bucket_differences(GOLD, [first], [second]) == bucket_differences(GOLD, [FIRST], [SECOND])
    result = compare_systems(GOLD, {"first": [first], "second": [second]})
    assert result.to_json() == compare_systems(GOLD, {"first": [FIRST], "second": [SECOND]}).to_json()


def test_mean_and_deviation_over_seeds() -> None:
    result = compare_systems(GOLD, {"first": [FIRST, GOLD], "second": [SECOND, SECOND]})
    runs = result.systems["first"].runs
    assert (runs.mean, runs.deviation) == pytest.approx((0.875, np.std([0.75, 1.0], ddof=1)))
    assert result.systems["first"].precision == pytest.approx((3 / 4 + 1) / 2)
    with pytest.raises(SpanwiseError, match="same number of runs for all systems, but first has 2, second has 1"):
        compare_systems(GOLD, {"first": [FIRST, GOLD], "second": [SECOND]})
    with pytest.raises(SpanwiseError, match="at least two systems to compare, found 1"):
        compare_systems(GOLD, {"first": [FIRST]})


def test_printed_comparison() -> None:
    result = compare_systems(GOLD, {"first": [FIRST], "second": [SECOND]}, buckets={"eLen": None})
    text = printed(result)
    assert "first minus second: F1 +30.56" in text  # 0.75 - 4/9
    assert "4 gold entities: 1 found by both, 2 by first only, 1 by second only, 0 by neither" in text
    assert "first finds 100.00% of the entities that second misses, second finds 100.00% of those that first misses" in text
    assert "agreement 44.44% F1, wrong predictions in common: 1" in text
    rows = {line.split("  ")[0].strip(): line.split() for line in text.splitlines() if line}
    assert rows["oracle"][-3:] == ["100.00", "100.00", "100.00"]
    assert "first minus second: F1 +30.56 (no interval: fewer than 20 sentences with entities), p = 0." in text
    assert "bootstrap" not in text
    assert "-100.00" in text  # without a star: one sentence is too few
    assert "0*" not in text
    assert "units" not in text


def test_significant_differences_have_a_star() -> None:
    repeated = [[replace(s, id=f"{n}-{s.id}") for n in range(20) for s in run] for run in (GOLD, FIRST, SECOND)]
    text = printed(compare_systems(repeated[0], {"first": [repeated[1]], "second": [repeated[2]]}, buckets={"eLen": None}))
    assert "-100.00*" in text
    assert "first minus second: F1 +30.56 (95% interval +" in text
    assert "), p = 0.0001 (bootstrap), 0.0001 (randomisation)" in text


def test_printed_comparison_of_joined_sentences() -> None:
    whole = [Sentence("x", WORDS + WORDS, (Entity("X", ((0, 1),)),))]  # type: ignore[arg-type]
    result = compare_systems(GOLD, {"first": [FIRST], "whole": [whole]})
    lines = printed(result).splitlines()
    (first,) = [number for number, line in enumerate(lines) if line.startswith("first minus whole")]
    assert "(no interval: fewer than 20 units with entities), p = 1.0000 (randomisation)" in lines[first]
    assert lines[first + 1] == "  units tested: 1 (sentences that a system splits differently are joined)"
    assert json.loads(json.dumps(result.to_json()))["pairs"][0]["interval"] is None
