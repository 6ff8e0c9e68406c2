"""Bucket scores: edges, sums, and agreement with a slow reference implementation."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanwise import Entity, Sentence, SpanwiseError
from spanwise.evaluation import ATTRIBUTES, Score, TrainIndex, bucket_scores, evaluate, f1_interval
from spanwise.evaluation.buckets import quantile_cuts

WORDS = tuple("abcdefgh")


def entity(type: str, *spans: tuple[int, int]) -> Entity:
    return Entity(type, spans)  # type: ignore[arg-type]


def test_published_edges() -> None:
    """Table 5: [1], [2], [3, 4], [5, ] for eLen; [1, 7], [8, 16], [17, 31], [32, ] for tLen."""
    lengths = (1, 2, 3, 4, 5, 9)
    gold = [Sentence(str(n), ("w",) * n, (entity("X", (0, n)),)) for n in lengths]
    assert [(b.name, b.score.support) for b in bucket_scores(gold, [], attribute="eLen")] == [
        ("XS", 1),
        ("S", 1),
        ("L", 2),
        ("XL", 2),
    ]
    gold = [Sentence(str(n), ("w",) * n, (entity("X", (0, 1)),)) for n in (1, 7, 8, 16, 17, 31, 32, 90)]
    buckets = bucket_scores(gold, [], attribute="tLen")
    assert [bucket.score.support for bucket in buckets] == [2, 2, 2, 2]
    assert [(bucket.above, bucket.up_to) for bucket in buckets] == [(None, 7), (7, 16), (16, 31), (31, None)]


def test_published_edges_of_shares() -> None:
    """[0, 0.01], (0.01, 0.025], (0.025, 0.05], (0.05, 1] for eDen; [0, 0.1], (0.1, 0.5], (0.5, 0.9], (0.9, 1] for eCon."""
    lengths = (200, 100, 99, 40, 39, 20, 19, 1)
    gold = [Sentence(str(n), ("w",) * n, (entity("X", (0, 1)),)) for n in lengths]
    assert [bucket.score.support for bucket in bucket_scores(gold, [], attribute="eDen")] == [2, 2, 2, 2]
    train, shares = [], {"a": 1, "b": 2, "c": 5, "d": 6, "e": 9, "f": 10, "g": 0}  # of ten occurrences each
    for word, annotated_count in shares.items():
        train += [Sentence("t", (word,), (entity("X", (0, 1)),) if n < annotated_count else ()) for n in range(10)]
    gold = [Sentence(word, (word,), (entity("X", (0, 1)),)) for word in shares]
    assert [bucket.score.support for bucket in bucket_scores(gold, [], train, attribute="eCon")] == [2, 2, 2, 1]


def test_hand_worked_scores() -> None:
    gold = [Sentence("1", WORDS, (entity("X", (0, 1)), entity("X", (2, 4)), entity("Y", (5, 6))))]
    predicted = [Sentence("1", WORDS, (entity("X", (0, 1)), entity("X", (2, 5)), entity("X", (5, 6))))]
    tiny, short, long, longest = bucket_scores(gold, predicted, attribute="eLen")
    assert tiny.score == Score(support=2, predicted=2, correct=1)
    assert short.score == Score(support=1, predicted=0, correct=0)
    assert long.score == Score(support=0, predicted=1, correct=0)
    assert longest.score == Score()
    assert (longest.is_empty, short.is_empty, long.is_empty) == (True, False, False)
    assert [bucket.interval for bucket in (tiny, short, long, longest)] == [None] * 4  # too few sentences
    repeated = [[replace(sentence, id=str(n)) for n in range(20) for sentence in side] for side in (gold, predicted)]
    assert bucket_scores(*repeated, attribute="eLen")[0].interval == f1_interval([(1, 2, 2)] * 20)


def test_a_correct_prediction_is_in_the_bucket_of_its_gold_entity() -> None:
    """The density of the predictions is lower, but gold's density decides the bucket."""
    gold = [Sentence("1", WORDS, (entity("X", (0, 2)), entity("X", (2, 4))))]
    predicted = [Sentence("1", WORDS, (entity("X", (0, 2)), entity("Y", (5, 6))))]
    sparse, dense = bucket_scores(gold, predicted, attribute="eDen", cuts=[0.45])
    assert dense.score == Score(support=2, predicted=1, correct=1)
    assert sparse.score == Score(support=0, predicted=1, correct=0)  # 3 of 8 words in the predictions


def test_both_definitions_of_density() -> None:
    gold = [Sentence("1", WORDS, (entity("X", (0, 4)),))]  # one entity, four of eight words
    default, paper = (
        bucket_scores(gold, gold, attribute="eDen", cuts=[0.2], use_paper_definition=use_paper) for use_paper in (False, True)
    )
    assert [bucket.score.correct for bucket in default] == [0, 1]
    assert [bucket.score.correct for bucket in paper] == [1, 0]


def test_equal_counts() -> None:
    rng = random.Random(3)
    lengths = rng.sample(range(1, 400), 103)
    gold = [Sentence(str(n), ("w",) * n, (entity("X", (0, 1)),)) for n in lengths]
    supports = [bucket.score.support for bucket in bucket_scores(gold, [], attribute="tLen", cuts=5)]
    assert sum(supports) == 103
    assert max(supports) - min(supports) <= 1
    assert [b.name for b in bucket_scores(gold, [], attribute="tLen", cuts=1)] == ["all"]


@given(st.lists(st.integers(0, 6)), st.integers(1, 5))
def test_no_bucket_of_equal_counts_is_empty(values: list[int], parts: int) -> None:
    cuts = quantile_cuts(values, parts)
    edges = [float("-inf"), *cuts, float("inf")]
    sizes = [sum(low < v <= high for v in values) for low, high in pairwise(edges)]
    assert cuts == sorted(set(cuts))
    assert len(sizes) <= parts
    assert all(sizes) or not values
    # A bucket exceeds its share only because of repeated values: without its highest value, it is below the share.
    for size, high in zip(sizes, cuts, strict=False):
        assert size - values.count(high) < len(values) / parts


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"attribute": "length"}, "unknown attribute 'length'; expected one of eLen, tLen"),
        ({"attribute": "eCon"}, "needs the training sentences"),
        ({"attribute": "nesting", "cuts": 3}, "fixed buckets flat, nested, covering, both; it takes no cuts"),
        ({"cuts": [2, 2]}, "increasing numbers, found"),
        ({"cuts": [1, float("nan")]}, "increasing numbers, found"),
        ({"cuts": 0}, "at least one bucket, found 0"),
    ],
)
def test_invalid_options_are_errors(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SpanwiseError, match=message):
        bucket_scores([], [], **options)


def test_json() -> None:
    gold = [Sentence("1", WORDS, (entity("X", (0, 2)),))]
    record = json.loads(json.dumps([bucket.to_json() for bucket in bucket_scores(gold, gold)]))[1]
    assert {key: record[key] for key in ("name", "above", "up_to", "f1", "support")} == {
        "name": "S", "above": 1, "up_to": 2, "f1": 1.0, "support": 1,
    }  # fmt: skip
    assert record["interval"] is None


# Random corpora against a slow reference implementation.


@st.composite
def annotated(draw: st.DrawFn, id: str, words: tuple[str, ...]) -> Sentence:
    marks = draw(st.lists(st.tuples(st.sampled_from("XY"), st.sets(st.integers(0, len(words) - 1), min_size=1)), max_size=5))
    return Sentence(id, words, tuple(entity(type, *((n, n + 1) for n in sorted(indices))) for type, indices in marks))


@st.composite
def corpora(draw: st.DrawFn) -> tuple[list[Sentence], list[Sentence], list[Sentence]]:
    words = st.lists(st.sampled_from("abc"), min_size=1, max_size=7).map(tuple)
    gold, predicted = [], []
    for number in range(draw(st.integers(0, 4))):
        gold.append(draw(annotated(str(number), draw(words))))
        if draw(st.integers(0, 4)):
            other = draw(annotated(str(number), gold[-1].words))
            correct = [e for e in gold[-1].entities if draw(st.booleans())]
            predicted.append(Sentence(other.id, other.words, (*correct, *other.entities)))
    train = [draw(annotated("t", draw(words))) for _ in range(draw(st.integers(0, 3)))]
    return gold, predicted, train


Mark = tuple[str, frozenset[int]]


def marks(sentence: Sentence) -> set[Mark]:
    return {(e.type, frozenset(n for f in e.fragments for n in range(*f))) for e in sentence.entities}


def reference_value(
    name: str, mark: Mark, words: tuple[str, ...], side: set[Mark], gold: set[Mark], train: list[Sentence], use_paper: bool
) -> Any:
    type, indices = mark
    string = [words[n] for n in sorted(indices)]
    occurrences = [
        (n, frozenset(range(k, k + len(string)))) for n, s in enumerate(train) for k in range(len(s.words) - len(string) + 1)
    ]
    occurrences += [(n, indices) for n, s in enumerate(train) for _, indices in marks(s)]
    occurrences = [(n, indices) for n, indices in set(occurrences) if [train[n].words[k] for k in sorted(indices)] == string]
    labelled = [t for n, indices in occurrences for t, other in marks(train[n]) if other == indices]
    inside = [(a, b) for a in gold for b in gold if word_range(b) < word_range(a)]  # b is inside a
    is_nested, is_covering = (
        any(word_range(mark) < word_range(a) for a, _ in inside),
        any(word_range(b) < word_range(mark) for _, b in inside),
    )
    if name == "eCon" and use_paper:
        types = [t for s in train for t, _ in marks(s)]
        return types.count(type) / len(types) if types else 0
    if name == "eDen" and use_paper:
        return len(side) / len(words)
    return {
        "eLen": len(indices),
        "tLen": len(words),
        "eCon": labelled.count(type) / len(occurrences) if occurrences else 0,
        "eDen": len(frozenset().union(*(p for _, p in side))) / len(words),
        "oDen": sum(all(word not in s.words for s in train) for word in words) / len(words),
        "frequency": len(occurrences),
        "seen": "seen" if labelled else "unseen",
        "nesting": {(0, 0): "flat", (1, 0): "nested", (0, 1): "covering", (1, 1): "both"}[is_nested, is_covering],
        "discontinuous": "continuous" if max(indices) - min(indices) < len(indices) else "discontinuous",
    }[name]


def word_range(mark: Mark) -> frozenset[int]:
    return frozenset(range(min(mark[1]), max(mark[1]) + 1))


@settings(max_examples=100, deadline=None)
@given(corpora(), st.sampled_from(sorted(ATTRIBUTES)), st.booleans(), st.sampled_from([None, 2, 3, (0.3, 1, 2.5)]))
def test_buckets_match_the_reference(data: Any, name: str, use_paper: bool, cuts: Any) -> None:
    gold, predicted, train = data
    attribute = ATTRIBUTES[name]
    buckets = bucket_scores(
        gold,
        predicted,
        TrainIndex(train),
        attribute=name,
        cuts=None if attribute.categories else cuts,
        use_paper_definition=use_paper,
    )
    counts = {bucket.name: [] for bucket in buckets}
    for sentence in gold:
        gold_marks = marks(sentence)
        predicted_marks = next((marks(other) for other in predicted if other.id == sentence.id), set())
        rows = {bucket_name: [0, 0, 0] for bucket_name in counts}
        for mark in gold_marks | predicted_marks:
            side = gold_marks if mark in gold_marks else predicted_marks
            value = reference_value(name, mark, sentence.words, side, gold_marks, train, use_paper)
            (bucket_name,) = (b.name for b in buckets if (b.name == value if attribute.categories else contains(b, value)))
            added = (mark in gold_marks & predicted_marks, mark in predicted_marks, mark in gold_marks)
            rows[bucket_name] = [count + more for count, more in zip(rows[bucket_name], added, strict=True)]
        for bucket_name, row in rows.items():
            counts[bucket_name].append(tuple(row))
    for bucket in buckets:
        totals = (sum(row[n] for row in counts[bucket.name]) for n in (2, 1, 0))
        assert bucket.score == Score(*totals)
        assert bucket.interval == f1_interval(counts[bucket.name])


def contains(bucket: Any, value: float) -> bool:
    return (bucket.above is None or bucket.above < value) and (bucket.up_to is None or value <= bucket.up_to)


@settings(max_examples=100, deadline=None)
@given(corpora(), st.sampled_from(sorted(ATTRIBUTES)), st.booleans())
def test_buckets_sum_to_the_overall_counts_with_constant_supports(data: Any, name: str, is_retokenised: bool) -> None:
    gold, predicted, train = data
    if is_retokenised:  # every predicted sentence is one word
        predicted = [
            Sentence(s.id, ("".join(s.words),), tuple({entity(e.type, (0, 1)) for e in s.entities})) for s in predicted
        ]
    overall = evaluate(gold, predicted).entities.micro
    buckets = bucket_scores(gold, predicted, train, attribute=name)
    scores = [bucket.score for bucket in buckets]
    assert Score(*(sum(getattr(s, key) for s in scores) for key in ("support", "predicted", "correct"))) == overall
    # Supports do not depend on the system.
    joined = [Sentence("x", tuple("".join(w for s in gold for w in s.words)))] if gold else []
    normal, empty, resegmented = (
        [(b.name, b.score.support) for b in rows]
        for rows in (buckets, *(bucket_scores(gold, side, train, attribute=name) for side in ([], joined)))
    )
    assert normal == empty == resegmented
