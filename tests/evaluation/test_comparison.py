"""Several systems side by side: differences by group and kind, what each finds alone, what they reach together."""

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
from spanwise.evaluation import Pair, Score, bucket_differences, bucketed, compare, error_differences, errors, evaluate, pair
from spanwise.evaluation.agreement import agreement, combination
from spanwise.evaluation.alignment import Group, align
from spanwise.evaluation.comparison import SystemsComparison, compare_systems
from spanwise.evaluation.comparison_table import print_comparison
from spanwise.evaluation.significance import difference_interval

WORDS = tuple("abcdefgh")
Mark = tuple[str, int, int]


def sentence(id: str, *marks: Mark) -> Sentence:
    return Sentence(id, WORDS, tuple(Entity(type, ((start, end),)) for type, start, end in marks))  # type: ignore[arg-type]


A, B, C, D = ("X", 0, 1), ("X", 2, 4), ("Y", 5, 6), ("Y", 6, 7)
GOLD = [sentence("1", A, B), sentence("2", C, D)]
# Finds A, B and C, and takes D for an X.
ONE = [sentence("1", A, B), sentence("2", C, ("X", 6, 7))]
# Finds A and D, has B too short, the same wrong type on D, and one that is not there.
OTHER = [sentence("1", A, ("X", 2, 3)), sentence("2", D, ("X", 6, 7), ("Z", 0, 1))]


def printed(result: SystemsComparison) -> str:
    out = io.StringIO()
    print_comparison(result, Console(file=out, width=120), with_errors=True)
    return out.getvalue()


def test_agreement_by_hand() -> None:
    result = agreement([errors(GOLD, ONE)], [errors(GOLD, OTHER)])
    assert (result.support, result.both, result.neither) == (4, 1, 0)
    assert (result.one_alone.count, result.one_alone.types) == (2, {"X": 1, "Y": 1})  # B and C
    assert result.one_alone.strings == (("X", "c d", 1), ("Y", "f", 1))
    assert (result.other_alone.count, result.other_alone.strings) == (1, (("Y", "g", 1),))
    assert result.same_wrong == 1
    # Two predictions in common, of 4 and 5.
    assert result.agreement == pytest.approx(2 * 2 / 9)
    assert result.complementarity == (1.0, 1.0)


def test_what_neither_finds_is_nobody_s_to_add() -> None:
    result = agreement([errors(GOLD, [sentence("1", A)])], [errors(GOLD, [sentence("1", B)])])
    assert (result.neither, result.complementarity) == (2, (1 / 3, 1 / 3))
    nothing = agreement([errors(GOLD, [])], [errors(GOLD, [])])
    assert (nothing.agreement, nothing.neither, nothing.complementarity) == (0.0, 4, (0.0, 0.0))


def test_combination_by_hand() -> None:
    result = combination([[errors(GOLD, ONE)], [errors(GOLD, OTHER)]])
    assert result.union == Score(support=4, predicted=7, correct=4)  # three wrong ones, of which one is shared
    assert result.common == Score(support=4, predicted=2, correct=1)
    assert result.oracle == Score(support=4, predicted=4, correct=4)
    three = combination([[errors(GOLD, run)] for run in (ONE, OTHER, [])])
    assert (three.union, three.common.predicted) == (result.union, 0)


def test_runs_are_added_up() -> None:
    ones, others = [errors(GOLD, run) for run in (ONE, OTHER)], [errors(GOLD, run) for run in (OTHER, OTHER)]
    result = agreement(ones, others)
    assert (result.runs, result.support, result.both) == (2, 8, 1 + 2)
    assert combination([ones, others]).union == Score(support=8, predicted=7 + 5, correct=4 + 2)


def test_predictions_in_other_words_agree_on_what_is_right() -> None:
    gold = [Sentence("s", ("New-York", "rain"), (Entity("Place", ((0, 1),)),))]  # type: ignore[arg-type]
    other = [Sentence("s", ("New", "-", "York", "rain"), (Entity("Place", ((0, 3),)), Entity("Place", ((2, 3),))))]  # type: ignore[arg-type]
    # "York" touches the very word of gold, and is wrong all the same.
    result = agreement([errors(gold, gold)], [errors(gold, other)])
    assert (result.both, result.same_wrong, result.other_predicted) == (1, 0, 2)
    assert combination([[errors(gold, gold)], [errors(gold, other)]]).union == Score(support=1, predicted=2, correct=1)


def test_differences_by_bucket_are_those_of_the_buckets() -> None:
    differences = bucket_differences(GOLD, [ONE], [OTHER], attribute="eLen")
    ones, others = (bucketed(GOLD, run, attribute="eLen") for run in (ONE, OTHER))
    for difference, one, other in zip(differences, ones, others, strict=True):
        assert (difference.name, difference.above, difference.up_to) == (one.name, one.above, one.up_to)
        assert difference.support == one.score.support
        assert (difference.ones.f1, difference.others.f1) == ((one.score.f1,), (other.score.f1,))
        assert difference.difference == pytest.approx(one.score.f1 - other.score.f1)
    # Two words: B, which one system has alone, in the only sentence that counts: no more can be said of it.
    assert (differences[1].support, differences[1].difference, differences[1].interval) == (1, 1.0, None)
    often = [[replace(s, id=f"{n}-{s.id}") for n in range(20) for s in run] for run in (GOLD, ONE, OTHER)]
    interval = bucket_differences(often[0], [often[1]], [often[2]], attribute="eLen")[1].interval
    assert interval is not None
    assert (interval.low, interval.high) == (1.0, 1.0)
    several = bucket_differences(GOLD, [ONE, OTHER], [OTHER, OTHER], attribute="eLen")
    assert several[1].difference == pytest.approx(0.5)


def test_one_bucket_of_all_is_the_whole_comparison() -> None:
    chance = random.Random(4)
    gold, one, other = ([], [], [])
    for number in range(60):
        marks = [("X", start, start + 1) for start in range(8) if chance.random() < 0.4]
        gold.append(sentence(str(number), *marks))
        for run, ease in ((one, 0.9), (other, 0.6)):
            run.append(sentence(str(number), *(mark for mark in marks if chance.random() < ease)))
    (bucket,) = bucket_differences(gold, [one], [other], attribute="tLen", cuts=1)
    whole = compare(gold, [one], [other], resamples=1_000)
    assert bucket.difference == pytest.approx(whole.difference)
    assert bucket.interval == whole.interval


def test_the_interval_of_a_difference_covers_the_truth_about_as_often_as_it_says() -> None:
    """400 pairs of systems on 150 sentences whose true difference is known: about 95 % of the intervals contain it."""
    rng = np.random.default_rng(11)
    eases, spurious, gold_mean = (0.75, 0.6), 0.5, 2.0
    f1 = [2 * ease * gold_mean / (ease * gold_mean + spurious + gold_mean) for ease in eases]
    inside = 0
    for seed in range(400):
        gold = rng.poisson(gold_mean, 150)
        correct = [rng.binomial(gold, ease) for ease in eases]
        columns = [np.stack([own, own + rng.poisson(spurious, 150), gold], axis=1) for own in correct]
        _, interval = difference_interval(np.stack(columns, axis=1), 1, seed=seed)
        assert interval is not None
        inside += interval.low <= f1[0] - f1[1] <= interval.high
    assert 0.92 <= inside / 400 <= 0.98


def test_differences_of_error_rates() -> None:
    rates = [errors(GOLD, run).rates for run in (ONE, OTHER)]
    difference = error_differences([errors(GOLD, ONE)], [errors(GOLD, OTHER)])
    assert difference == pytest.approx({kind: rates[0][kind] - rates[1][kind] for kind in rates[0]})
    # One: D with a wrong type, FP + FN = 2. Other: B too short, C missed, two spurious (D was found), FP + FN = 3 + 2.
    assert difference == pytest.approx({"type": 1 / 2, "boundary": -1 / 5, "both": 0, "spurious": -2 / 5, "missed": -1 / 5})


def test_all_pairs_of_systems_are_tested() -> None:
    runs = {"one": ONE, "other": OTHER, "gold": GOLD}
    systems = {name: [run] for name, run in runs.items()}
    result = compare_systems(GOLD, systems, buckets={"eLen": None, "tLen": 2})
    assert [(duel.one, duel.other) for duel in result.duels] == [("one", "other"), ("one", "gold"), ("other", "gold")]
    for duel in result.duels:
        assert duel.test == compare(GOLD, [runs[duel.one]], [runs[duel.other]])
    assert result.systems["one"].runs.f1 == (evaluate(GOLD, ONE).f1,)
    assert result.systems["other"].scores == (Score(support=4, predicted=5, correct=2),)
    assert result.buckets.keys() == {"eLen", "tLen"}
    assert list(result.buckets["eLen"]) == ["other", "gold"]  # less the first
    assert result.buckets["eLen"]["gold"][0].difference > 0
    record = json.loads(json.dumps(result.to_json()))
    assert record["together"]["oracle"]["recall"] == 1.0
    assert record["pairs"][0]["agreement"]["one_alone"]["count"] == 2
    assert record["systems"]["one"]["mean"] == pytest.approx(0.75)


def test_each_run_is_paired_with_gold_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def counting(groups: Sequence[Group]) -> tuple[Pair, ...]:
        calls.append(groups)
        return align(groups)

    monkeypatch.setattr("spanwise.evaluation.pairing.align", counting)
    systems = {"one": [ONE, GOLD], "other": [OTHER, OTHER], "gold": [GOLD, GOLD]}
    compare_systems(GOLD, systems, buckets={"eLen": None, "tLen": 2})
    assert len(calls) == 6


def test_a_pairing_stands_for_the_run_that_it_pairs() -> None:
    one, other = pair(GOLD, ONE), pair(GOLD, OTHER)
    assert pair(GOLD, one) is one
    assert errors(GOLD, one) == errors(GOLD, ONE)
    assert bucketed(GOLD, one) == bucketed(GOLD, ONE)
    assert compare(GOLD, [one], [other]) == compare(GOLD, [ONE], [OTHER])
    assert bucket_differences(GOLD, [one], [other]) == bucket_differences(GOLD, [ONE], [OTHER])
    mine = compare_systems(GOLD, {"one": [one], "other": [other]})
    assert mine.to_json() == compare_systems(GOLD, {"one": [ONE], "other": [OTHER]}).to_json()


def test_seeds_have_a_mean_and_a_deviation() -> None:
    result = compare_systems(GOLD, {"one": [ONE, GOLD], "other": [OTHER, OTHER]})
    runs = result.systems["one"].runs
    assert (runs.mean, runs.deviation) == pytest.approx((0.875, np.std([0.75, 1.0], ddof=1)))
    assert result.systems["one"].precision == pytest.approx((3 / 4 + 1) / 2)
    with pytest.raises(SpanwiseError, match="as many: one has 2, other has 1"):
        compare_systems(GOLD, {"one": [ONE, GOLD], "other": [OTHER]})
    with pytest.raises(SpanwiseError, match="two systems or more"):
        compare_systems(GOLD, {"one": [ONE]})


def test_the_table_says_what_was_computed() -> None:
    result = compare_systems(GOLD, {"one": [ONE], "other": [OTHER]}, buckets={"eLen": None})
    text = printed(result)
    assert "one less other: F1 +30.56" in text  # 0.75 - 4/9
    assert "of 4 entities are found: 1 by both, 2 by one alone, 1 by other alone, 0 by neither" in text
    assert "one finds 100.00 % of what other misses, the other way round 100.00 %; they agree to 44.44 %" in text
    rows = {line.split("  ")[0].strip(): line.split() for line in text.splitlines() if line}
    assert rows["oracle: what is right"][-3:] == ["100.00", "100.00", "100.00"]
    assert "one less other: F1 +30.56 (no interval from fewer than 20 sentences with entities), p = 0." in text
    assert "bootstrap" not in text
    assert "-100.00" in text  # two words, in one sentence: which may be luck, so there is no star
    assert "0*" not in text
    assert "units" not in text


def test_what_is_sure_has_a_star() -> None:
    often = [[replace(s, id=f"{n}-{s.id}") for n in range(20) for s in run] for run in (GOLD, ONE, OTHER)]
    text = printed(compare_systems(often[0], {"one": [often[1]], "other": [often[2]]}, buckets={"eLen": None}))
    assert "-100.00*" in text
    assert "one less other: F1 +30.56 (95% interval +" in text
    assert "), p = 0.0001 (bootstrap), 0.0001 (randomisation)" in text


def test_the_table_counts_the_units_where_sentences_are_joined() -> None:
    whole = [Sentence("x", WORDS + WORDS, (Entity("X", ((0, 1),)),))]  # type: ignore[arg-type]
    result = compare_systems(GOLD, {"one": [ONE], "whole": [whole]})
    lines = printed(result).splitlines()
    (first,) = [number for number, line in enumerate(lines) if line.startswith("one less whole")]
    assert "(no interval from fewer than 20 units with entities), p = 1.0000 (randomisation)" in lines[first]
    assert lines[first + 1] == "  units that are drawn and exchanged: 1; sentences that a system cuts elsewhere are one"
    assert json.loads(json.dumps(result.to_json()))["pairs"][0]["interval"] is None
