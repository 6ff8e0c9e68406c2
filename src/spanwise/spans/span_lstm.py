"""An LSTM over the words of each span, for many packed spans at once.

Spans with the same first word share the states of their first words: one LSTM run from that word, as
long as the widest of them, contains the last states of all of them. So T words with spans of up to
W words cost T x W steps per direction instead of one step for every word of every span, and nothing
is padded: at step k only the runs longer than k continue.
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
    """The LSTM runs over spans of ``width`` words each from word ``first``, forward (``direction`` 1) or backward (-1).

    ``steps`` has the words of each step, those of the longest run first.

    >>> runs = Runs(np.array([4, 0, 4]), np.array([1, 2, 3]), 1)
    >>> [step.tolist() for step in runs.steps]
    [[4, 0], [5, 1], [6]]
    >>> runs.state(np.array([0, 1, 2]), np.array([0, 1, 2])).tolist()  # the last state of each span
    [0, 3, 4]
    """

    def __init__(self, first: Ints, width: Ints, direction: int) -> None:
        starts, run = np.unique(first, return_inverse=True)
        lengths = np.zeros(len(starts), np.int64)
        np.maximum.at(lengths, run, width)
        order = np.argsort(-lengths, kind="stable")
        counts = np.searchsorted(-lengths[order], -np.arange(lengths.max(initial=0)), side="left")
        self.steps = [starts[order[:number]] + direction * step for step, number in enumerate(counts.tolist())]
        self._first_state = np.cumsum(counts) - counts  # of each step, among the states of all steps
        self._row = np.argsort(order)[run]  # of each span's run

    def state(self, span: Ints, step: Ints) -> Ints:
        """The index of the state of a span's run at a step, among the states of all steps."""
        return self._first_state[step] + self._row[span]


def lstm_layout(first: Ints, width: Ints) -> dict[str, Tensor]:
    """The index tensors with which a ``SpanLstm`` reads S spans, given by their ``first`` word and ``width``.

    ``forward.k`` and ``backward.k`` are the words of step k. With P the number of words of all spans
    together, ``span`` [P] is the span of each such word, and ``forward`` and ``backward`` [P] are its
    states. For each span, ``offset`` [S] is the position of its first word among the P, and
    ``forward_end`` and ``backward_end`` [S] are its last states.
    """
    forward, backward = Runs(first, width, 1), Runs(first + width - 1, width, -1)
    spans, offset = np.arange(len(first)), np.cumsum(width) - width
    span = np.repeat(spans, width)
    step = np.arange(len(span)) - offset[span]
    arrays = {
        "span": span,
        "offset": offset,
        "forward": forward.state(span, step),
        "backward": backward.state(span, width[span] - 1 - step),
        "forward_end": forward.state(spans, width - 1),
        "backward_end": backward.state(spans, width - 1),
        **{f"forward.{index}": words for index, words in enumerate(forward.steps)},
        **{f"backward.{index}": words for index, words in enumerate(backward.steps)},
    }
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


class SpanLstm(nn.Module):
    """A BiLSTM over the words of each span, and attention over its states (SNG, figure 2).

    The query is [last forward state; last backward state]. The weights are the softmax of its unscaled
    products with the states, and a span is the weighted sum of its states.
    """

    def __init__(self, size: int, hidden: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(size, hidden, bidirectional=True)
        self.width = 2 * hidden

    def forward(self, words: Tensor, layout: Mapping[str, Tensor]) -> Tensor:
        """The vectors [S, 2 hidden] of spans over ``words`` [N, size]; ``layout`` comes from ``lstm_layout``."""
        forward, backward = (
            # The input part of the gates is the same in every span, so it is computed once per word.
            _run(F.linear(words, input_weight, input_bias + state_bias), state_weight, _steps(layout, direction))
            for direction, (input_weight, state_weight, input_bias, state_bias) in zip(
                ("forward", "backward"), self.lstm.all_weights, strict=True
            )
        )
        span = layout["span"]
        products = _query_products(forward, layout["forward"], layout["forward_end"], span)
        products = products + _query_products(backward, layout["backward"], layout["backward_end"], span)
        weights = segment_softmax(products, span, len(layout["offset"])).to(forward.dtype)
        # embedding_bag sums weighted rows without a copy of the states of all P words.
        sums = [
            F.embedding_bag(layout[direction], states, layout["offset"], mode="sum", per_sample_weights=weights)
            for direction, states in (("forward", forward), ("backward", backward))
        ]
        return torch.cat(sums, 1)


def _query_products(states: Tensor, index: Tensor, end: Tensor, span: Tensor) -> Tensor:
    """The products of the states of all P words with the last state of their span."""
    return (states.index_select(0, index) * states.index_select(0, end).index_select(0, span)).float().sum(1)


def segment_softmax(values: Tensor, segment: Tensor, count: int) -> Tensor:
    """The softmax of values [P] within each of ``count`` segments; ``segment`` [P] is the segment of each value.

    >>> segment_softmax(torch.tensor([0.0, 0.0, 5.0]), torch.tensor([0, 0, 1]), 2).tolist()
    [0.5, 0.5, 1.0]
    """
    maxima = values.new_zeros(count).scatter_reduce(0, segment, values.detach(), "amax", include_self=False)
    powers = (values - maxima.index_select(0, segment)).exp()
    totals = powers.new_zeros(count).index_add(0, segment, powers)
    return powers / totals.index_select(0, segment)


def _steps(layout: Mapping[str, Tensor], direction: str) -> list[Tensor]:
    steps: list[Tensor] = []
    for index in count():
        if (words := layout.get(f"{direction}.{index}")) is None:
            return steps
        steps.append(words)
    return steps


def _run(inputs: Tensor, weight: Tensor, steps: list[Tensor]) -> Tensor:
    """The states of LSTM runs, step by step; ``inputs`` [N, 4 hidden] is the input part of each word's gates.

    The runs that continue at a step are the first ones of the step before.
    """
    if not steps:
        return inputs.new_zeros(0, weight.shape[1])
    hidden = weight.shape[1]
    states: list[Tensor] = []
    cell: Tensor | None = None
    for gates in torch.split(inputs.index_select(0, torch.cat(steps)), [len(step) for step in steps]):
        if cell is not None:
            gates = torch.addmm(gates, states[-1][: len(gates)], weight.t())
        # In the order of nn.LSTM: input, forget, candidate, output.
        input_forget = gates[:, : 2 * hidden].sigmoid()
        new = input_forget[:, :hidden] * gates[:, 2 * hidden : 3 * hidden].tanh()
        cell = new if cell is None else torch.addcmul(new, input_forget[:, hidden:], cell[: len(gates)])
        states.append(gates[:, 3 * hidden :].sigmoid() * cell.tanh())
    return torch.cat(states)
