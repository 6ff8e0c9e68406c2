"""A threshold that dev chooses, compared with scoring dev at every candidate."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from spanwise.core.types import Entity, Sentence
from spanwise.decoding.thresholds import apply_threshold
from spanwise.evaluation import evaluate
from spanwise.heads.base import Labels
from spanwise.heads.grid import Grid, GridSettings
from spanwise.heads.tuned_threshold import CANDIDATES, MIN_ENTITIES, choose_threshold

WORDS = tuple("abcdefgh")


def make_dev(seed: int, count: int = 40) -> tuple[list[Sentence], list[Sentence]]:
    """Gold and candidates: gold entities have higher scores, but not always."""
    generator, gold, predicted = random.Random(seed), [], []
    for number in range(count):
        entities = [Entity(generator.choice("AB"), ((i, i + 1),)) for i in range(8) if generator.random() < 0.4]
        candidates = [Entity(e.type, e.fragments, round(generator.betavariate(2, 1.5), 6)) for e in entities]
        candidates += [
            Entity("A", ((i, i + 1),), round(generator.betavariate(1.5, 2.5), 6)) for i in range(8) if generator.random() < 0.3
        ]
        gold.append(Sentence(f"s{number}", WORDS, tuple(entities)))
        predicted.append(Sentence(f"s{number}", WORDS, tuple(c for c in candidates if (c.score or 0) >= CANDIDATES[0])))
    return gold, predicted


def make(**settings: Any) -> Grid:
    return Grid(4, Labels(("A", "B")), GridSettings(max_width=2, decoding="flat", **settings))


def predicting(head: Grid, candidates: list[Sentence]) -> Callable[[], list[Sentence]]:
    """Predict as the head would with its current threshold."""
    return lambda: list(apply_threshold(candidates, head.threshold))


@pytest.mark.parametrize("seed", range(5))
def test_the_chosen_threshold_has_the_best_f1_of_all_candidates(seed: int) -> None:
    gold, predicted = make_dev(seed)
    f1 = {t: evaluate(gold, list(apply_threshold(predicted, t))).entities.micro.f1 for t in CANDIDATES}
    assert f1[choose_threshold(gold, predicted)] == max(f1.values())
    assert min(f1.values()) < max(f1.values())


def test_few_entities_leave_the_threshold_at_one_half() -> None:
    gold, predicted = make_dev(1)
    best = choose_threshold(gold, predicted)
    small = next(n for n in range(40, 0, -1) if sum(len(s.entities) for s in gold[:n]) < MIN_ENTITIES)
    assert (best, choose_threshold(gold[:small], predicted[:small])) == (best, 0.5)
    assert best != 0.5


def test_tuning_sets_and_records_the_threshold() -> None:
    (gold, candidates), head = make_dev(1), make()
    assert head.tune(gold, predicting(head, candidates))
    assert head.threshold == head.settings.threshold == choose_threshold(gold, candidates) != 0.5
    assert not head.tune(gold, predicting(head, candidates))  # chosen once


def test_dev_scores_use_the_tuned_threshold_and_leave_the_head_unchanged() -> None:
    (gold, candidates), head = make_dev(1), make()
    tuned = head.predict_tuned(gold, predicting(head, candidates))
    assert tuned == list(apply_threshold(candidates, choose_threshold(gold, candidates)))
    assert (head.threshold, head.settings.threshold) == (0.5, "dev")


def test_the_threshold_does_not_change_discontinuous_entities() -> None:
    """They are joined from fragments, so wrong ones with a low score are no reason for a higher threshold."""
    (gold, candidates), head = make_dev(2), make()
    more = [replace(s, entities=(*s.entities, Entity("B", ((0, 1), (4, 5)), 0.3))) for s in candidates]
    assert choose_threshold(gold, more) == choose_threshold(gold, candidates)
    with_discontinuous = head.predict_tuned(gold, predicting(head, more))
    assert all(sentence.entities[-1].is_discontinuous for sentence in with_discontinuous)
    contiguous = [replace(sentence, entities=sentence.entities[:-1]) for sentence in with_discontinuous]
    assert contiguous == head.predict_tuned(gold, predicting(head, candidates))


def test_a_given_threshold_stays() -> None:
    (gold, candidates), head = make_dev(1), make(threshold=0.6)
    assert not head.tune(gold, predicting(head, candidates))
    assert head.predict_tuned(gold, predicting(head, candidates)) == list(apply_threshold(candidates, 0.6))
    assert head.threshold == 0.6
