"""Scores of span pairs, compared with loops, in groups, and without synchronisation."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import exp, log
from typing import Any

import numpy as np
import pytest
import torch
from largest_tensor import LargestTensor
from torch import Tensor

from spanwise.heads import pair_pointer
from spanwise.heads.pair_pointer import FullPairPointer, PairPointer, SharedPairPointer, pack_cells, pair_cells
from spanwise.spans.matching import PackedSpans

KINDS = [FullPairPointer, SharedPairPointer]
WIDTH, LABELS, LENGTHS = 6, 3, (5, 1, 4)


@pytest.fixture
def words() -> Tensor:
    return torch.randn(len(LENGTHS), max(LENGTHS), WIDTH, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def mask() -> Tensor:
    return torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS).unsqueeze(1)


def make(kind: type[PairPointer]) -> Any:
    pointer = kind(WIDTH, LABELS, 4)  # type: ignore[call-arg, arg-type]
    with torch.no_grad():
        pointer.prior.normal_()
    return pointer


def positives() -> tuple[list[np.ndarray], Tensor]:
    """Pairs with a shared first or last word, a duplicate, and a span paired with itself."""
    first = np.array([[0, 0, 2, 3, 4], [0, 0, 1, 3, 5], [2, 0, 2, 3, 4], [2, 0, 2, 3, 4], [1, 3, 5, 3, 5]])
    last = np.array([[1, 3, 4, 0, 4]])
    cells = [pair_cells(pairs, LABELS) for pairs in (first, np.empty((0, 5), np.int64), last)]
    return cells, pack_cells(cells)


@torch.no_grad()
def reference_score(pointer: PairPointer, query_word: Tensor, key_word: Tensor, matrix: int) -> float:
    """Compute the score of two words in one matrix: first words of each label, then last words."""
    size = pointer.size
    if isinstance(pointer, FullPairPointer):
        low = matrix * 2 * size
        weight, bias = pointer.projection.weight, pointer.projection.bias
        query = weight[low : low + size] @ query_word + bias[low : low + size]
        key = weight[low + size : low + 2 * size] @ key_word + bias[low + size : low + 2 * size]
        return float(query @ key) / size**0.5 + float(pointer.prior[matrix])
    assert isinstance(pointer, SharedPairPointer)
    part, label = divmod(matrix, LABELS)
    projected = [(pointer.projection(word)[part * 2 * size :])[: 2 * size] for word in (query_word, key_word)]
    row, column = (pointer.typing[part](vector) for vector in projected)
    product = float(projected[0][:size] @ projected[1][size:]) / size**0.5
    return product + float(row[label]) / 2 + float(column[LABELS + label]) / 2 + float(pointer.prior[matrix])


@pytest.mark.parametrize("kind", KINDS)
def test_scores_match_the_reference(kind: type[PairPointer], words: Tensor) -> None:
    pointer = make(kind)
    scores = pointer.scores(words, 0, 2 * LABELS).detach()
    for b, m, i, j in product(range(3), range(2 * LABELS), range(5), range(5)):
        assert float(scores[b, m, i, j]) == pytest.approx(reference_score(pointer, words[b, i], words[b, j], m), abs=1e-5)
    torch.testing.assert_close(pointer.scores(words, 1, 5), scores[:, 1:5])


@pytest.mark.parametrize("max_cells", [1 << 25, 2 * 75, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_loss_matches_the_reference_at_once_and_in_groups(
    kind: type[PairPointer], words: Tensor, mask: Tensor, max_cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair_pointer, "MAX_CELLS", max_cells)
    pointer = make(kind)
    cells_by_sentence, packed = positives()
    losses = pointer.loss(words, mask, packed).detach()
    assert losses.shape == (3, 2 * LABELS)
    for b, m in product(range(3), range(2 * LABELS)):
        gold = {(i, j) for matrix, i, j in cells_by_sentence[b].tolist() if matrix == m}
        negative = positive = 1.0
        for i, j in product(range(LENGTHS[b]), repeat=2):
            score = reference_score(pointer, words[b, i], words[b, j], m)
            if (i, j) in gold:
                positive += exp(-score)
            else:
                negative += exp(score)
        assert float(losses[b, m]) == pytest.approx(log(negative) + log(positive), abs=1e-4)


def test_groups_have_the_same_gradients(words: Tensor, mask: Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    pointer = make(FullPairPointer)
    gradients = []
    for max_cells in (1 << 25, 2 * 75):
        monkeypatch.setattr(pair_pointer, "MAX_CELLS", max_cells)
        pointer.zero_grad()
        states = words.clone().requires_grad_()
        pointer.loss(states, mask, positives()[1]).sum().backward()
        gradients.append((states.grad, pointer.projection.weight.grad.clone()))  # type: ignore[union-attr]
    for at_once, in_groups in zip(*gradients, strict=True):
        torch.testing.assert_close(at_once, in_groups)


@pytest.mark.parametrize("kind", KINDS)
def test_no_tensor_grows_with_the_number_of_labels(kind: type[PairPointer], monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither labels nor scores of all matrices are in memory at once, forward or backward."""
    monkeypatch.setattr(pair_pointer, "MAX_CELLS", 4096)
    pointer: Any = kind(WIDTH, 40, 4)  # type: ignore[call-arg, arg-type]
    words, mask = torch.randn(2, 16, WIDTH, requires_grad=True), torch.ones(2, 16, dtype=torch.bool)
    cells = pack_cells([pair_cells(np.array([[39, 1, 3, 5, 7], [2, 1, 3, 8, 9]]), 40)] * 2)
    with LargestTensor() as largest:
        pointer.loss(words, mask, cells).sum().backward()
    all_cells = 2 * 80 * 16 * 16
    assert 4096 <= largest.size < 1.1 * 4096 < all_cells


@pytest.mark.parametrize("max_cells", [1 << 25, 1])
def test_no_positives_and_no_words(mask: Tensor, words: Tensor, max_cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_pointer, "MAX_CELLS", max_cells)
    pointer = make(FullPairPointer)
    no_cells = pack_cells([np.empty((0, 3), np.int64)] * 3)
    losses = pointer.loss(words, torch.zeros_like(mask), no_cells)
    assert torch.equal(losses, torch.zeros(3, 2 * LABELS))
    assert bool((pointer.loss(words, mask, no_cells) > 0).all())


@pytest.mark.parametrize("max_cells", [1 << 25, 1])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cutoff", [0.0, 0.1])
def test_pairs_match_a_loop_over_spans(
    kind: type[PairPointer], words: Tensor, cutoff: float, max_cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair_pointer, "MAX_CELLS", max_cells)
    torch.manual_seed(2)
    pointer = make(kind)
    spans = [(2, 0, 4), (0, 1, 3), (0, 1, 2), (2, 2, 3), (0, 4, 5), (0, 0, 5)]  # unordered; sentence 1 has none
    packed = PackedSpans(*(torch.tensor(column) for column in zip(*spans, strict=True)))
    with torch.no_grad():
        scored = pointer.score_pairs(words, packed, cutoff)
    expected = {}
    for (x, (b, s1, e1)), (y, (c, s2, e2)) in product(enumerate(spans), repeat=2):
        for label in range(LABELS) if b == c else ():
            first = reference_score(pointer, words[b, s1], words[b, s2], label)
            last = reference_score(pointer, words[b, e1 - 1], words[b, e2 - 1], LABELS + label)
            if min(first, last) > cutoff:
                expected[x, y, label] = 1 / (1 + exp(-min(first, last)))
    columns = zip(scored.first.tolist(), scored.second.tolist(), scored.label.tolist(), scored.score.tolist(), strict=True)
    actual = {(x, y, label): score for x, y, label, score in columns}
    assert expected
    assert len(actual) == len(scored.score)
    assert actual == pytest.approx(expected, abs=1e-5)


def test_no_pairs_without_spans(words: Tensor) -> None:
    empty = torch.empty(0, dtype=torch.int64)
    scored = FullPairPointer(WIDTH, LABELS).score_pairs(words, PackedSpans(empty, empty, empty))
    assert len(scored.first) == len(scored.second) == len(scored.label) == len(scored.score) == 0


@pytest.mark.parametrize("max_cells", [1 << 25, 2 * 75])
@pytest.mark.parametrize("kind", KINDS)
def test_loss_does_not_synchronise(
    kind: type[PairPointer],
    words: Tensor,
    mask: Tensor,
    max_cells: int,
    synchronisations: Callable[[], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pair_pointer, "MAX_CELLS", max_cells)
    pointer = make(kind)
    packed = positives()[1]
    with synchronisations() as counts:
        pointer.loss(words.requires_grad_(), mask, packed).sum().backward()
    assert not counts
