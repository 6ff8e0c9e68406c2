"""Data and helper functions of Locate and Label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from spanwise.encoders.base import TokenStates
from spanwise.heads.base import Losses
from spanwise.heads.partial import Known
from spanwise.heads.sentence_cache import Ints
from spanwise.losses.partial import open_weight
from spanwise.spans.matching import PackedSpans
from spanwise.spans.pooling import Maxima
from spanwise.spans.regression import adjust_spans


class Gold(NamedTuple):
    """A sentence's gold spans [n, 2] and their probabilities of C + 1 classes, NONE last."""

    spans: Ints
    classes: npt.NDArray[np.float32]


class Text(NamedTuple):
    """The input of all parts: words [B, T, d], maxima over any spans of them, words per sentence [B]."""

    words: Tensor
    maxima: Maxima
    lengths: Tensor

    @classmethod
    def of(cls, states: TokenStates) -> Text:
        return cls(states.words, Maxima(states.words, states.words.shape[1]), states.mask.sum(1))


@dataclass(slots=True)
class Proposals:
    """The result of stage 1: the seeds that passed the filter, and the spans to which the regressor moved them."""

    seeds: PackedSpans
    spans: PackedSpans
    passed: Tensor  # False if a later application of the filter dropped the span


def move_spans(text: Text, spans: PackedSpans, moves: Tensor) -> PackedSpans:
    """Move the boundaries of spans by offsets [S, 2], within their sentences."""
    length = text.lengths.index_select(0, spans.sentence)
    return PackedSpans(spans.sentence, *adjust_spans(spans.start, spans.end, moves, length))


def filter_weights(known: Known | None, spans: PackedSpans, positive: Tensor, logits: Tensor) -> Tensor:
    """The weights of spans for the filter, which knows no types: a negative may be an entity of an open type."""
    if known is None:
        return torch.ones_like(logits, dtype=torch.float32)
    weights = open_weight(logits, known.marked_share.index_select(0, spans.sentence)).exp()
    return weights.where(known.is_open_span(*spans).any(1) & ~positive, torch.ones_like(weights))


def sum_rounds(text: Text, spans: PackedSpans, rounds: list[Tensor], masks: list[Tensor]) -> Losses:
    """Sum the values of spans by sentence, over all rounds of stage 1; ``masks`` select the spans that count."""
    values = torch.stack(rounds)
    counts = torch.stack(masks).to(values.dtype)
    zeros = values.new_zeros(len(text.words))
    return Losses(
        zeros.index_add(0, spans.sentence, (values * counts).sum(0)), zeros.index_add(0, spans.sentence, counts.sum(0))
    )  # fmt: skip


def sample_cells(cells: npt.NDArray[np.bool_], count: int, generator: np.random.Generator) -> npt.NDArray[np.bool_]:
    """A random mask of at most ``count`` of the True cells."""
    indices = np.flatnonzero(cells)
    if len(indices) <= count:
        return cells
    sampled = np.zeros(cells.size, bool)
    sampled[generator.choice(indices, count, replace=False, shuffle=False)] = True
    return sampled.reshape(cells.shape)
