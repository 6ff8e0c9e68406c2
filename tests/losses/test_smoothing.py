"""Boundary smoothing, compared with a slow reference, and its loss, compared with torch's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable
from itertools import product
from random import Random

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from hypothesis import given, settings
from hypothesis import strategies as st

from spanwise.losses.smoothing import SoftSpans, smooth_boundaries, soft_cross_entropy

Rows = dict[tuple[int, int, int], float]


def run(
    gold: Iterable[tuple[int, int, int]], length: int, width: int | None = None, epsilon: float = 0.1, distance: int = 1
) -> Rows:
    (soft,) = smooth_boundaries([to_array(gold)], [length], width, epsilon, distance)
    return to_rows(soft)


def to_array(gold: Iterable[tuple[int, int, int]]) -> np.ndarray:
    return np.array(sorted(gold), np.int64).reshape(-1, 3)


def to_rows(soft: SoftSpans) -> Rows:
    assert [column.dtype for column in soft] == [np.int64] * 3 + [np.float32]
    keys = list(zip(*(column.tolist() for column in soft[:3]), strict=True))
    assert keys == sorted(set(keys))  # in text order, each span and label once
    return dict(zip(keys, soft.mass.tolist(), strict=True))


def reference(
    gold: Iterable[tuple[int, int, int]], length: int, width: int | None, epsilon: float, distance: int,
    unknown: Container[tuple[int, int, int]] = (),
) -> Rows:  # fmt: skip
    """Apply the rule to every span of the sentence, except for the ``unknown`` spans and labels."""
    widest = length if width is None else width
    spans = [(s, e) for s in range(length) for e in range(s + 1, length + 1) if e - s <= widest]
    mass: dict[tuple[int, int, int], float] = defaultdict(float)
    for start, end, label in gold:
        shared = 0.0
        for s, e in spans:
            moved = abs(s - start) + abs(e - end)
            if epsilon and 1 <= moved <= distance and (s, e, label) not in unknown:
                share = epsilon / distance / (4 * moved)
                mass[s, e, label] += share
                shared += share
        mass[start, end, label] += 1 - shared
    sums: dict[tuple[int, int], float] = defaultdict(float)
    for (s, e, _), value in mass.items():
        sums[s, e] += value
    return {(s, e, label): value / max(1.0, sums[s, e]) for (s, e, label), value in mass.items()}


@st.composite
def sentences(draw: st.DrawFn, width: int | None = None) -> tuple[set[tuple[int, int, int]], int, int | None]:
    length = draw(st.integers(1, 9))
    width = draw(st.none() | st.integers(1, 10)) if width is None else width
    spans = [(s, e) for s in range(length) for e in range(s + 1, length + 1) if width is None or e - s <= width]
    gold = draw(st.sets(st.tuples(st.sampled_from(spans), st.integers(0, 2)), max_size=6))
    return {(*span, label) for span, label in gold}, length, width


@settings(deadline=None, max_examples=200)
@given(sentences(), st.sampled_from([0.0, 0.1, 0.5, 0.95]), st.integers(1, 4))
def test_masses_equal_the_reference(
    sentence: tuple[set[tuple[int, int, int]], int, int | None], epsilon: float, distance: int
) -> None:
    gold, length, width = sentence
    actual, expected = run(gold, length, width, epsilon, distance), reference(gold, length, width, epsilon, distance)
    assert actual == pytest.approx(expected, abs=1e-6)
    # NONE gets the remaining probability of a span, so its labels sum to at most 1.
    sums: dict[tuple[int, int], float] = defaultdict(float)
    for (start, end, _), mass in actual.items():
        assert mass > 0
        sums[start, end] += mass
    assert all(total <= 1 + 1e-6 for total in sums.values())
    assert {(start, end) for start, end, _ in gold} <= set(sums)


@settings(deadline=None, max_examples=100)
@given(st.lists(sentences(width=3), max_size=5), st.sampled_from([0.0, 0.1, 0.5]), st.integers(1, 3), st.randoms())
def test_sentences_smoothed_together_equal_the_reference(
    batch: list[tuple[set[tuple[int, int, int]], int, int | None]], epsilon: float, distance: int, random: Random
) -> None:
    spans = [(index, s, e, label) for index in range(5) for s in range(9) for e in range(s + 1, 10) for label in range(3)]
    unknown = set(random.sample(spans, random.randrange(len(spans))))

    def is_known(*columns: np.ndarray) -> np.ndarray:
        rows = zip(*(column.ravel().tolist() for column in columns), strict=True)
        return np.array([row not in unknown for row in rows], bool).reshape(columns[0].shape)

    gold, lengths = [to_array(rows) for rows, _, _ in batch], [length for _, length, _ in batch]
    together = smooth_boundaries(gold, lengths, 3, epsilon, distance, is_known)
    assert len(together) == len(batch)
    for index, (soft, (rows, length, width)) in enumerate(zip(together, batch, strict=True)):
        hidden = {span[1:] for span in unknown if span[0] == index}
        assert to_rows(soft) == pytest.approx(reference(rows, length, width, epsilon, distance, hidden), abs=1e-6)
    # The sentences of a batch do not change each other's masses in any bit.
    for soft, rows, length in zip(smooth_boundaries(gold, lengths, 3, epsilon, distance), gold, lengths, strict=True):
        assert to_rows(soft) == to_rows(*smooth_boundaries([rows], [length], 3, epsilon, distance))


def test_neighbours_inside_a_sentence() -> None:
    assert run([(3, 5, 0)], 9) == pytest.approx(
        {(3, 5, 0): 0.9, (2, 5, 0): 0.025, (4, 5, 0): 0.025, (3, 4, 0): 0.025, (3, 6, 0): 0.025}
    )


def test_a_hand_worked_example_at_the_edge() -> None:
    """The first word of three has one neighbour: it cannot start earlier or be empty (two ways)."""
    assert run([(0, 1, 7)], 3) == pytest.approx({(0, 1, 7): 0.9 + 3 * 0.025, (0, 2, 7): 0.025})
    # A whole sentence has two neighbours and keeps the share of the other two.
    assert run([(0, 2, 7)], 2) == pytest.approx({(0, 2, 7): 0.95, (1, 2, 7): 0.025, (0, 1, 7): 0.025})
    # A sentence of one word has one span.
    assert run([(0, 1, 7)], 1) == pytest.approx({(0, 1, 7): 1.0})


def test_distance_2() -> None:
    """Half of epsilon goes to the four spans at distance 1 (1/80 each), half to the eight at distance 2 (1/160 each)."""
    far, near = 0.1 / 2 / 8, 0.1 / 2 / 4
    gold = (4, 8)
    expected = {gold: 0.9}
    for move in ((-1, 0), (1, 0), (0, -1), (0, 1)):
        expected[gold[0] + move[0], gold[1] + move[1]] = near
    for move in ((-2, 0), (2, 0), (0, -2), (0, 2), (-1, -1), (-1, 1), (1, -1), (1, 1)):
        expected[gold[0] + move[0], gold[1] + move[1]] = far
    assert run([(*gold, 0)], 20, distance=2) == pytest.approx({(*span, 0): mass for span, mass in expected.items()})
    # The last two words of four: seven of the twelve neighbours do not exist.
    remaining = 1 - 3 * near - 2 * far
    assert run([(2, 4, 0)], 4, distance=2) == pytest.approx(
        {(2, 4, 0): remaining, (1, 4, 0): near, (3, 4, 0): near, (2, 3, 0): near, (0, 4, 0): far, (1, 3, 0): far}
    )


def test_neighbouring_entities() -> None:
    """Each receives part of the other's mass; totals above 1 are scaled to 1."""
    assert run([(2, 4, 0), (2, 5, 0)], 9)[2, 4, 0] == pytest.approx(0.925)
    masses = run([(2, 4, 0), (2, 5, 1)], 9)
    assert (masses[2, 4, 0], masses[2, 4, 1]) == pytest.approx((0.9, 0.025))
    # At the edge a gold span keeps more: with the shares of two neighbours the total is exactly 1.
    masses = run([(0, 2, 0), (0, 1, 1), (1, 2, 1)], 2)
    assert masses[0, 2, 0] == pytest.approx(0.95)
    assert masses[0, 2, 1] == pytest.approx(0.05)
    # Scaled: a gold span of two types that receives part of a third.
    masses = run([(0, 1, 0), (0, 1, 1), (0, 2, 0)], 2)
    total = 0.975 + 0.975 + 0.025
    assert masses[0, 1, 0] == pytest.approx(1.0 / total)
    assert masses[0, 1, 1] == pytest.approx(0.975 / total)
    assert masses[0, 2, 0] == pytest.approx(0.975)
    assert masses[0, 2, 1] == pytest.approx(0.025)


def test_types_of_the_same_span_have_equal_shares() -> None:
    assert run([(1, 2, 0), (1, 2, 2)], 4, epsilon=0.0) == {(1, 2, 0): 0.5, (1, 2, 2): 0.5}
    third = pytest.approx(1 / 3)
    assert run([(1, 2, 0), (1, 2, 1), (1, 2, 2)], 4, epsilon=0.0) == {(1, 2, label): third for label in range(3)}


def test_spans_wider_than_the_maximum_get_no_mass() -> None:
    assert run([(3, 5, 0)], 9, 2) == pytest.approx({(3, 5, 0): 0.95, (4, 5, 0): 0.025, (3, 4, 0): 0.025})
    assert run([(3, 5, 0)], 9, 3) == run([(3, 5, 0)], 9)


def test_epsilon_0_keeps_the_gold() -> None:
    gold = [(0, 1, 1), (3, 5, 0), (3, 6, 0)]
    assert run(gold, 9, epsilon=0.0, distance=3) == dict.fromkeys(gold, 1.0)


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
@pytest.mark.parametrize("length", [0, 4])
def test_no_gold(length: int, epsilon: float) -> None:
    assert run([], length, epsilon=epsilon) == {}


# --- the loss -----------------------------------------------------------------------------------------------------------


def random_rows(generator: np.random.Generator, count: int, classes: int) -> SoftSpans:
    """Random soft rows of ``count`` cells (spans [cell, cell + 1)); cells have no, one or several labels."""
    pairs = [(cell, label) for cell in range(count) for label in range(classes - 1) if generator.random() < 0.3]
    cells, labels = (np.array(column, np.int64) for column in zip(*pairs, strict=True))
    masses = generator.random(len(pairs))
    masses /= np.maximum(1.0, np.bincount(cells, masses, count))[cells]
    return SoftSpans(cells, cells + 1, labels, masses.astype(np.float32))


@pytest.mark.parametrize("shape", [(6, 4, 5), (30, 3, 1), (1, 2, 30)])
def test_the_loss_equals_cross_entropy_with_dense_targets(shape: tuple[int, int, int]) -> None:
    for seed, scale in product(range(5), (1.0, 100.0)):
        check_loss(seed, scale, shape)


def check_loss(seed: int, scale: float, shape: tuple[int, int, int]) -> None:
    rows, classes, columns = shape
    soft = random_rows(np.random.default_rng(seed), rows * columns, classes)
    dense = torch.zeros(rows * columns, classes, dtype=torch.float64)
    for cell, _, label, mass in zip(*soft, strict=True):
        dense[cell, label] += float(mass)
    dense[:, -1] = 1 - dense.sum(1)
    dense = dense.view(rows, columns, classes).transpose(1, 2)
    actual = (scale * torch.randn(shape, generator=torch.Generator().manual_seed(seed))).requires_grad_()
    logits = actual.detach().double().requires_grad_()
    gold = (torch.from_numpy(column) for column in (soft.start, soft.label, soft.mass))
    values, expected = soft_cross_entropy(actual, *gold), F.cross_entropy(logits, dense, reduction="none")
    assert values.shape == (rows, columns)
    torch.testing.assert_close(values.double(), expected, rtol=1e-5, atol=1e-5 * scale)
    weights = torch.rand(rows, columns)
    gradients = [torch.autograd.grad((x * weights).sum(), y)[0] for x, y in ((values, actual), (expected, logits))]
    torch.testing.assert_close(gradients[0].double(), gradients[1], rtol=1e-4, atol=1e-5)


def test_without_rows_every_cell_is_none() -> None:
    logits = torch.randn(3, 4, 2)
    none = torch.empty(0, dtype=torch.long)
    expected = F.cross_entropy(logits, torch.full((3, 2), 3), reduction="none")
    torch.testing.assert_close(soft_cross_entropy(logits, none, none, torch.empty(0)), expected)
    assert soft_cross_entropy(logits[:0], none, none, torch.empty(0)).shape == (0, 2)
    assert soft_cross_entropy(logits[:, :, :0], none, none, torch.empty(0)).shape == (3, 0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_loss_is_finite_in_half_precision(dtype: torch.dtype) -> None:
    logits = torch.tensor([[[6e4, -6e4], [-6e4, 6e4], [0.0, 6e4]]]).to(dtype).requires_grad_()
    gold = (torch.tensor([0, 1, 1]), torch.tensor([1, 0, 1]), torch.tensor([1.0, 0.5, 0.5]))
    values = soft_cross_entropy(logits, *gold)
    values.sum().backward()
    assert values.dtype == torch.float32
    assert values.tolist() == [pytest.approx([1.2e5, 6e4], rel=0.01)]
    assert logits.grad is not None
    assert bool(logits.grad.isfinite().all())
