"""Scores of groups of entities: edges, sums, and agreement with a slow reading of the definitions."""

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
from spanwise.evaluation import ATTRIBUTES, Score, TrainIndex, bucketed, evaluate, f1_interval
from spanwise.evaluation.buckets import equal_cuts

WORDS = tuple("abcdefgh")


def entity(type: str, *spans: tuple[int, int]) -> Entity:
    return Entity(type, spans)  # type: ignore[arg-type]


def test_published_edges() -> None:
    """Table 5: [1], [2], [3, 4], [5, ] for eLen; [1, 7], [8, 16], [17, 31], [32, ] for tLen."""
    lengths = (1, 2, 3, 4, 5, 9)
    gold = [Sentence(str(n), ("w",) * n, (entity("X", (0, n)),)) for n in lengths]
    assert [(b.name, b.score.support) for b in bucketed(gold, [], attribute="eLen")] == [
        ("XS", 1),
        ("S", 1),
        ("L", 2),
        ("XL", 2),
    ]
    gold = [Sentence(str(n), ("w",) * n, (entity("X", (0, 1)),)) for n in (1, 7, 8, 16, 17, 31, 32, 90)]
    buckets = bucketed(gold, [], attribute="tLen")
    assert [bucket.score.support for bucket in buckets] == [2, 2, 2, 2]
    assert [(bucket.above, bucket.up_to) for bucket in buckets] == [(None, 7), (7, 16), (16, 31), (31, None)]


def test_published_edges_that_are_shares() -> None:
    """[0, 0.01], (0.01, 0.025], (0.025, 0.05], (0.05, 1] for eDen; [0, 0.1], (0.1, 0.5], (0.5, 0.9], (0.9, 1] for eCon."""
    lengths = (200, 100, 99, 40, 39, 20, 19, 1)
    gold = [Sentence(str(n), ("w",) * n, (entity("X", (0, 1)),)) for n in lengths]
    assert [bucket.score.support for bucket in bucketed(gold, [], attribute="eDen")] == [2, 2, 2, 2]
    train, shares = [], {"a": 1, "b": 2, "c": 5, "d": 6, "e": 9, "f": 10, "g": 0}  # of ten occurrences each
    for word, often in shares.items():
        train += [Sentence("t", (word,), (entity("X", (0, 1)),) if n < often else ()) for n in range(10)]
    gold = [Sentence(word, (word,), (entity("X", (0, 1)),)) for word in shares]
    assert [bucket.score.support for bucket in bucketed(gold, [], train, attribute="eCon")] == [2, 2, 2, 1]


def test_hand_worked_scores() -> None:
    gold = [Sentence("1", WORDS, (entity("X", (0, 1)), entity("X", (2, 4)), entity("Y", (5, 6))))]
    found = [Sentence("1", WORDS, (entity("X", (0, 1)), entity("X", (2, 5)), entity("X", (5, 6))))]
    one, two, more, most = bucketed(gold, found, attribute="eLen")
    assert one.score == Score(support=2, predicted=2, correct=1)
    assert two.score == Score(support=1, predicted=0, correct=0)
    assert more.score == Score(support=0, predicted=1, correct=0)
    assert most.score == Score()
    assert (most.is_empty, two.is_empty, more.is_empty) == (True, False, False)
    assert [bucket.interval for bucket in (one, two, more, most)] == [None] * 4  # of one sentence nothing is sure
    often = [[replace(s, id=str(n)) for n in range(20) for s in side] for side in (gold, found)]
    assert bucketed(*often, attribute="eLen")[0].interval == f1_interval([(1, 2, 2)] * 20)


def test_a_right_prediction_stands_where_gold_has_it() -> None:
    """Its sentence looks sparser to the system that found half of it: the bucket of the density is gold's all the same."""
    gold = [Sentence("1", WORDS, (entity("X", (0, 2)), entity("X", (2, 4))))]
    found = [Sentence("1", WORDS, (entity("X", (0, 2)), entity("Y", (5, 6))))]
    sparse, dense = bucketed(gold, found, attribute="eDen", cuts=[0.45])
    assert dense.score == Score(support=2, predicted=1, correct=1)
    assert sparse.score == Score(support=0, predicted=1, correct=0)  # 3 of 8 words, as the predictions have it


def test_both_definitions_of_density() -> None:
    gold = [Sentence("1", WORDS, (entity("X", (0, 4)),))]  # one entity, four of eight words
    fixed, paper = (bucketed(gold, gold, attribute="eDen", cuts=[0.2], paper=paper) for paper in (False, True))
    assert [bucket.score.correct for bucket in fixed] == [0, 1]
    assert [bucket.score.correct for bucket in paper] == [1, 0]


def test_equal_counts() -> None:
    rng = random.Random(3)
    lengths = rng.sample(range(1, 400), 103)
    gold = [Sentence(str(n), ("w",) * n, (entity("X", (0, 1)),)) for n in lengths]
    supports = [bucket.score.support for bucket in bucketed(gold, [], attribute="tLen", cuts=5)]
    assert sum(supports) == 103
    assert max(supports) - min(supports) <= 1
    assert [b.name for b in bucketed(gold, [], attribute="tLen", cuts=1)] == ["all"]


@given(st.lists(st.integers(0, 6)), st.integers(1, 5))
def test_no_bucket_of_equal_counts_is_empty(values: list[int], parts: int) -> None:
    cuts = equal_cuts(values, parts)
    edges = [float("-inf"), *cuts, float("inf")]
    sizes = [sum(low < v <= high for v in values) for low, high in pairwise(edges)]
    assert cuts == sorted(set(cuts))
    assert len(sizes) <= parts
    assert all(sizes) or not values
    # A bucket is larger than its share only if it could not be divided: without its highest value it is within the share.
    for size, high in zip(sizes, cuts, strict=False):
        assert size - values.count(high) < len(values) / parts


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"attribute": "length"}, "there is no attribute 'length'; there are eLen, tLen"),
        ({"attribute": "eCon"}, "needs the training sentences"),
        ({"attribute": "nesting", "cuts": 3}, "flat, nested, covering, both, which cannot be cut"),
        ({"cuts": [2, 2]}, "rising numbers, not"),
        ({"cuts": [1, float("nan")]}, "rising numbers, not"),
        ({"cuts": 0}, "one bucket or more, not 0"),
    ],
)
def test_what_cannot_be_done_is_said(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SpanwiseError, match=message):
        bucketed([], [], **options)


def test_json_is_plain() -> None:
    gold = [Sentence("1", WORDS, (entity("X", (0, 2)),))]
    record = json.loads(json.dumps([bucket.to_json() for bucket in bucketed(gold, gold)]))[1]
    assert {key: record[key] for key in ("name", "above", "up_to", "f1", "support")} == {
        "name": "S", "above": 1, "up_to": 2, "f1": 1.0, "support": 1,
    }  # fmt: skip
    assert record["interval"] is None


# Random corpora against a slow, literal reading.


@st.composite
def annotated(draw: st.DrawFn, id: str, words: tuple[str, ...]) -> Sentence:
    marks = draw(st.lists(st.tuples(st.sampled_from("XY"), st.sets(st.integers(0, len(words) - 1), min_size=1)), max_size=5))
    return Sentence(id, words, tuple(entity(type, *((n, n + 1) for n in sorted(places))) for type, places in marks))


@st.composite
def corpora(draw: st.DrawFn) -> tuple[list[Sentence], list[Sentence], list[Sentence]]:
    words = st.lists(st.sampled_from("abc"), min_size=1, max_size=7).map(tuple)
    train, gold, found = [], [], []
    for number in range(draw(st.integers(0, 4))):
        gold.append(draw(annotated(str(number), draw(words))))
        if draw(st.integers(0, 4)):
            other = draw(annotated(str(number), gold[-1].words))
            kept = [e for e in gold[-1].entities if draw(st.booleans())]
            found.append(Sentence(other.id, other.words, (*kept, *other.entities)))
    train = [draw(annotated("t", draw(words))) for _ in range(draw(st.integers(0, 3)))]
    return gold, found, train


Mark = tuple[str, frozenset[int]]


def marks(sentence: Sentence) -> set[Mark]:
    return {(e.type, frozenset(n for f in e.fragments for n in range(*f))) for e in sentence.entities}


def literal(
    name: str, mark: Mark, words: tuple[str, ...], side: set[Mark], gold: set[Mark], train: list[Sentence], paper: bool
) -> Any:
    type, places = mark
    string = [words[n] for n in sorted(places)]
    spots = [
        (n, frozenset(range(k, k + len(string)))) for n, s in enumerate(train) for k in range(len(s.words) - len(string) + 1)
    ]
    spots += [(n, places) for n, s in enumerate(train) for _, places in marks(s)]
    spots = [(n, places) for n, places in set(spots) if [train[n].words[k] for k in sorted(places)] == string]
    labelled = [t for n, places in spots for t, other in marks(train[n]) if other == places]
    inside = [(a, b) for a in gold for b in gold if rim(b) < rim(a)]  # b is inside a
    is_nested, is_covering = any(rim(mark) < rim(a) for a, _ in inside), any(rim(b) < rim(mark) for _, b in inside)
    if name == "eCon" and paper:
        types = [t for s in train for t, _ in marks(s)]
        return types.count(type) / len(types) if types else 0
    if name == "eDen" and paper:
        return len(side) / len(words)
    return {
        "eLen": len(places),
        "tLen": len(words),
        "eCon": labelled.count(type) / len(spots) if spots else 0,
        "eDen": len(frozenset().union(*(p for _, p in side))) / len(words),
        "oDen": sum(all(word not in s.words for s in train) for word in words) / len(words),
        "frequency": len(spots),
        "seen": "seen" if labelled else "unseen",
        "nesting": {(0, 0): "flat", (1, 0): "nested", (0, 1): "covering", (1, 1): "both"}[is_nested, is_covering],
        "discontinuous": "continuous" if max(places) - min(places) < len(places) else "discontinuous",
    }[name]


def rim(mark: Mark) -> frozenset[int]:
    return frozenset(range(min(mark[1]), max(mark[1]) + 1))


@settings(max_examples=300, deadline=None)
@given(corpora(), st.sampled_from(sorted(ATTRIBUTES)), st.booleans(), st.sampled_from([None, 2, 3, (0.3, 1, 2.5)]))
def test_buckets_are_what_a_slow_reading_gives(data: Any, name: str, paper: bool, cuts: Any) -> None:
    gold, found, train = data
    kind = ATTRIBUTES[name]
    buckets = bucketed(gold, found, TrainIndex(train), attribute=name, cuts=None if kind.categories else cuts, paper=paper)
    counts = {bucket.name: [] for bucket in buckets}
    for sentence in gold:
        right = marks(sentence)
        claims = next((marks(f) for f in found if f.id == sentence.id), set())
        rows = {name: [0, 0, 0] for name in counts}
        for mark in right | claims:
            own = right if mark in right else claims
            value = literal(name, mark, sentence.words, own, right, train, paper)
            (home,) = (b.name for b in buckets if (b.name == value if kind.categories else holds(b, value)))
            rows[home] = [
                n + k for n, k in zip(rows[home], (mark in right & claims, mark in claims, mark in right), strict=True)
            ]
        for bucket_name, row in rows.items():
            counts[bucket_name].append(tuple(row))
    for bucket in buckets:
        correct, predicted, support = (sum(row[n] for row in counts[bucket.name]) for n in range(3))
        assert bucket.score == Score(support, predicted, correct)
        assert bucket.interval == f1_interval(counts[bucket.name])


def holds(bucket: Any, value: float) -> bool:
    return (bucket.above is None or bucket.above < value) and (bucket.up_to is None or value <= bucket.up_to)


@settings(max_examples=100, deadline=None)
@given(corpora(), st.sampled_from(sorted(ATTRIBUTES)), st.booleans())
def test_buckets_sum_to_the_whole(data: Any, name: str, other_words: bool) -> None:
    gold, found, train = data
    if other_words:  # every prediction spells its sentence in one word, and so finds the whole of it or nothing
        found = [Sentence(s.id, ("".join(s.words),), tuple({entity(e.type, (0, 1)) for e in s.entities})) for s in found]
    whole = evaluate(gold, found).entities.micro
    scores = [bucket.score for bucket in bucketed(gold, found, train, attribute=name)]
    assert Score(*(sum(getattr(s, key) for s in scores) for key in ("support", "predicted", "correct"))) == whole


@settings(max_examples=50, deadline=None)
@given(corpora(), st.sampled_from(sorted(ATTRIBUTES)))
def test_supports_do_not_depend_on_the_system(data: Any, name: str) -> None:
    gold, found, train = data
    joined = [Sentence("x", tuple("".join(w for s in gold for w in s.words)))] if gold else []
    one, other, cut_elsewhere = (
        [(b.name, b.score.support) for b in bucketed(gold, side, train, attribute=name)] for side in (found, [], joined)
    )
    assert one == other == cut_elsewhere
