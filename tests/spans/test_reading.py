"""Spans read from both ends."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from spanwise.spans.reading import Runs, SpanReader, reading

SIZE, HIDDEN = 5, 3


def literal(reader: SpanReader, words: torch.Tensor) -> torch.Tensor:
    """One span alone, as the paper has it: BiLSTM, the last state of each direction as the query, unscaled attention."""
    states = reader.lstm(words)[0]
    query = torch.cat((states[-1, :HIDDEN], states[0, HIDDEN:]))
    weights = (states @ query).softmax(0)
    return weights @ states


def spans(seed: int, count: int = 40, words: int = 30) -> tuple[np.ndarray, np.ndarray]:
    """Random spans of 1 to 9 words; some begin or end at the same word, some are equal."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, words, count)
    return first, np.minimum(rng.integers(1, 10, count), words - first)


@pytest.mark.parametrize("seed", range(5))
def test_each_span_is_what_it_would_be_alone(seed: int) -> None:
    torch.manual_seed(seed)
    reader, words = SpanReader(SIZE, HIDDEN), torch.randn(30, SIZE) * 3
    first, width = spans(seed)
    found = reader(words, reading(first, width))
    expected = torch.stack([literal(reader, words[a : a + n]) for a, n in zip(first.tolist(), width.tolist(), strict=True)])
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)


def test_gradients_are_those_of_spans_alone() -> None:
    torch.manual_seed(1)
    reader, words = SpanReader(SIZE, HIDDEN).double(), torch.randn(30, SIZE, dtype=torch.float64, requires_grad=True)
    first, width = spans(1)
    weights = torch.randn(len(first), 2 * HIDDEN, dtype=torch.float64)
    of = [words, *reader.parameters()]
    found = torch.autograd.grad((reader(words, reading(first, width)) * weights).sum(), of)
    alone = [literal(reader, words[a : a + n]) for a, n in zip(first.tolist(), width.tolist(), strict=True)]
    expected = torch.autograd.grad((torch.stack(alone) * weights).sum(), of)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)  # the softmax is in single precision


def test_spans_that_begin_together_are_read_once() -> None:
    """All spans of up to 4 of 10 words: a state for each, and each only once."""
    first = np.repeat(np.arange(10), 4)
    width = np.tile(np.arange(1, 5), 10)
    inside = first + width <= 10
    first, width = first[inside], width[inside]
    for runs, asked in ((Runs(first, width, 1), first), (Runs(first + width - 1, width, -1), first + width - 1)):
        states = runs.state(np.arange(len(first)), width - 1)
        assert sum(map(len, runs.steps)) == len(first) == len(set(states.tolist()))
        assert sorted(runs.steps[0].tolist()) == sorted(set(asked.tolist()))


def test_no_spans_are_no_vectors() -> None:
    none = np.empty(0, np.int64)
    assert SpanReader(SIZE, HIDDEN)(torch.randn(4, SIZE), reading(none, none)).shape == (0, 2 * HIDDEN)


def test_huge_products_are_no_trouble() -> None:
    """The attention is not scaled: products far beyond what exp can bear must not overflow."""
    reader = SpanReader(1, 2)
    with torch.no_grad():
        for parameter in reader.parameters():
            parameter.fill_(50.0)
    words = torch.ones(3, 1)
    found = reader(words, reading(np.array([0]), np.array([3])))
    assert bool(found.isfinite().all())
