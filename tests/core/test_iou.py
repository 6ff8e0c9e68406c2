"""Intersection over union, compared with sets of words."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
import torch

from spanwise.core.iou import iou

SPANS = list(combinations(range(7), 2))


def iou_of_sets(one: tuple[int, int], other: tuple[int, int]) -> float:
    words, other_words = set(range(*one)), set(range(*other))
    return len(words & other_words) / len(words | other_words)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ((2, 5), (2, 5), 1.0),
        ((2, 5), (3, 5), 2 / 3),  # inside
        ((2, 5), (1, 7), 3 / 6),  # around
        ((2, 5), (4, 8), 1 / 6),  # crossing
        ((2, 5), (5, 8), 0.0),  # adjacent
        ((0, 1), (8, 9), 0.0),
        ((0, 7), (0, 10), 0.7),  # not above a threshold of 0.7
    ],
)
def test_examples_computed_by_hand(one: tuple[int, int], other: tuple[int, int], expected: float) -> None:
    arrays = [np.array([boundary]) for boundary in (*one, *other)]
    assert iou(*arrays).tolist() == [expected]
    assert iou(*map(torch.tensor, arrays)).tolist() == pytest.approx([expected])


def test_iou_is_shared_words_over_words_in_either() -> None:
    pairs = list(product(SPANS, SPANS))
    columns = [np.array([(*one, *other)[n] for one, other in pairs]) for n in range(4)]
    expected = [iou_of_sets(one, other) for one, other in pairs]
    assert iou(*columns).tolist() == expected
    torch.testing.assert_close(iou(*map(torch.from_numpy, columns)), torch.tensor(expected))


def test_iou_broadcasts_and_accepts_floats() -> None:
    start, end = np.array(SPANS).T
    table = iou(start[:, None], end[:, None], start, end)
    assert table.shape == (len(SPANS), len(SPANS))
    assert (np.diag(table) == 1).all()
    assert (table == table.T).all()
    half = [torch.tensor([value]) for value in (0.5, 2.5, 1.0, 3.0)]
    assert iou(*half).tolist() == pytest.approx([1.5 / 2.5])


def test_an_empty_span_has_no_overlap() -> None:
    start, end = np.array(SPANS).T
    assert not iou(start, end, np.zeros_like(start), np.zeros_like(end)).any()
