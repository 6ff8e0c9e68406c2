"""Agreement with a slow reference implementation on random corpora."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanwise import Entity, Relation, Sentence
from spanwise.evaluation import evaluate

LENGTH = 6
Mark = tuple[str, frozenset[int]]  # an entity as a type and a set of words


@st.composite
def entities(draw: st.DrawFn) -> tuple[Entity, ...]:
    result = []
    for _ in range(draw(st.integers(0, 5))):
        words = draw(st.sets(st.integers(0, LENGTH - 1), min_size=1))
        result.append(Entity(draw(st.sampled_from("ABC")), tuple((w, w + 1) for w in sorted(words))))  # type: ignore[misc]
    return tuple(result + result[: draw(st.integers(0, 1))])


@st.composite
def annotated(draw: st.DrawFn, id: str, words: tuple[str, ...]) -> Sentence:
    marked = draw(entities())
    number = st.integers(0, max(len(marked) - 1, 0))
    relation = st.builds(Relation, st.sampled_from("RS"), number, number)
    return Sentence(id, words, marked, tuple(draw(st.lists(relation, max_size=3 if marked else 0))))


@st.composite
def corpora(draw: st.DrawFn) -> tuple[list[Sentence], list[Sentence], list[Sentence]]:
    count = draw(st.integers(0, 4))
    gold, predicted = [], []
    for number in range(count):
        words = tuple(f"{draw(st.integers(0, 1))}" for _ in range(LENGTH))
        gold.append(draw(annotated(str(number), words)))
        if draw(st.booleans()) or draw(st.booleans()):
            copy = draw(st.booleans())
            predicted.append(gold[-1] if copy else draw(annotated(str(number), words)))
    train = [Sentence("t", s.words) for s in gold if draw(st.booleans())]
    return gold, draw(st.permutations(predicted)), train


def marks(sentence: Sentence | None) -> list[Mark]:
    result: list[Mark] = []
    for e in sentence.entities if sentence else ():
        mark = e.type, frozenset(w for f in e.fragments for w in range(f.start, f.end))
        if mark not in result:
            result.append(mark)
    return result


def score(support: int, predicted: int, correct: int, matched_gold: int | None = None) -> dict[str, Any]:
    p = correct / predicted if predicted else 0
    r = (correct if matched_gold is None else matched_gold) / support if support else 0
    f = 2 * p * r / (p + r) if p + r else 0
    numbers = {"precision": pytest.approx(p), "recall": pytest.approx(r), "f1": pytest.approx(f)}
    return {**numbers, "support": support, "predicted": predicted, "correct": correct}


def is_inside(mark: Mark, others: list[Mark]) -> bool:
    low, high = min(mark[1]), max(mark[1])
    ranges = [(min(words), max(words)) for _, words in others]
    return any(a <= low and high <= b and (a, b) != (low, high) for a, b in ranges)


def is_discontinuous(mark: Mark) -> bool:
    return len(mark[1]) < max(mark[1]) - min(mark[1]) + 1


@settings(max_examples=100, deadline=None)
@given(corpora())
def test_all_scores(data: tuple[list[Sentence], list[Sentence], list[Sentence]]) -> None:
    gold, predicted, train = data
    result = evaluate(gold, predicted, train).to_json()
    check_entities(gold, predicted, train, result)
    check_that_confusion_sums_to_supports_and_predictions(gold, predicted, result)
    check_relations(gold, predicted, result["relations"])


def check_entities(gold: list[Sentence], predicted: list[Sentence], train: list[Sentence], result: dict[str, Any]) -> None:
    sides = [(marks(g), marks(next((p for p in predicted if p.id == g.id), None))) for g in gold]

    def total(only: Any = lambda mark: True) -> dict[str, Any]:
        gold_marks = [[m for m in g if only(m)] for g, _ in sides]
        predicted_marks = [[m for m in p if only(m)] for _, p in sides]
        correct = sum(m in p for g, p in zip(gold_marks, predicted_marks, strict=True) for m in g)
        return score(sum(map(len, gold_marks)), sum(map(len, predicted_marks)), correct)

    assert result["micro"] == total()
    types = {m[0] for g, p in sides for m in g + p}
    assert result["types"] == {t: total(lambda mark, t=t: mark[0] == t) for t in types}
    averaged = [result["types"][t] for t in types if any(m[0] == t for g, _ in sides for m in g)]
    for name in ("precision", "recall", "f1"):
        mean = sum(numbers[name] for numbers in averaged) / len(averaged) if averaged else 0
        assert result["macro"][name] == pytest.approx(mean)

    spans = [({words for _, words in g}, {words for _, words in p}) for g, p in sides]
    counts = [sum(len(g) for g, _ in spans), sum(len(p) for _, p in spans), sum(len(g & p) for g, p in spans)]
    assert result["unlabelled"] == score(*counts)

    discontinuous = total(is_discontinuous)
    assert result["discontinuous"] == (discontinuous if discontinuous["support"] else None)

    nested, wrong, correct = 0, 0, 0
    for g, p in sides:
        nested += sum(is_inside(m, g) for m in g)
        correct += sum(is_inside(m, g) and m in p for m in g)
        wrong += sum(is_inside(m, p) and m not in g for m in p)
    assert result["nested"] == (score(nested, correct + wrong, correct) if nested else None)

    overlapping = [(sum(any(m[0] == o[0] and m[1] & o[1] for o in p) for m in g),
                sum(any(m[0] == o[0] and m[1] & o[1] for o in g) for m in p)) for g, p in sides]  # fmt: skip
    matched_gold, matched_predicted = sum(f for f, _ in overlapping), sum(r for _, r in overlapping)
    support, predictions = result["micro"]["support"], result["micro"]["predicted"]
    assert result["relaxed"] == {**score(support, predictions, matched_predicted, matched_gold), "matched_gold": matched_gold}

    known = [s.words for s in train]
    unseen = [side for side, s in zip(sides, gold, strict=True) if s.words not in known]
    counts = [sum(len(g) for g, _ in unseen), sum(len(p) for _, p in unseen), sum(m in p for g, p in unseen for m in g)]
    assert result["unseen_sentences"] == {**score(*counts), "sentences": len(unseen)}
    assert result["missing_sentences"] == len(gold) - len(predicted)


def check_that_confusion_sums_to_supports_and_predictions(
    gold: list[Sentence], predicted: list[Sentence], result: dict[str, Any]
) -> None:
    confusion, rows, columns = result["confusion"], Counter[str](), Counter[str]()
    for gold_type, row in confusion["counts"].items():
        rows[gold_type] += sum(row.values())
        for predicted_type, count in row.items():
            columns[predicted_type] += count
    rows.update(confusion["missed"])
    columns.update(confusion["spurious"])
    for type, numbers in result["types"].items():
        assert rows[type] == numbers["support"]
        assert columns[type] == numbers["predicted"]
        assert confusion["counts"].get(type, {}).get(type, 0) == numbers["correct"]
    # For every common span, as many types are paired as the side with fewer types has.
    pairs = 0
    for g in gold:
        gold_marks, predicted_marks = marks(g), marks(next((p for p in predicted if p.id == g.id), None))
        gold_spans, predicted_spans = Counter(words for _, words in gold_marks), Counter(words for _, words in predicted_marks)
        pairs += (gold_spans & predicted_spans).total()
    assert sum(count for row in confusion["counts"].values() for count in row.values()) == pairs


def check_relations(gold: list[Sentence], predicted: list[Sentence], result: dict[str, Any] | None) -> None:
    if not any(s.relations for s in gold) or not any(s.relations for s in predicted):
        assert result is None
        return
    assert result is not None
    for name, has_types in (("strict", True), ("boundaries", False)):

        def triples(sentence: Sentence | None, has_types: bool = has_types) -> set[Any]:
            ends = [(e.type if has_types else "", e.fragments) for e in sentence.entities] if sentence else []
            return {(r.type, ends[r.head], ends[r.tail]) for r in sentence.relations} if sentence else set()

        sides = [(triples(g), triples(next((p for p in predicted if p.id == g.id), None))) for g in gold]
        for type in {t[0] for g, p in sides for t in g | p}:
            of_type = [({t for t in g if t[0] == type}, {t for t in p if t[0] == type}) for g, p in sides]
            counts = [sum(len(g) for g, _ in of_type), sum(len(p) for _, p in of_type), sum(len(g & p) for g, p in of_type)]
            assert result[name]["types"][type] == score(*counts)
        counts = [sum(len(g) for g, _ in sides), sum(len(p) for _, p in sides), sum(len(g & p) for g, p in sides)]
        assert result[name]["micro"] == score(*counts)
