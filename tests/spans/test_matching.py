"""Pairing spans with gold, against loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from spanwise.spans.candidates import grid
from spanwise.spans.candidates import packed as packed_spans
from spanwise.spans.matching import PackedSpans, matched


def packed(rows: list[tuple[int, int, int]]) -> PackedSpans:
    return PackedSpans(*torch.tensor(rows, dtype=torch.long).reshape(-1, 3).unbind(1))


def test_worked_by_hand() -> None:
    gold = torch.tensor([[[1, 4], [2, 3]], [[0, 0], [0, 0]], [[5, 9], [0, 0]]])
    found = matched(packed([(0, 1, 3), (0, 2, 3), (0, 0, 5), (0, 5, 6), (1, 0, 2), (2, 5, 8)]), gold)
    # 1-3 shares two of three words with 1-4 and one of two with 2-3; 5-6 shares none with either.
    assert found.overlap.tolist() == pytest.approx([2 / 3, 1.0, 3 / 5, 0.0, 0.0, 3 / 4])
    assert found.place.tolist()[:3] == [0, 1, 0]
    assert found.place.tolist()[5] == 4
    assert list(zip(found.start.tolist(), found.end.tolist(), strict=True))[5] == (5, 9)


@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_best_of_the_sentence(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 12, 6)
    gold = np.zeros((6, 5, 2), np.int64)
    for number, length in enumerate(lengths):
        for place in range(int(rng.integers(0, 6))):
            start = int(rng.integers(0, length))
            gold[number, place] = start, int(rng.integers(start + 1, length + 1))
    spans = PackedSpans(*map(torch.from_numpy, packed_spans(grid(lengths, 6))))
    found = matched(spans, torch.from_numpy(gold))
    for n, (sentence, start, end) in enumerate(zip(*(column.tolist() for column in spans), strict=True)):
        words = set(range(start, end))
        rivals = [set(range(*other)) for other in gold[sentence].tolist()]
        overlaps = [len(words & other) / len(words | other) for other in rivals]
        assert found.overlap[n].item() == pytest.approx(max(overlaps))
        number, place = divmod(int(found.place[n]), 5)
        assert number == sentence
        assert overlaps[place] == max(overlaps)
        assert gold[number, place].tolist() == [found.start[n], found.end[n]]


def test_nothing_to_match() -> None:
    assert matched(packed([]), torch.zeros(2, 1, 2, dtype=torch.long)).overlap.shape == (0,)
