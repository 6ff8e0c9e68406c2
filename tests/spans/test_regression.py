"""Boundary offsets and adjustment."""

from __future__ import annotations

from math import floor

import pytest
import torch

from spanwise.spans.regression import adjust_spans, offsets

LENGTH = 10


def adjust(start: int, end: int, left: float, right: float, length: int = LENGTH) -> tuple[int, int]:
    first, last = adjust_spans(
        torch.tensor([start]), torch.tensor([end]), torch.tensor([[left, right]]), torch.tensor([length])
    )
    return int(first), int(last)


@pytest.mark.parametrize(
    ("seed", "moves", "expected"),
    [
        ((3, 6), (0.0, 0.0), (3, 6)),
        ((3, 6), (-2.0, 1.0), (1, 7)),
        ((3, 6), (0.49, -0.49), (3, 6)),
        ((3, 6), (0.5, 0.5), (4, 7)),  # halves are rounded up
        ((3, 6), (-0.5, -0.5), (3, 6)),  # also below 0
        ((3, 6), (-0.51, -1.5), (2, 5)),
        ((1, 3), (-1.0, 0.0), (0, 3)),
        ((1, 3), (-4.0, 0.0), (0, 3)),  # clipped to the start of the sentence
        ((0, 2), (-0.7, 0.0), (0, 2)),
        ((7, 9), (0.0, 1.0), (7, 10)),
        ((7, 9), (0.0, 5.0), (7, 10)),  # clipped to the end
        ((8, 10), (0.0, 0.6), (8, 10)),
        ((8, 10), (7.0, 0.0), (9, 10)),  # a span starts at the last word at most
        ((0, 2), (0.0, -9.0), (0, 1)),  # and has at least one word
        ((4, 6), (3.0, -3.0), (7, 8)),  # crossing boundaries
        ((0, 10), (-1e30, 1e30), (0, 10)),
    ],
)
def test_boundaries_are_rounded_and_clipped_to_the_sentence(
    seed: tuple[int, int], moves: tuple[float, float], expected: tuple[int, int]
) -> None:
    assert adjust(*seed, *moves) == expected


def test_adjustment_follows_equations_6_and_7() -> None:
    generator = torch.Generator().manual_seed(0)
    start = torch.randint(0, LENGTH, (500,), generator=generator)
    end = start + 1 + (torch.rand(500, generator=generator) * (LENGTH - start)).long()
    moves = 3 * torch.randn(500, 2, generator=generator)
    first, last = adjust_spans(start, end, moves, torch.full((500,), LENGTH))
    assert bool(((first >= 0) & (first < last) & (last <= LENGTH)).all())
    checked = 0
    for n in range(500):
        left, right = moves[n].tolist()
        expected = max(0, int(start[n]) + floor(left + 0.5)), min(LENGTH - 1, int(end[n]) - 1 + floor(right + 0.5))  # inclusive
        if expected[0] <= expected[1]:
            assert (int(first[n]), int(last[n]) - 1) == expected
            checked += 1
    assert checked > 300


def test_offsets_move_a_span_to_its_entity() -> None:
    spans = [(0, 2), (1, 3), (8, 10), (4, 5), (3, 6)]
    gold = [(0, 4), (0, 2), (6, 9), (4, 5), (0, 10)]
    (start, end), (gold_start, gold_end) = torch.tensor(spans).unbind(1), torch.tensor(gold).unbind(1)
    moves = offsets(start, end, gold_start, gold_end)
    assert moves.tolist() == [[0, 2], [-1, -1], [-2, -1], [0, 0], [-3, 4]]
    assert torch.stack(adjust_spans(start, end, moves.float(), torch.full((5,), LENGTH)), 1).tolist() == [list(g) for g in gold]


def test_each_sentence_has_its_own_length() -> None:
    start, end, moves = torch.tensor([1, 1]), torch.tensor([3, 3]), torch.full((2, 2), 4.0)
    first, last = adjust_spans(start, end, moves, torch.tensor([4, 9]))
    assert (first.tolist(), last.tolist()) == ([3, 5], [4, 7])
