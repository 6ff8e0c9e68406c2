"""Blocks of spans with windows of words, compared with the words of each span."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from spanwise.spans.blocks import Blocks, ChosenSpans, TiledSpans
from spanwise.spans.candidates import grid, packed

LENGTHS = st.lists(st.integers(0, 40), min_size=1, max_size=4)


def tiled(lengths: list[int], width: int) -> TiledSpans:
    cells = grid(np.array(lengths), width)
    cells[:, :, :1] = False
    sentence, start, end = (torch.from_numpy(column) for column in packed(cells))
    return TiledSpans(len(lengths), max([1, *lengths]), sentence, start, end, width)


def chosen(lengths: list[int], width: int, count: int = 3) -> ChosenSpans:
    rng = np.random.default_rng(sum(lengths))
    length = max([1, *lengths])
    start = torch.from_numpy(rng.integers(0, length, (len(lengths), count)))
    size = torch.from_numpy(rng.integers(1, width + 1, start.shape))
    return ChosenSpans(length, start, (start + size).clamp(max=length), width)


def span_words(blocks: Blocks, words: Tensor) -> list[Tensor]:
    spans = zip(blocks.sentence.tolist(), blocks.start.tolist(), blocks.end.tolist(), strict=True)
    return [words[sentence, start:end] for sentence, start, end in spans]


def check(blocks: Blocks, words: Tensor) -> None:
    spans = torch.arange(len(blocks.start) * 2.0).view(-1, 2)
    assert torch.equal(blocks.packed(blocks.spread(spans)), spans)
    # The sum over ``inside`` is the sum over the words of the span.
    sums = blocks.packed(blocks.inside.float() @ blocks.windows(words))
    torch.testing.assert_close(sums, torch.stack([states.sum(0) for states in span_words(blocks, words)]), rtol=0, atol=1e-5)

    check_index(blocks)


def check_index(blocks: Blocks) -> None:
    """The rows of a word include all spans with it."""
    first_word, width, first_row, last_row = blocks.index
    for row, (first, words) in enumerate(zip(first_word.tolist(), width.tolist(), strict=True)):
        assert first == blocks.sentence[row] * blocks.shape[1] + blocks.start[row]
        assert bool((first_row[first : first + words] <= row).all())
        assert bool((last_row[first : first + words] > row).all())
    if len(first_word):
        assert bool((first_row.diff() >= 0).all())
        assert bool((last_row.diff() >= 0).all())


def random_words(lengths: list[int]) -> Tensor:
    return torch.randn(len(lengths), max([1, *lengths]), 3, generator=torch.Generator().manual_seed(1))


@settings(deadline=None, max_examples=60)
@given(LENGTHS, st.integers(2, 30))
def test_spans_of_a_tile_attend_to_their_words(lengths: list[int], width: int) -> None:
    blocks = tiled(lengths, width)
    if len(blocks.start):
        check(blocks, random_words(lengths))
        assert bool(blocks.inside.any(-1).all())  # a softmax over no words would be NaN


@settings(deadline=None, max_examples=40)
@given(LENGTHS, st.integers(1, 30))
def test_chosen_spans_attend_to_their_words(lengths: list[int], width: int) -> None:
    check(chosen(lengths, width), random_words(lengths))
