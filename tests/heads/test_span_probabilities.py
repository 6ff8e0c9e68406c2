"""Span probabilities, span vectors and class weights of all heads, compared with scores."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny import METHODS, corpus, encoded, model, sentences, with_relations

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Corpus, Entity, Sentence
from spanwise.encoders.base import TokenStates
from spanwise.heads.abilities import HasSpanProbabilities, HasSpanVectors, find_ability
from spanwise.heads.base import Head
from spanwise.models.model import Model
from spanwise.prediction.span_vectors import span_probabilities, span_vectors
from spanwise.recipes.catalog import configure

# "sng-paper" only types given spans; "locate-label-paper-genia" uses the head of "locate-label".
RECIPES = sorted(set(METHODS) - {"sng-paper", "locate-label-paper-genia", "gplinker"})
WITHOUT_VECTORS = {
    "biaffine", "bl-seqner", "efficient-global-pointer", "global-pointer", "gp-relations", "seqner", "seqner-crf",
    "span-relations",
}  # fmt: skip
INDEPENDENT_TYPES = {"efficient-global-pointer", "global-pointer", "gp-relations"}  # per-type scores
SENTENCES = (*sentences(5), Sentence("one", ("quito",)), Sentence("empty", ()))


def build_model(encoder: Path, recipe: str, overrides: Iterable[str] = ()) -> Model:
    if "relations" not in recipe:
        built = model(encoder, recipe, overrides)
        if recipe == "seqner-crf":  # as after training: only valid tag sequences
            allowed, crf = built.head.transitions.clamp(min=-20), built.head.crf
            crf.transitions.data, crf.start.data = allowed, allowed[0]
        return built
    torch.manual_seed(0)
    config = configure(recipe, encoder=str(encoder), overrides=list(overrides))
    return Model.build(config, with_relations(corpus())).eval()


def span_head(built: Model) -> Head:
    """Return the head that scores spans, without its wrappers."""
    return getattr(built.head, "entities", built.head.prediction_head)  # type: ignore[no-any-return]


@torch.no_grad()
def head_inputs(built: Model) -> tuple[Head, TokenStates, dict[str, Any]]:
    head = span_head(built)
    return head, encoded(built.encoder, built.encoder.prepare(SENTENCES)), head.targets(SENTENCES, gold=False)


def rows_by_span(packed: Any) -> dict[tuple[int, int, int], np.ndarray]:
    rows = zip(packed.sentence.tolist(), packed.start.tolist(), packed.end.tolist(), strict=True)
    return dict(zip(rows, packed.vectors.detach().double().numpy(), strict=True))


@pytest.mark.parametrize("recipe", RECIPES)
@torch.no_grad()
def test_probabilities_agree_with_scores(tiny_bert: Path, recipe: str) -> None:
    head, states, targets = head_inputs(build_model(tiny_bert, recipe))
    packed, scored = head.span_probabilities(states, targets), head.score(states, targets)
    probabilities = rows_by_span(packed)
    assert len(probabilities) == len(packed.start)  # no span occurs twice
    assert packed.vectors.shape[1] == 3  # Drug, Place and NONE
    rows = np.stack(list(probabilities.values()))
    assert ((rows >= 0) & (rows <= 1)).all()
    if recipe in INDEPENDENT_TYPES:
        np.testing.assert_allclose(rows[:, 2], 1 - rows[:, :2].max(1), atol=1e-6)
    else:
        np.testing.assert_allclose(rows.sum(1), 1, atol=1e-5)
    predicted = set()
    for sentence, start, end, label, score in zip(*(column.tolist() for column in scored.columns), strict=True):
        if score > 0:  # locate-label gives rejected spans a score of 0
            assert score == pytest.approx(probabilities[sentence, start, end][label], abs=1e-5)
            predicted.add((sentence, start, end))
    if "seq" not in recipe:  # these predict the best tags of the whole sentence
        assert predicted == {span for span, row in probabilities.items() if row.argmax() != 2}
        assert predicted


# Class weights of pruned spans give only one of the two averaged probabilities; test_pruned_span.py
# tests the mean.
@pytest.mark.parametrize("recipe", sorted(set(RECIPES) - WITHOUT_VECTORS - {"deep-span-pruned"}))
@torch.no_grad()
def test_class_weights_turn_vectors_into_probabilities(tiny_bert: Path, recipe: str) -> None:
    """Log-probabilities are weights times vectors plus a bias per class and a constant per span."""
    head, states, targets = head_inputs(build_model(tiny_bert, recipe))
    weights = head.class_weights
    assert weights is not None
    vectors, probabilities = (
        rows_by_span(head.span_vectors(states, targets)),
        rows_by_span(head.span_probabilities(states, targets)),
    )
    assert set(probabilities) <= set(vectors)
    bias = np.stack([np.log(row) - weights.double().numpy() @ vectors[span] for span, row in probabilities.items()])
    bias -= bias[:, -1:]
    np.testing.assert_allclose(bias, np.broadcast_to(bias[0], bias.shape), atol=2e-3)


@pytest.mark.parametrize("recipe", sorted(WITHOUT_VECTORS))
def test_heads_without_span_vectors_are_refused(tiny_bert: Path, recipe: str) -> None:
    built = build_model(tiny_bert, recipe)
    assert find_ability(built.head, HasSpanVectors) is None
    with pytest.raises(SpanwiseError, match="has no span vectors"):
        span_vectors(built, SENTENCES[:1])


@pytest.mark.parametrize(
    ("recipe", "overrides"),
    [
        ("bl-spanner", []),
        ("bl-seqner", []),
        ("span-relations", ["head.entities={kind: spanner}"]),
        ("gp-relations", []),
    ],
)
def test_wrappers_have_the_abilities_of_the_wrapped_head(tiny_bert: Path, recipe: str, overrides: list[str]) -> None:
    built = build_model(tiny_bert, recipe, overrides)
    head, states, targets = head_inputs(built)
    assert find_ability(built.head, HasSpanProbabilities) is head
    with torch.no_grad():
        expected = rows_by_span(head.span_probabilities(states, targets))
    actual = {
        (number, *span): row
        for number, (spans, values) in enumerate(span_probabilities(built, SENTENCES))
        for span, row in zip(spans.tolist(), values, strict=True)
    }
    assert actual.keys() == expected.keys()
    assert all(np.allclose(actual[span], row, atol=1e-6) for span, row in expected.items())
    assert (find_ability(built.head, HasSpanVectors) is None) == (recipe in WITHOUT_VECTORS and not overrides)


def test_softmax_tag_probabilities_by_hand(tiny_bert: Path) -> None:
    """A span has the geometric mean of its tags (O, B-Drug, I-Drug, B-Place, I-Place)."""
    head = span_head(model(tiny_bert, "seqner"))
    tag_probabilities = torch.tensor([[[0.2, 0.4, 0.1, 0.2, 0.1], [0.1, 0.1, 0.4, 0.3, 0.1]]])
    head.emissions = lambda states: (tag_probabilities.log(), torch.ones(1, 2, dtype=torch.bool))  # type: ignore[method-assign]
    probabilities = rows_by_span(head.span_probabilities(None, {}))  # type: ignore[arg-type]
    np.testing.assert_allclose(probabilities[0, 0, 1], [0.4, 0.2, 0.4], atol=1e-6)
    np.testing.assert_allclose(probabilities[0, 1, 2], [0.1, 0.3, 0.6], atol=1e-6)
    drug, place = 0.4, 0.02**0.5
    np.testing.assert_allclose(probabilities[0, 0, 2], [drug, place, 1 - drug - place], atol=1e-6)


def test_given_spans_have_probabilities_without_none() -> None:
    """A fragment that is also a contiguous entity has the vector of that entity."""
    built = model("static", "sng", ["head.task=typing"])
    contiguous, discontinuous = Entity("Drug", ((0, 1),)), Entity("Place", ((0, 1), (2, 3)))
    both = Sentence("s1", ("aspirin", "and", "acid"), (discontinuous, contiguous))
    alone = Sentence("s2", ("aspirin", "and", "acid"), (contiguous,))
    for compute, size in ((span_probabilities, 2), (span_vectors, 400)):
        (spans, values), (_, expected) = compute(built, [both, alone])
        assert spans.tolist() == [[0, 1]]
        assert values.shape == (1, size)
        np.testing.assert_allclose(values, expected, atol=1e-6)
    head = find_ability(built.head, HasSpanVectors)
    assert head is built.head
    assert tuple(head.class_weights.shape) == (2, 400)


def test_a_discontinuous_wrapper_keeps_the_abilities_of_its_head(tiny_bert: Path) -> None:
    torch.manual_seed(0)
    train = tuple(
        Sentence(f"s{n}", ("left", "and", "right", "knee"), (Entity("X", ((0, 1), (3, 4))), Entity("X", ((2, 4),))))
        for n in range(4)
    )
    built = Model.build(configure("spanner", encoder=str(tiny_bert)), Corpus({"train": train}, "x")).eval()
    assert built.head.configured_head is not built.head
    assert find_ability(built.head, HasSpanVectors) is built.head.configured_head
    (spans, values), *_ = span_probabilities(built, train, [[(0, 1), (2, 4)]] * 4)  # type: ignore[list-item]
    assert spans.tolist() == [[0, 1], [2, 4]]
    assert values.shape == (2, 2)
