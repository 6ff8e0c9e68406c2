"""Scores for pairs of spans: for each label a matrix over their first words and a matrix over their last words.

GPLinker, which its author made of GlobalPointer, joins subjects and objects so: a pair has a label where the label's first
matrix scores (first word of the one, first word of the other) above 0 and its last matrix scores the last words above 0. The
matrices are neither turned nor triangular, so either span may stand first. What the pairs mean is not known here.

Matrices are numbered: label c has matrix c for first words and matrix C + c for last words. So both kinds are one product and
one loss.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from spanwise.heads.base import ScoredPairs
from spanwise.heads.memo import Ints
from spanwise.heads.span_head import owners
from spanwise.losses.imbalance import class_imbalance
from spanwise.spans.matching import PackedSpans

PRIOR = -5.0  # the first score of every cell: almost none is positive, and to learn that much would take many steps
CELLS = 1 << 25  # scores that are in memory at a time: 128 MiB of float32, and some copies of them in the loss


def pair_cells(pairs: Ints, labels: int) -> Ints:
    """The positive cells of a sentence, each once: matrix, row and column of each [n, 3].

    ``pairs`` [P, 5] are the label, the start and end of the first span, and those of the second, half-open.

    >>> pair_cells(np.array([[0, 2, 4, 5, 6], [0, 2, 3, 5, 6]]), labels=1).tolist()
    [[0, 2, 5], [1, 2, 5], [1, 3, 5]]
    """
    firsts, lasts = pairs[:, [0, 1, 3]], pairs[:, [0, 2, 4]] + np.array([labels, -1, -1])
    return np.unique(np.concatenate([firsts, lasts]), axis=0)


def packed_cells(cells: Sequence[Ints]) -> Tensor:
    """The ``pair_cells`` of a batch's sentences as one tensor [4, n]: sentence, matrix, row and column.

    >>> packed_cells([np.array([[0, 1, 2]]), np.empty((0, 3), np.int64), np.array([[1, 5, 6]])]).tolist()
    [[0, 2], [0, 1], [1, 5], [2, 6]]
    """
    rows = np.concatenate([*cells, np.empty((0, 3), np.int64)])
    return torch.from_numpy(np.concatenate([owners(cells)[None], rows.T]))


class PairPointer(nn.Module, ABC):
    """Scores for pairs of spans; see the top of this file. Dropout of the words is left to the caller."""

    def __init__(self, labels: int, size: int) -> None:
        super().__init__()
        self.labels, self.size = labels, size
        self.prior = nn.Parameter(torch.full((2 * labels,), PRIOR))

    def scores(self, words: Tensor, first: int, last: int) -> Tensor:
        """Of the matrices from ``first`` up to ``last``: ``words`` [B, T, d] to [B, last - first, T, T] in float32."""
        return self.products(words, first, last).add_(self.prior[first:last, None, None])

    @abstractmethod
    def products(self, words: Tensor, first: int, last: int) -> Tensor:
        """The scores without the matrices' own constants."""

    def loss(self, words: Tensor, mask: Tensor, positives: Tensor) -> Tensor:
        """The class-imbalance loss of every sentence and matrix: [B, 2 C].

        ``words`` [B, T, d] and ``mask`` [B, T] are the states; ``positives`` come from ``packed_cells``. Where the matrices are
        more than ``CELLS``, they are made some at a time, and again for their gradients, so memory stays bounded.
        """
        matrices, (count, length) = 2 * self.labels, mask.shape
        several = max(1, CELLS // max(1, count * length * length))
        mask = mask.bool()
        inside = (mask.unsqueeze(2) & mask.unsqueeze(1)).unsqueeze(1)
        if several >= matrices:
            return self._loss(words, inside, positives, 0, matrices)
        parts = [
            checkpoint(
                self._loss, words, inside, positives, first, min(first + several, matrices),
                use_reentrant=False, preserve_rng_state=False,
            )
            for first in range(0, matrices, several)
        ]  # fmt: skip
        return torch.cat(parts, 1)

    def _loss(self, words: Tensor, inside: Tensor, positives: Tensor, first: int, last: int) -> Tensor:
        scores = self.scores(words, first, last)
        sentence, matrix, row, column = positives.unbind(0)
        place = ((sentence * (last - first) + matrix - first) * scores.shape[2] + row) * scores.shape[3] + column
        if (first, last) == (0, 2 * self.labels):
            return class_imbalance(scores, inside, place)
        # Choosing the positives of these matrices would make a GPU wait for their number: the others stay, and count nothing.
        absent = (matrix < first) | (matrix >= last)
        return class_imbalance(scores, inside, place.masked_fill(absent, scores.numel()), padded=True)

    def pairs(self, words: Tensor, spans: PackedSpans, bar: float = 0.0) -> ScoredPairs:
        """The pairs of spans of one sentence whose scores both lie above the bar; the lower one is theirs, as a probability.

        Every span is paired with every other and with itself, in both directions. Only the words at spans' ends are looked
        at, so K spans in a sentence cost K x K cells.
        """
        count, length, width = words.shape
        table, exists = _by_sentence(spans.sentence, count)
        most = table.shape[1]
        base = length * torch.arange(count, device=words.device).unsqueeze(1)
        firsts, lasts = (
            words.reshape(-1, width).index_select(0, (base + side[table]).where(exists, 0).view(-1)).view(count, most, width)
            for side in (spans.start, spans.end - 1)
        )
        inside = (exists.unsqueeze(2) & exists.unsqueeze(1)).unsqueeze(1)
        several = max(1, CELLS // max(1, count * most * most))
        found: list[tuple[Tensor, ...]] = []
        for low in range(0, self.labels, several):
            high = min(low + several, self.labels)
            both = torch.minimum(self.scores(firsts, low, high), self.scores(lasts, self.labels + low, self.labels + high))
            owner, label, one, other = ((both > bar) & inside).nonzero().unbind(1)
            found.append((table[owner, one], table[owner, other], label + low, both[owner, label, one, other].sigmoid()))
        return ScoredPairs(*(torch.cat(column) for column in zip(*found, strict=True)))


def _by_sentence(sentence: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """A table [B, K] of the places of each sentence's items among all, and where it has so many.

    >>> _by_sentence(torch.tensor([1, 0, 1]), 2)
    (tensor([[1, 0],
            [0, 2]]), tensor([[ True, False],
            [ True,  True]]))
    """
    counts = sentence.new_zeros(count).index_add(0, sentence, torch.ones_like(sentence))
    most = int(counts.max()) if len(sentence) else 0
    order = torch.argsort(sentence, stable=True)
    owner = sentence[order]
    rank = torch.arange(len(order), device=sentence.device) - (counts.cumsum(0) - counts)[owner]
    table = sentence.new_zeros(count, most)
    table[owner, rank] = order
    return table, torch.arange(most, device=sentence.device) < counts.unsqueeze(1)


class FullPairPointer(PairPointer):
    """A query and a key of its own for every matrix: s(i, j) = q_i . k_j / sqrt(size) + b."""

    def __init__(self, width: int, labels: int, size: int = 64) -> None:
        super().__init__(labels, size)
        self.projection = nn.Linear(width, 2 * labels * 2 * size)

    def products(self, words: Tensor, first: int, last: int) -> Tensor:
        rows = slice(first * 2 * self.size, last * 2 * self.size)
        weight, bias = self.projection.weight[rows], self.projection.bias[rows]
        projected = nn.functional.linear(words.to(weight.dtype), weight, bias)
        projected = projected.view(*words.shape[:2], last - first, 2, self.size)
        # Scaled before the product, so that it stays within the range of half precision.
        queries, keys = (projected * self.size**-0.25).permute(3, 0, 2, 1, 4).unbind(0)
        scores: Tensor = (queries @ keys.transpose(2, 3)).float()
        return scores


class SharedPairPointer(PairPointer):
    """One product for all labels, and what each label adds for a row and for a column, as in Efficient GlobalPointer.

    s(i, j) = q_i . k_j / sqrt(size) + (u . [q_i; k_i] + b) / 2 + (v . [q_j; k_j] + c) / 2 + a. First words have a product of
    their own, and so have last words.
    """

    def __init__(self, width: int, labels: int, size: int = 64) -> None:
        super().__init__(labels, size)
        self.projection = nn.Linear(width, 2 * 2 * size)
        self.typing = nn.ModuleList(nn.Linear(2 * size, 2 * labels) for _ in range(2))

    def products(self, words: Tensor, first: int, last: int) -> Tensor:
        parts = []
        for kind, typing in enumerate(self.typing):  # of first words, then of last words
            low, high = max(first - kind * self.labels, 0), min(last - kind * self.labels, self.labels)
            if low < high:
                parts.append(self._scores(words, kind, typing, low, high))  # type: ignore[arg-type]
        return parts[0] if len(parts) == 1 else torch.cat(parts, 1)

    def _scores(self, words: Tensor, kind: int, typing: nn.Linear, low: int, high: int) -> Tensor:
        rows = slice(kind * 2 * self.size, (kind + 1) * 2 * self.size)
        projected = nn.functional.linear(
            words.to(self.projection.weight.dtype), self.projection.weight[rows], self.projection.bias[rows]
        )
        queries, keys = (projected * self.size**-0.25).chunk(2, -1)
        common = (queries @ keys.transpose(1, 2)).float().unsqueeze(1)
        starts, ends = (typing(projected).float() / 2).transpose(1, 2).chunk(2, 1)  # [B, C, T]
        scores: Tensor = common + starts[:, low:high].unsqueeze(3) + ends[:, low:high].unsqueeze(2)
        return scores
