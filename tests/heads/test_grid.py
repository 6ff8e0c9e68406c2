"""The grid head, compared with loops over cells and their neighbours."""

from __future__ import annotations

from math import exp
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from pydantic import ValidationError
from torch import Tensor

from spanwise.core.types import Entity, Sentence
from spanwise.encoders.base import TokenStates
from spanwise.heads import head_class
from spanwise.heads.base import Labels
from spanwise.heads.grid import MAX_AUTOMATIC_WIDTH, Grid, GridSettings

LABELS = Labels(("A", "B"))
NONE = len(LABELS.entities)


def make(encoder: Any, **options: Any) -> Grid:
    torch.manual_seed(4)
    settings = {"channels": 6, "rank": 5, "max_width": 4, "decoding": "nested", "smoothing": 0.2, **options}
    head = Grid.build(encoder, LABELS, GridSettings(**settings))
    with torch.no_grad():
        head.classifier.weight.mul_(8.0)  # so that each class is the best for some spans
        head.classifier.bias.zero_()
    return head


def states_of(encoder: Any, *lengths: int) -> TokenStates:
    words = torch.randn(len(lengths), max(lengths), encoder.width, generator=torch.Generator().manual_seed(5))
    mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    return TokenStates(words, torch.zeros(len(lengths), encoder.width), mask)


def reference(head: Grid, words: Tensor) -> dict[tuple[int, int], list[float]]:
    """The probabilities of all classes for each span [start, end), cell by cell; no dropout. ``words`` [n, d]."""
    first, last, left, right, content = head.projection(words).split(head.sizes, -1)
    spans = [(i, j) for i in range(len(words)) for j in range(i + 1, min(len(words), i + head.widest) + 1)]
    cells = {}
    for i, j in spans:
        cell = first[i] + last[j - 1] + head.widths[j - i - 1]
        if head.product is not None:
            cell = cell + head.product.weight @ (left[i] * right[j - 1])
        if head.settings.pooling:
            cell = cell + content[i:j].amax(0)
        cells[i, j] = F.gelu(head.norms[0](cell))
    for norm, convolution in zip(head.norms[1:], head.convolutions, strict=True):
        reach = head.settings.kernel // 2
        compared = {}
        for i, j in spans:
            total = convolution.bias.clone()
            for down in range(-reach, reach + 1):
                for across in range(-reach, reach + 1):
                    neighbour = (i + down, j + down + across)  # a row is a start, a column a width
                    if neighbour in cells:
                        total = total + convolution.weight[:, :, down + reach, across + reach] @ cells[neighbour]
            compared[i, j] = cells[i, j] + F.gelu(norm(total))
        cells = compared
    rows = {span: head.classifier(cell).tolist() for span, cell in cells.items()}
    return {span: [exp(x - max(row)) / sum(exp(y - max(row)) for y in row) for x in row] for span, row in rows.items()}


def probabilities(head: Grid, states: TokenStates) -> dict[tuple[int, int, int], list[float]]:
    with torch.no_grad():
        return {
            (number, *span): row
            for number, length in enumerate(states.mask.sum(1).tolist())
            for span, row in reference(head, states.words[number, :length]).items()
        }


def test_the_registry_has_the_head() -> None:
    assert head_class("grid") is Grid


VARIANTS: list[dict[str, Any]] = [
    {},
    {"depth": 0},
    {"depth": 3, "kernel": 5},
    {"rank": 0},
    {"pooling": False},
    {"max_width": 1},
]


@pytest.mark.parametrize("options", VARIANTS)
def test_spans_and_scores_equal_the_reference(encoder: Any, options: dict[str, Any]) -> None:
    head, states = make(encoder, **options).eval(), states_of(encoder, 9, 1, 4)
    scored = head.score(states, {})
    predicted = {
        (s, i, j): (label, score) for s, i, j, label, score in zip(*(column.tolist() for column in scored.columns), strict=True)
    }
    rows = probabilities(head, states)
    best = {span: max(row[:NONE]) for span, row in rows.items()}
    expected = {span: (rows[span].index(score), score) for span, score in best.items() if score >= head.threshold}
    assert predicted.keys() == expected.keys()
    assert predicted
    for span, (label, score) in expected.items():
        assert predicted[span] == (label, pytest.approx(score, abs=1e-5))


def test_probabilities_of_all_spans_equal_the_reference(encoder: Any) -> None:
    head, states = make(encoder).eval(), states_of(encoder, 6, 3)
    result = head.span_probabilities(states, {})
    spans = list(zip(result.sentence.tolist(), result.start.tolist(), result.end.tolist(), strict=True))
    expected = probabilities(head, states)
    assert set(spans) == expected.keys()
    for span, row in zip(spans, result.vectors.tolist(), strict=True):
        assert row == pytest.approx(expected[span], abs=1e-5)


def test_the_loss_is_the_cross_entropy_over_all_spans(encoder: Any) -> None:
    head, states = make(encoder, smoothing=0.0).eval(), states_of(encoder, 7, 3)
    gold = {(0, 1, 3): 0, (0, 2, 3): 1, (1, 0, 3): 1}
    sentences = [
        Sentence(
            "a", ("w",) * 7, (Entity("A", ((1, 3),)), Entity("B", ((2, 3),)), Entity("A", ((0, 6),)))
        ),  # the last is too wide
        Sentence("b", ("w",) * 3, (Entity("B", ((0, 3),)),)),
    ]
    losses = head.loss(states, head.targets(sentences, gold=True))
    expected = [0.0, 0.0]
    for (number, start, end), row in probabilities(head, states).items():
        expected[number] -= float(np.log(row[gold.get((number, start, end), NONE)]))
    assert losses.sums.tolist() == pytest.approx(expected, rel=1e-4)
    assert losses.counts.tolist() == [1, 1]


def test_sampling_skips_only_spans_without_a_type(encoder: Any) -> None:
    states = states_of(encoder, 9)
    sentence = Sentence("a", ("w",) * 9, (Entity("A", ((1, 3),)),))

    def loss(sampling: float) -> float:
        head = make(encoder, sampling=sampling, smoothing=0.0, dropout=0.0, hidden_dropout=0.0).train()
        torch.manual_seed(0)
        return head.loss(states, head.targets([sentence], gold=True)).sums[0].item()

    gold = -np.log(probabilities(make(encoder), states)[0, 1, 3][0])
    assert loss(1e-9) == pytest.approx(gold, rel=1e-4)
    assert loss(1e-9) < loss(0.5) < loss(1.0)


def test_scores_do_not_depend_on_the_batch(encoder: Any, check_batches: Any) -> None:
    check_batches(make(encoder))


def test_it_learns_nested_entities(overfit: Any, nested_sentences: Any) -> None:
    settings = GridSettings(max_width=3, decoding="nested", smoothing=0.0, dropout=0.0, hidden_dropout=0.0, channels=16)
    assert overfit(Grid, LABELS, settings, nested_sentences)


@pytest.mark.parametrize("dtype", [torch.bfloat16])
def test_half_precision(encoder: Any, random_batch: Any, joined: Any, check_half_precision: Any, dtype: torch.dtype) -> None:
    sentences, states = random_batch(widest=4)
    batch = joined(states)
    batch.words = batch.words.masked_fill(~batch.mask.unsqueeze(-1), 0.0)
    check_half_precision(make(encoder, dropout=0.0, hidden_dropout=0.0), sentences, batch, dtype, False, 1.0)


def test_the_loss_never_synchronises(encoder: Any, random_batch: Any, joined: Any, synchronisations: Any) -> None:
    sentences, states = random_batch()
    head = make(encoder)
    targets, batch = head.targets(sentences, gold=True), joined(states)
    with synchronisations() as count:
        head.loss(batch, targets)
    assert not count


def test_the_automatic_width_is_bounded() -> None:
    def resolve(width: int) -> GridSettings:
        return GridSettings().resolve([Sentence("s", ("w",) * width, (Entity("A", ((0, width),)),))])

    assert resolve(3).max_width == 3
    assert resolve(90).max_width == MAX_AUTOMATIC_WIDTH
    assert GridSettings(max_width=50).resolve([Sentence("s", ("w",), (Entity("A", ((0, 1),)),))]).max_width == 50


def test_an_even_kernel_is_refused() -> None:
    with pytest.raises(ValidationError, match="expected an odd number"):
        GridSettings(kernel=4)


@torch.no_grad()
def test_vectors_and_probabilities_of_sentences_shorter_than_the_widest_span(encoder: Any) -> None:
    head, states = make(encoder, max_width=16).eval(), states_of(encoder, 2, 1)
    for packed in (head.span_probabilities(states, {}), head.span_vectors(states, {})):
        rows = zip(packed.sentence.tolist(), packed.start.tolist(), packed.end.tolist(), strict=True)
        assert set(rows) == {(0, 0, 1), (0, 1, 2), (0, 0, 2), (1, 0, 1)}
