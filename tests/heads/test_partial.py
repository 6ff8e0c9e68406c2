"""Every head learns from partially annotated sentences: what is open counts neither for nor against."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny import METHODS, corpus, model, with_relations
from torch import Tensor

from spanwise.batching.batches import make_batch
from spanwise.core.types import Entity, Relation, Sentence, Span
from spanwise.heads.abilities import heads_with
from spanwise.heads.base import Head, Losses
from spanwise.models.model import Model

NEED_TRANSFORMER = {"deep-span", "deep-span-pruned"}
WORDS = corpus()["train"][0].words[:6]
EMPTY = Sentence("s", WORDS)
ENTITIES = (Entity("Drug", (Span(0, 1),)), Entity("Place", (Span(3, 4),)))
DISCONTINUOUS = Sentence("d", WORDS, (Entity("Drug", (Span(0, 1), Span(2, 3))),))


@pytest.fixture(params=METHODS)
def built(request: pytest.FixtureRequest, tiny_bert: Path) -> Model:
    return build(request.param, tiny_bert)


@cache
def build(recipe: str, tiny_bert: Path) -> Model:
    """A model without dropout whose open spans are ignored; GlobalPointer also predicts discontinuous entities."""
    data = with_relations(corpus(24))
    if recipe == "global-pointer":
        data = replace(data, splits={**data.splits, "train": (*data["train"], DISCONTINUOUS)})
    overrides = ("head.paper=[]", "encoder.glove.iterations=2") if recipe == "locate-label-paper-genia" else ()
    small = () if recipe in NEED_TRANSFORMER else ("encoder.pos_size=0",)
    built = model(tiny_bert if recipe in NEED_TRANSFORMER else "static", recipe, (*small, *overrides), data=data)
    set_share(built, 0.0)
    return built


def set_share(built: Model, share: float) -> None:
    for head in heads_with(built.head, Head):
        head.marked_share = share


def compute(built: Model, *sentences: Sentence) -> Losses:
    """The losses of sentences with all their negatives."""
    prepared = built.encoder.prepare(sentences)
    return built.losses(make_batch(built.encoder, built.head, sentences, prepared, np.arange(len(sentences)), gold=True))


def gradients(built: Model, loss: Tensor) -> dict[str, Tensor]:
    built.zero_grad(set_to_none=True)
    if loss.requires_grad:
        loss.backward()
    return {name: weight.grad.clone() for name, weight in built.named_parameters() if weight.grad is not None}


@pytest.mark.parametrize("marks", [(), ("Other",)])
def test_open_sentences_have_no_gradient(built: Model, marks: tuple[str, ...]) -> None:
    losses = compute(built, replace(EMPTY, annotated=marks))
    assert losses.mean.item() == pytest.approx(0, abs=1e-6)
    assert all(value.abs().max() < 1e-6 for value in gradients(built, losses.mean).values())
    if not built.needs_spans:
        assert compute(built, EMPTY).mean > 0.01  # without marks


def test_open_sentences_change_nothing_for_others(built: Model) -> None:
    gold = replace(EMPTY, entities=ENTITIES)
    alone, both = compute(built, gold), compute(built, gold, replace(EMPTY, annotated=()))
    torch.testing.assert_close(both.sums, torch.stack((alone.sums[0], torch.zeros(()))), rtol=1e-4, atol=1e-5)


def test_marks_of_the_whole_sentence_are_those_of_a_complete_one(built: Model) -> None:
    gold = replace(EMPTY, entities=ENTITIES, relations=(Relation("in", 0, 1),))
    expected = compute(built, gold).sums
    for marks in ((Span(0, len(WORDS)),), (Span(3, len(WORDS)), Span(0, 3))):
        torch.testing.assert_close(compute(built, replace(gold, annotated=marks)).sums, expected, rtol=1e-4, atol=1e-5)


def test_entities_count_in_open_parts(built: Model) -> None:
    losses = compute(built, replace(EMPTY, entities=ENTITIES, annotated=()))
    assert losses.mean > 0.01
    assert any(value.abs().max() > 0 for value in gradients(built, losses.mean).values())


@pytest.mark.parametrize("recipe", ["gp-relations", "gplinker", "span-relations", "spanwise"])
def test_relations_are_open_if_types_are_marked(recipe: str, tiny_bert: Path) -> None:
    """Marked types are types of entities, so nothing is known about unmarked relations, even if all types are marked."""
    built = build(recipe, tiny_bert)
    gold = replace(EMPTY, entities=ENTITIES)
    losses = [compute(built, replace(gold, annotated=marks)).parts["relations"].item() for marks in (("Drug", "Place"), None)]
    assert losses[0] == pytest.approx(0, abs=1e-6)
    assert losses[1] > 0.01


def test_known_parts_count(built: Model) -> None:
    if built.needs_spans:
        pytest.skip("types given spans")
    sums = [compute(built, replace(EMPTY, annotated=marks)).sums.item() for marks in ((), (Span(0, 2),), ("Drug",), None)]
    assert 0 <= sums[0] < 1e-5 < min(sums[1:3]) <= max(sums[1:3]) < sums[3] * (1 + 1e-5)


def test_weak_negatives_are_between_ignored_and_certain_ones(built: Model) -> None:
    if built.needs_spans:
        pytest.skip("types given spans")
    certain = compute(built, EMPTY).sums.item()
    try:
        set_share(built, 0.5)
        build_cache_free = replace(EMPTY, annotated=())
        weak = compute(built, build_cache_free).sums.item()
        limited = compute(built, replace(EMPTY, annotated=("Other",))).sums.item()
    finally:
        set_share(built, 0.0)
    assert 1e-4 < weak < certain
    assert limited == pytest.approx(0, abs=1e-5)  # what is not annotated at all is never a negative
