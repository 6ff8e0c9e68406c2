"""The LSTM over spans, compared with one span at a time."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from spanwise.spans.span_lstm import Runs, SpanLstm, lstm_layout

SIZE, HIDDEN = 5, 3


def reference(model: SpanLstm, words: torch.Tensor) -> torch.Tensor:
    """The vector of one span as in the paper: BiLSTM, last states as the query, unscaled attention."""
    states = model.lstm(words)[0]
    query = torch.cat((states[-1, :HIDDEN], states[0, HIDDEN:]))
    weights = (states @ query).softmax(0)
    return weights @ states


def random_spans(seed: int, count: int = 40, words: int = 30) -> tuple[np.ndarray, np.ndarray]:
    """Random spans of 1 to 9 words; some share their start or end, some are equal."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, words, count)
    return first, np.minimum(rng.integers(1, 10, count), words - first)


@pytest.mark.parametrize("seed", range(5))
def test_spans_equal_the_reference(seed: int) -> None:
    torch.manual_seed(seed)
    model, words = SpanLstm(SIZE, HIDDEN), torch.randn(30, SIZE) * 3
    first, width = random_spans(seed)
    actual = model(words, lstm_layout(first, width))
    expected = torch.stack([reference(model, words[a : a + n]) for a, n in zip(first.tolist(), width.tolist(), strict=True)])
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-6)


def test_gradients_equal_the_reference() -> None:
    torch.manual_seed(1)
    model, words = SpanLstm(SIZE, HIDDEN).double(), torch.randn(30, SIZE, dtype=torch.float64, requires_grad=True)
    first, width = random_spans(1)
    weights = torch.randn(len(first), 2 * HIDDEN, dtype=torch.float64)
    leaves = [words, *model.parameters()]
    actual = torch.autograd.grad((model(words, lstm_layout(first, width)) * weights).sum(), leaves)
    vectors = [reference(model, words[a : a + n]) for a, n in zip(first.tolist(), width.tolist(), strict=True)]
    expected = torch.autograd.grad((torch.stack(vectors) * weights).sum(), leaves)
    for first, second in zip(actual, expected, strict=True):
        torch.testing.assert_close(first, second, rtol=1e-5, atol=1e-6)  # the softmax is in single precision


def test_spans_with_the_same_start_share_a_run() -> None:
    """All spans of up to 4 of 10 words: one state per span."""
    first = np.repeat(np.arange(10), 4)
    width = np.tile(np.arange(1, 5), 10)
    inside = first + width <= 10
    first, width = first[inside], width[inside]
    for runs, starts in ((Runs(first, width, 1), first), (Runs(first + width - 1, width, -1), first + width - 1)):
        states = runs.state(np.arange(len(first)), width - 1)
        assert sum(map(len, runs.steps)) == len(first) == len(set(states.tolist()))
        assert sorted(runs.steps[0].tolist()) == sorted(set(starts.tolist()))


def test_no_spans() -> None:
    none = np.empty(0, np.int64)
    assert SpanLstm(SIZE, HIDDEN)(torch.randn(4, SIZE), lstm_layout(none, none)).shape == (0, 2 * HIDDEN)


def test_large_products_do_not_overflow() -> None:
    """Attention is not scaled, so products can be far beyond the range of exp."""
    model = SpanLstm(1, 2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(50.0)
    words = torch.ones(3, 1)
    actual = model(words, lstm_layout(np.array([0]), np.array([3])))
    assert bool(actual.isfinite().all())
