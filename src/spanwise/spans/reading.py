"""Spans read word by word from both ends, for many packed spans at once.

Spans that begin with the same word have their first words in common: one run of an LSTM from that word, as long as the widest
of them, passes through the last states of them all. So T words with spans of up to W words cost T x W steps of an LSTM each
way, not a step for every word of every span, and nothing is padded: at step k only the runs longer than k go on.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

Ints = npt.NDArray[np.int64]


class Runs:
    """The runs that read spans of ``width`` words each, from its word ``first`` on upwards (``way`` 1) or downwards (-1).

    ``steps`` has the words that are read at each step, those of the longest run first.

    >>> runs = Runs(np.array([4, 0, 4]), np.array([1, 2, 3]), 1)
    >>> [step.tolist() for step in runs.steps]
    [[4, 0], [5, 1], [6]]
    >>> runs.state(np.array([0, 1, 2]), np.array([0, 1, 2])).tolist()  # the last state of each span
    [0, 3, 4]
    """

    def __init__(self, first: Ints, width: Ints, way: int) -> None:
        starts, run = np.unique(first, return_inverse=True)
        lengths = np.zeros(len(starts), np.int64)
        np.maximum.at(lengths, run, width)
        order = np.argsort(-lengths, kind="stable")
        counts = np.searchsorted(-lengths[order], -np.arange(lengths.max(initial=0)), side="left")
        self.steps = [starts[order[:number]] + way * step for step, number in enumerate(counts.tolist())]
        self._before = np.cumsum(counts) - counts  # states of all runs before a step's
        self._row = np.argsort(order)[run]  # of each span's run

    def state(self, span: Ints, step: Ints) -> Ints:
        """Which of all states, step by step, is that of a span's run at a step."""
        return self._before[step] + self._row[span]


def reading(first: Ints, width: Ints) -> dict[str, Tensor]:
    """How a ``SpanReader`` reads S spans of words that are numbered in a row, each from its ``first`` on.

    ``up.k`` and ``down.k`` are the words that are read at step k. Every word of every span is a place, P in all: ``span`` is
    the span that it is of, ``up`` and ``down`` the states there. Of the spans, ``offset`` are their first places, ``up_end``
    and ``down_end`` their last states.
    """
    up, down = Runs(first, width, 1), Runs(first + width - 1, width, -1)
    spans, offset = np.arange(len(first)), np.cumsum(width) - width
    span = np.repeat(spans, width)
    at = np.arange(len(span)) - offset[span]
    arrays = {
        "span": span, "offset": offset, "up": up.state(span, at), "down": down.state(span, width[span] - 1 - at),
        "up_end": up.state(spans, width - 1), "down_end": down.state(spans, width - 1),
        **{f"up.{step}": words for step, words in enumerate(up.steps)},
        **{f"down.{step}": words for step, words in enumerate(down.steps)},
    }  # fmt: skip
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


class SpanReader(nn.Module):
    """A BiLSTM over the words of each span alone, and attention over its states (SNG, figure 2).

    The query is the last state of either direction, [forward; backward]; the weights are the softmax of its products with the
    states, not scaled; a span becomes the weighted sum of its states.
    """

    def __init__(self, size: int, hidden: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(size, hidden, bidirectional=True)
        self.width = 2 * hidden

    def forward(self, words: Tensor, places: Mapping[str, Tensor]) -> Tensor:
        """The vectors [S, 2 hidden] of spans that ``reading`` laid out over ``words`` [N, size]."""
        up, down = (
            # What a word has to say to the gates does not depend on the span that it is read in.
            _run(F.linear(words, of_words, bias + other_bias), of_states, _steps(places, way))
            for way, (of_words, of_states, bias, other_bias) in zip(("up", "down"), self.lstm.all_weights, strict=True)
        )
        span = places["span"]
        products = _products(up, places["up"], places["up_end"], span)
        products = products + _products(down, places["down"], places["down_end"], span)
        weights = segment_softmax(products, span, len(places["offset"])).to(up.dtype)
        # Weighted on the way: no weighted copy of the states at all places is made.
        sums = [
            F.embedding_bag(places[way], states, places["offset"], mode="sum", per_sample_weights=weights)
            for way, states in (("up", up), ("down", down))
        ]
        return torch.cat(sums, 1)


def _products(states: Tensor, place: Tensor, end: Tensor, span: Tensor) -> Tensor:
    """Of the states at all places with the last state of their span."""
    return (states.index_select(0, place) * states.index_select(0, end).index_select(0, span)).float().sum(1)


def segment_softmax(values: Tensor, segment: Tensor, count: int) -> Tensor:
    """The softmax of values [P] within each of ``count`` segments; ``segment`` [P] says which one a value is of.

    >>> segment_softmax(torch.tensor([0.0, 0.0, 5.0]), torch.tensor([0, 0, 1]), 2).tolist()
    [0.5, 0.5, 1.0]
    """
    most = values.new_zeros(count).scatter_reduce(0, segment, values.detach(), "amax", include_self=False)
    powers = (values - most.index_select(0, segment)).exp()
    totals = powers.new_zeros(count).index_add(0, segment, powers)
    return powers / totals.index_select(0, segment)


def _steps(places: Mapping[str, Tensor], way: str) -> list[Tensor]:
    found: list[Tensor] = []
    for step in count():
        if (words := places.get(f"{way}.{step}")) is None:
            return found
        found.append(words)
    return found


def _run(gates: Tensor, weight: Tensor, steps: list[Tensor]) -> Tensor:
    """The states of an LSTM's runs, step by step; ``gates`` [N, 4 hidden] is what each word gives to the gates.

    At every step the runs that go on are the first ones of those before.
    """
    if not steps:
        return gates.new_zeros(0, weight.shape[1])
    hidden = weight.shape[1]
    states: list[Tensor] = []
    cell: Tensor | None = None
    for own in torch.split(gates.index_select(0, torch.cat(steps)), [len(step) for step in steps]):
        if cell is not None:
            own = torch.addmm(own, states[-1][: len(own)], weight.t())
        # In the order of nn.LSTM: input, forget, candidate, output.
        opened = own[:, : 2 * hidden].sigmoid()
        new = opened[:, :hidden] * own[:, 2 * hidden : 3 * hidden].tanh()
        cell = new if cell is None else torch.addcmul(new, opened[:, hidden:], cell[: len(own)])
        states.append(own[:, 3 * hidden :].sigmoid() * cell.tanh())
    return torch.cat(states)
