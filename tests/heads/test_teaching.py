"""Heads that learn the probabilities of teachers: their targets and losses follow from the definition."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny import corpus, model

from spanwise.core.types import Entity, Sentence
from spanwise.decoding.decode import Predictions
from spanwise.heads.abilities import LearnsProbabilities, find_ability
from spanwise.heads.base import Head
from spanwise.losses.smoothing import SoftSpans
from spanwise.losses.teaching import TaughtSentence
from spanwise.models.model import Model
from spanwise.training.distillation import _teach
from spanwise.training.teachers import Opinion

SOFT = ("biaffine", "deep-span", "deep-span-pruned", "global-pointer", "grid", "shallow-span", "sng", "spanner")
SMALL = {"sng": ("head.hidden=4",), "grid": ("head.channels=6", "head.rank=4")}
WORDS = ("the", "oslo", "aspirin", "gave", "lima")
GOLD = Sentence("s", WORDS, (Entity("Place", ((1, 2),)),))


def spans(*rows: tuple[int, int, int, float]) -> SoftSpans:
    columns = np.array(rows, np.float64).reshape(-1, 4).T
    return SoftSpans(*columns[:3].astype(np.int64), columns[3].astype(np.float32))  # type: ignore[call-arg]


TEACHER = spans((1, 2, 1, 0.8), (1, 3, 0, 0.3), (2, 3, 0, 0.6))


def build(recipe: str, tiny_bert: Path, overrides: Iterable[str] = ()) -> Model:
    encoder = "static" if recipe == "sng" else tiny_bert
    return model(encoder, recipe, (*SMALL.get(recipe, ()), *overrides))


def learner(built: Model) -> LearnsProbabilities:
    head = find_ability(built.head, LearnsProbabilities)
    assert head is not None
    return head


def probabilities(head: LearnsProbabilities, sentence: Sentence) -> dict[tuple[int, int, int], float]:
    (spans,) = head.target_spans([sentence])
    return {(int(s), int(e), int(c)): float(m) for s, e, c, m in zip(*spans, strict=True)}


@torch.no_grad()
def loss(built: Model, sentences: list[Sentence], **options: Any) -> float:
    """The loss with all negatives; pruning keeps all spans, so that every span counts."""
    states = built.encoder(built.encoder.collate(built.encoder.prepare(sentences)))
    return float(built.head.loss(states, built.head.targets(sentences, gold=True)).sums.sum())


@pytest.mark.parametrize("recipe", SOFT)
def test_targets_are_the_mean_of_gold_and_teachers(recipe: str, tiny_bert: Path) -> None:
    head = learner(build(recipe, tiny_bert))
    gold = probabilities(head, GOLD)
    for weight in (0.0, 0.25, 1.0):
        actual = probabilities(head, TaughtSentence.teach(GOLD, TEACHER, weight))
        teacher = {(int(s), int(e), int(c)): float(m) for s, e, c, m in zip(*TEACHER, strict=True)}
        expected = {key: weight * gold.get(key, 0.0) + (1 - weight) * teacher.get(key, 0.0) for key in gold | teacher}
        assert actual == pytest.approx({key: value for key, value in expected.items() if value > 0}, abs=1e-6)


@pytest.mark.parametrize("recipe", ["biaffine", "deep-span", "grid", "shallow-span", "sng", "spanner"])
def test_the_loss_is_the_mean_of_the_losses_of_gold_and_teachers(recipe: str, tiny_bert: Path) -> None:
    """Cross-entropy is linear in its targets."""
    built = build(recipe, tiny_bert)
    mixed, taught, gold = (loss(built, [TaughtSentence.teach(GOLD, TEACHER, weight)]) for weight in (0.3, 0.0, 1.0))
    assert gold == pytest.approx(loss(built, [GOLD]))
    assert mixed == pytest.approx(0.3 * gold + 0.7 * taught, rel=1e-5)
    assert taught != pytest.approx(gold, rel=1e-3)


@pytest.mark.parametrize("recipe", SOFT)
def test_certain_teachers_are_gold(recipe: str, tiny_bert: Path) -> None:
    overrides = () if "pointer" in recipe else ("head.smoothing=0",)
    built = build(recipe, tiny_bert, overrides)
    entity = replace(GOLD, entities=(Entity("Drug", ((2, 3),)),))
    certain = TaughtSentence.teach(entity, spans((2, 3, 0, 1.0)), 0.0)
    assert loss(built, [certain, GOLD]) == pytest.approx(loss(built, [entity, GOLD]), rel=1e-5)


@pytest.mark.parametrize("weight", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("annotated", [((0, 2),), ("Place",), ()])
def test_teachers_decide_open_spans_with_any_weight_of_gold(tiny_bert: Path, annotated: Any, weight: float) -> None:
    """Known spans are the mean of gold and teachers; annotated entities are known in every part."""
    built = build("spanner", tiny_bert, ("head.smoothing=0", f"training.gold_weight={weight}"))
    entities = (*GOLD.entities, Entity("Place", ((4, 5),)))
    teacher = spans((1, 2, 1, 0.8), (1, 3, 0, 0.3), (2, 3, 0, 0.6), (3, 4, 1, 0.5), (4, 5, 1, 0.4))
    marked = replace(GOLD, entities=entities, annotated=annotated)
    taught = _teach(marked, Opinion(teacher, Predictions(())), built, is_decided=True)
    share = 1 - weight
    expected = {(1, 2, 1): weight + 0.8 * share, (1, 3, 0): 0.3, (2, 3, 0): 0.6, (4, 5, 1): weight + 0.4 * share}
    expected[3, 4, 1] = 0.5 * share if annotated == ("Place",) else 0.5
    expected = {key: value for key, value in expected.items() if value}
    assert probabilities(learner(built), taught) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("recipe", ["biaffine", "global-pointer", "spanner"])
@pytest.mark.parametrize("annotated", [((0, 2),), ("Place",)])
def test_teachers_have_no_weight_at_spans_that_stay_open(recipe: str, annotated: Any, tiny_bert: Path) -> None:
    """Inside a wrapper marks stay. Their loss has no negatives, so a low probability would count as a positive."""
    built = build(recipe, tiny_bert)
    marked = replace(GOLD, annotated=annotated)
    actual, expected = (loss(built, [TaughtSentence.teach(marked, spans(*rows), 0.5)]) for rows in (
        [(1, 2, 1, 0.8), (1, 3, 0, 0.02), (2, 3, 0, 0.02)], [(1, 2, 1, 0.8)],
    ))  # fmt: skip
    assert actual == pytest.approx(expected, rel=1e-6)


def test_teachers_have_weight_where_open_spans_are_weak_negatives(tiny_bert: Path) -> None:
    head = learner(build("spanner", tiny_bert, ("head.smoothing=0", "training.marked_share=0.5")))
    taught = TaughtSentence.teach(replace(GOLD, annotated=()), spans((2, 3, 0, 0.6)), 0.5)
    assert probabilities(head, taught) == pytest.approx({(1, 2, 1): 0.5, (2, 3, 0): 0.3})


def test_wide_spans_are_not_learned_and_types_of_a_span_share_its_probability(tiny_bert: Path) -> None:
    head = learner(build("spanner", tiny_bert, ("head.max_width=2",)))
    taught = TaughtSentence.teach(GOLD, spans((0, 3, 0, 0.9), (0, 2, 0, 0.9), (0, 2, 1, 0.6)), 0.0)
    assert probabilities(head, taught) == pytest.approx({(0, 2, 0): 0.6, (0, 2, 1): 0.4})
    pointer = learner(build("global-pointer", tiny_bert))
    assert probabilities(pointer, taught) == pytest.approx({(0, 3, 0): 0.9, (0, 2, 0): 0.9, (0, 2, 1): 0.6})


def test_spans_of_subwords(tiny_bert: Path) -> None:
    built = build("deep-span", tiny_bert, ("head.unit=subwords", "head.max_width=30"))
    counts = built.encoder.subword_counts(GOLD)
    starts = np.concatenate(([0], counts.cumsum()))
    assert counts.max() > 1
    actual = probabilities(learner(built), TaughtSentence.teach(GOLD, TEACHER, 0.0))
    assert set(actual) == {(starts[s], starts[e], c) for s, e, c, _ in zip(*TEACHER, strict=True)}


def test_parts_that_learn_labels_ignore_the_probabilities(tiny_bert: Path) -> None:
    """Tags of a bundle, and fragments of discontinuous entities, are learned from entities."""

    def targets(head: Head, sentence: Sentence) -> dict[str, list[Any]]:
        return {name: value.tolist() for name, value in head.targets([sentence], gold=True).items()}

    bundle = build("bl-spanner", tiny_bert).head
    taught = TaughtSentence.teach(GOLD, TEACHER, 0.0)
    assert targets(bundle, taught)["sequence.tags"] == targets(bundle, GOLD)["sequence.tags"]
    assert targets(bundle, taught)["span.mass"] != targets(bundle, GOLD)["span.mass"]
    split = model(tiny_bert, "global-pointer", ("head.discontinuous=[Drug]",), data=corpus())
    entity = replace(GOLD, entities=(*GOLD.entities, Entity("Drug", ((0, 1), (3, 4)))))
    actual, expected = (targets(split.head, s) for s in (TaughtSentence.teach(entity, TEACHER, 0.0), entity))
    parts = [name for name in expected if name.startswith(("fragments", "links", "types"))]
    assert parts
    assert all(actual[name] == expected[name] for name in parts)
    assert find_ability(build("seqner", tiny_bert).head, LearnsProbabilities) is None
    assert find_ability(build("locate-label", tiny_bert).head, LearnsProbabilities) is None
