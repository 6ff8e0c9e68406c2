"""Offsets and boundary adjustment, worked by hand."""

from __future__ import annotations

from math import floor

import pytest
import torch

from spanwise.spans.regression import adjusted, offsets

LENGTH = 10


def moved(start: int, end: int, left: float, right: float, length: int = LENGTH) -> tuple[int, int]:
    first, last = adjusted(torch.tensor([start]), torch.tensor([end]), torch.tensor([[left, right]]), torch.tensor([length]))
    return int(first), int(last)


@pytest.mark.parametrize(
    ("seed", "moves", "expected"),
    [
        ((3, 6), (0.0, 0.0), (3, 6)),
        ((3, 6), (-2.0, 1.0), (1, 7)),
        ((3, 6), (0.49, -0.49), (3, 6)),
        ((3, 6), (0.5, 0.5), (4, 7)),  # halves go up
        ((3, 6), (-0.5, -0.5), (3, 6)),  # below 0 too
        ((3, 6), (-0.51, -1.5), (2, 5)),
        ((1, 3), (-1.0, 0.0), (0, 3)),
        ((1, 3), (-4.0, 0.0), (0, 3)),  # the sentence begins there
        ((0, 2), (-0.7, 0.0), (0, 2)),
        ((7, 9), (0.0, 1.0), (7, 10)),
        ((7, 9), (0.0, 5.0), (7, 10)),  # and ends here
        ((8, 10), (0.0, 0.6), (8, 10)),
        ((8, 10), (7.0, 0.0), (9, 10)),  # the last word at the farthest
        ((0, 2), (0.0, -9.0), (0, 1)),  # and one word at least
        ((4, 6), (3.0, -3.0), (7, 8)),  # boundaries that pass each other
        ((0, 10), (-1e30, 1e30), (0, 10)),
    ],
)
def test_boundaries_move_rounded_and_inside_the_sentence(
    seed: tuple[int, int], moves: tuple[float, float], expected: tuple[int, int]
) -> None:
    assert moved(*seed, *moves) == expected


def test_it_is_equations_6_and_7_wherever_they_give_a_span() -> None:
    generator = torch.Generator().manual_seed(0)
    start = torch.randint(0, LENGTH, (500,), generator=generator)
    end = start + 1 + (torch.rand(500, generator=generator) * (LENGTH - start)).long()
    moves = 3 * torch.randn(500, 2, generator=generator)
    first, last = adjusted(start, end, moves, torch.full((500,), LENGTH))
    assert bool(((first >= 0) & (first < last) & (last <= LENGTH)).all())
    validate_record = 0
    for n in range(500):
        left, right = moves[n].tolist()
        wanted = max(0, int(start[n]) + floor(left + 0.5)), min(LENGTH - 1, int(end[n]) - 1 + floor(right + 0.5))  # inclusive
        if wanted[0] <= wanted[1]:
            assert (int(first[n]), int(last[n]) - 1) == wanted
            validate_record += 1
    assert validate_record > 300


def test_offsets_are_what_moves_a_span_onto_its_entity() -> None:
    spans = [(0, 2), (1, 3), (8, 10), (4, 5), (3, 6)]
    gold = [(0, 4), (0, 2), (6, 9), (4, 5), (0, 10)]
    (start, end), (gold_start, gold_end) = torch.tensor(spans).unbind(1), torch.tensor(gold).unbind(1)
    steps = offsets(start, end, gold_start, gold_end)
    assert steps.tolist() == [[0, 2], [-1, -1], [-2, -1], [0, 0], [-3, 4]]
    assert torch.stack(adjusted(start, end, steps.float(), torch.full((5,), LENGTH)), 1).tolist() == [list(g) for g in gold]


def test_each_sentence_has_its_own_end() -> None:
    start, end, moves = torch.tensor([1, 1]), torch.tensor([3, 3]), torch.full((2, 2), 4.0)
    first, last = adjusted(start, end, moves, torch.tensor([4, 9]))
    assert (first.tolist(), last.tolist()) == ([3, 5], [4, 7])
