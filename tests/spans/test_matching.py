"""Matching spans with gold, compared with loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from spanwise.spans.candidates import grid
from spanwise.spans.candidates import packed as packed_spans
from spanwise.spans.matching import PackedSpans, match_spans


def packed(rows: list[tuple[int, int, int]]) -> PackedSpans:
    return PackedSpans(*torch.tensor(rows, dtype=torch.long).reshape(-1, 3).unbind(1))


def test_hand_worked_example() -> None:
    gold = torch.tensor([[[1, 4], [2, 3]], [[0, 0], [0, 0]], [[5, 9], [0, 0]]])
    matches = match_spans(packed([(0, 1, 3), (0, 2, 3), (0, 0, 5), (0, 5, 6), (1, 0, 2), (2, 5, 8)]), gold)
    # 1-3 shares two of three words with 1-4 and one of two with 2-3; 5-6 shares none with either.
    assert matches.overlap.tolist() == pytest.approx([2 / 3, 1.0, 3 / 5, 0.0, 0.0, 3 / 4])
    assert matches.gold_index.tolist()[:3] == [0, 1, 0]
    assert matches.gold_index.tolist()[5] == 4
    assert list(zip(matches.start.tolist(), matches.end.tolist(), strict=True))[5] == (5, 9)


@pytest.mark.parametrize("seed", range(5))
def test_the_match_has_the_largest_overlap_in_the_sentence(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 12, 6)
    gold = np.zeros((6, 5, 2), np.int64)
    for index, length in enumerate(lengths):
        for column in range(int(rng.integers(0, 6))):
            start = int(rng.integers(0, length))
            gold[index, column] = start, int(rng.integers(start + 1, length + 1))
    spans = PackedSpans(*map(torch.from_numpy, packed_spans(grid(lengths, 6))))
    matches = match_spans(spans, torch.from_numpy(gold))
    for n, (sentence, start, end) in enumerate(zip(*(column.tolist() for column in spans), strict=True)):
        words = set(range(start, end))
        candidates = [set(range(*other)) for other in gold[sentence].tolist()]
        overlaps = [len(words & other) / len(words | other) for other in candidates]
        assert matches.overlap[n].item() == pytest.approx(max(overlaps))
        row, column = divmod(int(matches.gold_index[n]), 5)
        assert row == sentence
        assert overlaps[column] == max(overlaps)
        assert gold[row, column].tolist() == [matches.start[n], matches.end[n]]


def test_no_spans() -> None:
    assert match_spans(packed([]), torch.zeros(2, 1, 2, dtype=torch.long)).overlap.shape == (0,)
