"""Agreement with seqeval, the usual scorer for flat NER."""

from __future__ import annotations

import random
import warnings

import pytest

from spanwise import Entity, Sentence
from spanwise.evaluation import evaluate

CORPORA = 1_000


def flat_sentence(chance: random.Random, id: str, length: int) -> Sentence:
    entities, word = [], 0
    while word < length:
        width = chance.randint(1, 3)
        if chance.random() < 0.4 and word + width <= length:
            entities.append(Entity(chance.choice(["PER", "LOC", "ORG"]), ((word, word + width),)))  # type: ignore[arg-type]
            word += width
        else:
            word += 1
    return Sentence(id, tuple("w" * length), tuple(entities))


def tags(sentence: Sentence) -> list[str]:
    labels = ["O"] * len(sentence.words)
    for entity in sentence.entities:
        start, end = entity.range
        labels[start:end] = [f"B-{entity.type}"] + [f"I-{entity.type}"] * (end - start - 1)
    return labels


def test_strict_scores_match_seqeval_on_flat_entities() -> None:
    metrics = pytest.importorskip("seqeval.metrics", reason="seqeval is not installed")
    from seqeval.scheme import IOB2

    chance, compared = random.Random(0), 0
    while compared < CORPORA:
        lengths = [chance.randint(1, 10) for _ in range(chance.randint(1, 4))]
        gold = [flat_sentence(chance, str(n), length) for n, length in enumerate(lengths)]
        predicted = [
            s if chance.random() < 0.5 else flat_sentence(chance, s.id, len(s.words)) for s in gold
        ]  # fmt: skip
        if not any(s.entities for s in gold + predicted):
            continue  # seqeval fails without entities
        compared += 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            report = metrics.classification_report(
                [tags(s) for s in gold],
                [tags(s) for s in predicted],
                mode="strict",
                scheme=IOB2,
                output_dict=True,
                zero_division=0,
            )
        scores = evaluate(gold, predicted).entities
        expected_types = {name: row for name, row in report.items() if not name.endswith("avg")}
        assert expected_types.keys() == scores.types.keys()
        for score, row in [
            (scores.micro, report["micro avg"]),
            *((scores.types[name], row) for name, row in expected_types.items()),
        ]:
            expected = (row["precision"], row["recall"], row["f1-score"], row["support"])
            assert (score.precision, score.recall, score.f1, score.support) == pytest.approx(expected)
        if all(row["support"] for row in expected_types.values()):  # seqeval also averages over types without gold
            assert scores.macro.f1 == pytest.approx(report["macro avg"]["f1-score"])


def test_entities_that_tags_cannot_represent() -> None:
    """Nested entities, two types on the same words, crossing and discontinuous entities."""
    words = tuple("abcdefgh")
    gold = [("X", ((0, 4),)), ("X", ((1, 3),)), ("Y", ((1, 3),)), ("Y", ((2, 6),)), ("Z", ((0, 1), (5, 6))), ("Z", ((5, 8),))]
    predicted = [
        ("X", ((0, 4),)),
        ("X", ((1, 2),)),
        ("Y", ((1, 3),)),
        ("Y", ((2, 6),)),
        ("Z", ((0, 1), (5, 6))),
        ("Z", ((0, 6),)),
    ]
    sides = ([Sentence("s", words, tuple(Entity(*row) for row in rows))] for rows in (gold, predicted))  # type: ignore[arg-type]
    scores = evaluate(*sides).entities
    assert (scores.micro.precision, scores.micro.recall, scores.micro.support) == (4 / 6, 4 / 6, 6)
    rates = {type: (score.precision, score.recall, score.f1, score.support) for type, score in scores.types.items()}
    assert rates == {"X": (0.5, 0.5, 0.5, 2), "Y": (1.0, 1.0, 1.0, 2), "Z": (0.5, 0.5, 0.5, 2)}
