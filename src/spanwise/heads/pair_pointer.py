"""Scores of span pairs: for each label, a matrix over their first words and one over their last words.

This is how GPLinker joins subjects and objects: a pair has a label if the label's first matrix
scores the pair of first words above 0 and its second matrix the pair of last words. The matrices
have no rotation and are not triangular, so either span may come first.

Label c has matrix c for first words and matrix C + c for last words, so that both kinds share one
product and one loss.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from spanwise.heads.base import ScoredPairs
from spanwise.heads.partial import Known
from spanwise.heads.sentence_cache import Ints
from spanwise.heads.span_head import sentence_indices
from spanwise.losses.imbalance import class_imbalance
from spanwise.losses.partial import open_weight
from spanwise.spans.matching import PackedSpans

INITIAL_SCORE = -5.0  # of every cell: almost all are negative, and learning this bias would take many steps
MAX_CELLS = 1 << 25  # scores in memory at a time: 128 MiB of float32, and some copies of them in the loss


def pair_cells(pairs: Ints, labels: int) -> Ints:
    """The distinct positive cells of a sentence: matrix, row and column [n, 3].

    A row of ``pairs`` [P, 5] is the label, start and end of the first span, start and end of the second.

    >>> pair_cells(np.array([[0, 2, 4, 5, 6], [0, 2, 3, 5, 6]]), labels=1).tolist()
    [[0, 2, 5], [1, 2, 5], [1, 3, 5]]
    """
    firsts, lasts = pairs[:, [0, 1, 3]], pairs[:, [0, 2, 4]] + np.array([labels, -1, -1])
    return np.unique(np.concatenate([firsts, lasts]), axis=0)


def pack_cells(cells: Sequence[Ints]) -> Tensor:
    """Pack the ``pair_cells`` of a batch to one tensor [4, n]: sentence, matrix, row and column.

    >>> pack_cells([np.array([[0, 1, 2]]), np.empty((0, 3), np.int64), np.array([[1, 5, 6]])]).tolist()
    [[0, 2], [0, 1], [1, 5], [2, 6]]
    """
    rows = np.concatenate([*cells, np.empty((0, 3), np.int64)])
    return torch.from_numpy(np.concatenate([sentence_indices(cells)[None], rows.T]))


class PairPointer(nn.Module, ABC):
    """Base of both forms; see the module docstring. The caller applies dropout to the words."""

    def __init__(self, labels: int, size: int) -> None:
        super().__init__()
        self.labels, self.size = labels, size
        self.prior = nn.Parameter(torch.full((2 * labels,), INITIAL_SCORE))

    def scores(self, words: Tensor, first: int, last: int) -> Tensor:
        """Scores of the matrices ``first`` to ``last`` - 1: ``words`` [B, T, d] to [B, last - first, T, T] in float32."""
        return self.products(words, first, last).add_(self.prior[first:last, None, None])

    @abstractmethod
    def products(self, words: Tensor, first: int, last: int) -> Tensor:
        """The scores without the bias of each matrix."""

    def loss(self, words: Tensor, mask: Tensor, positives: Tensor, known: Known | None = None) -> Tensor:
        """The class-imbalance loss of every sentence and matrix: [B, 2 C].

        ``positives`` come from ``pack_cells``, ``known`` from the marks of partially annotated sentences.
        With more than ``MAX_CELLS`` cells, the matrices are computed in groups, and again for their
        gradients, which bounds the memory.
        """
        matrices, (count, length) = 2 * self.labels, mask.shape
        group = max(1, MAX_CELLS // max(1, count * length * length))
        mask = mask.bool()
        inside = (mask.unsqueeze(2) & mask.unsqueeze(1)).unsqueeze(1)
        if group >= matrices:
            return self._loss(words, inside, positives, 0, matrices, known)
        parts = [
            checkpoint(
                self._loss, words, inside, positives, first, min(first + group, matrices), known,
                use_reentrant=False, preserve_rng_state=False,
            )
            for first in range(0, matrices, group)
        ]  # fmt: skip
        return torch.cat(parts, 1)

    def _loss(
        self, words: Tensor, inside: Tensor, positives: Tensor, first: int, last: int, known: Known | None
    ) -> Tensor:  # fmt: skip
        scores = self.scores(words, first, last)
        weights = None
        if known is not None:
            is_open = known.is_open_word_pair(scores.shape[2]).unsqueeze(1)
            weights = open_weight(scores, known.marked_share.view(-1, 1, 1, 1)).masked_fill(~is_open, 0.0)
        sentence, matrix, row, column = positives.unbind(0)
        cell = ((sentence * (last - first) + matrix - first) * scores.shape[2] + row) * scores.shape[3] + column
        if (first, last) == (0, 2 * self.labels):
            return class_imbalance(scores, inside, cell, weights=weights)
        # Selecting the positives of these matrices would make the CPU wait for their number: mask the others instead.
        is_other = (matrix < first) | (matrix >= last)
        return class_imbalance(scores, inside, cell.masked_fill(is_other, scores.numel()), weights=weights, padded=True)

    def score_pairs(self, words: Tensor, spans: PackedSpans, cutoff: float = 0.0) -> ScoredPairs:
        """The pairs of spans of one sentence whose scores both exceed the cutoff.

        The score of a pair is the lower of the two, as a probability. Every span is paired with every
        span of its sentence, itself included, in both directions. Only the first and last words of
        spans are used, so that K spans in a sentence cost K x K cells.
        """
        count, length, width = words.shape
        table, exists = _by_sentence(spans.sentence, count)
        size = table.shape[1]
        offset = length * torch.arange(count, device=words.device).unsqueeze(1)
        firsts, lasts = (
            words.reshape(-1, width).index_select(0, (offset + side[table]).where(exists, 0).view(-1)).view(count, size, width)
            for side in (spans.start, spans.end - 1)
        )
        inside = (exists.unsqueeze(2) & exists.unsqueeze(1)).unsqueeze(1)
        group = max(1, MAX_CELLS // max(1, count * size * size))
        pairs: list[tuple[Tensor, ...]] = []
        for low in range(0, self.labels, group):
            high = min(low + group, self.labels)
            both = torch.minimum(self.scores(firsts, low, high), self.scores(lasts, self.labels + low, self.labels + high))
            sentence, label, first, second = ((both > cutoff) & inside).nonzero().unbind(1)
            score = both[sentence, label, first, second].sigmoid()
            pairs.append((table[sentence, first], table[sentence, second], label + low, score))
        return ScoredPairs(*(torch.cat(column) for column in zip(*pairs, strict=True)))


def _by_sentence(sentence: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """A table [B, K] of the indices of each sentence's items, and a mask of the cells that hold one.

    >>> _by_sentence(torch.tensor([1, 0, 1]), 2)
    (tensor([[1, 0],
            [0, 2]]), tensor([[ True, False],
            [ True,  True]]))
    """
    counts = sentence.new_zeros(count).index_add(0, sentence, torch.ones_like(sentence))
    size = int(counts.max()) if len(sentence) else 0
    order = torch.argsort(sentence, stable=True)
    ordered = sentence[order]
    column = torch.arange(len(order), device=sentence.device) - (counts.cumsum(0) - counts)[ordered]
    table = sentence.new_zeros(count, size)
    table[ordered, column] = order
    return table, torch.arange(size, device=sentence.device) < counts.unsqueeze(1)


class FullPairPointer(PairPointer):
    """A separate query and key for every matrix: s(i, j) = q_i . k_j / sqrt(size) + b."""

    def __init__(self, width: int, labels: int, size: int = 64) -> None:
        super().__init__(labels, size)
        self.projection = nn.Linear(width, 2 * labels * 2 * size)

    def products(self, words: Tensor, first: int, last: int) -> Tensor:
        rows = slice(first * 2 * self.size, last * 2 * self.size)
        weight, bias = self.projection.weight[rows], self.projection.bias[rows]
        projected = nn.functional.linear(words.to(weight.dtype), weight, bias)
        projected = projected.view(*words.shape[:2], last - first, 2, self.size)
        # Scaled before the product, so that it does not overflow in half precision.
        queries, keys = (projected * self.size**-0.25).permute(3, 0, 2, 1, 4).unbind(0)
        scores: Tensor = (queries @ keys.transpose(2, 3)).float()
        return scores


class SharedPairPointer(PairPointer):
    """One product for all labels, and terms of each label for a row and a column, as in Efficient GlobalPointer.

    s(i, j) = q_i . k_j / sqrt(size) + (u . [q_i; k_i] + b) / 2 + (v . [q_j; k_j] + c) / 2 + a. First
    words and last words have separate products.
    """

    def __init__(self, width: int, labels: int, size: int = 64) -> None:
        super().__init__(labels, size)
        self.projection = nn.Linear(width, 2 * 2 * size)
        self.typing = nn.ModuleList(nn.Linear(2 * size, 2 * labels) for _ in range(2))

    def products(self, words: Tensor, first: int, last: int) -> Tensor:
        parts = []
        for side, typing in enumerate(self.typing):  # 0: first words, 1: last words
            low, high = max(first - side * self.labels, 0), min(last - side * self.labels, self.labels)
            if low < high:
                parts.append(self._scores(words, side, typing, low, high))  # type: ignore[arg-type]
        return parts[0] if len(parts) == 1 else torch.cat(parts, 1)

    def _scores(self, words: Tensor, side: int, typing: nn.Linear, low: int, high: int) -> Tensor:
        rows = slice(side * 2 * self.size, (side + 1) * 2 * self.size)
        projected = nn.functional.linear(
            words.to(self.projection.weight.dtype), self.projection.weight[rows], self.projection.bias[rows]
        )
        queries, keys = (projected * self.size**-0.25).chunk(2, -1)
        common = (queries @ keys.transpose(1, 2)).float().unsqueeze(1)
        starts, ends = (typing(projected).float() / 2).transpose(1, 2).chunk(2, 1)  # [B, C, T]
        scores: Tensor = common + starts[:, low:high].unsqueeze(3) + ends[:, low:high].unsqueeze(2)
        return scores
