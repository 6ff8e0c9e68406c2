"""Data and helper functions of Locate and Label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from torch import Tensor

from spanwise.encoders.base import TokenStates
from spanwise.heads.sentence_cache import Ints
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


def sample_cells(cells: npt.NDArray[np.bool_], count: int, generator: np.random.Generator) -> npt.NDArray[np.bool_]:
    """A random mask of at most ``count`` of the True cells."""
    indices = np.flatnonzero(cells)
    if len(indices) <= count:
        return cells
    sampled = np.zeros(cells.size, bool)
    sampled[generator.choice(indices, count, replace=False, shuffle=False)] = True
    return sampled.reshape(cells.shape)
