"""Candidate spans and sampled negatives."""

from __future__ import annotations

from itertools import product

import numpy as np

from spanwise.spans.candidates import Spans, grid, packed, sample_negatives

Triple = tuple[int, int, int]


def triples(spans: Spans) -> list[Triple]:
    return list(zip(*(column.tolist() for column in spans), strict=True))


def all_spans(lengths: list[int], width: int) -> list[Triple]:
    return [
        (sentence, start, end)
        for sentence, length in enumerate(lengths)
        for start in range(length)
        for end in range(start + 1, min(start + width, length) + 1)
    ]


def as_spans(rows: list[Triple]) -> Spans:
    return Spans(*np.array(rows, np.int64).reshape(-1, 3).T)


def test_the_grid_contains_all_spans() -> None:
    for lengths, width in product(([5, 1, 3], [0], [], [2, 0, 9], [7]), (1, 2, 4, 30)):
        spans = packed(grid(np.array(lengths, np.int64), width))
        assert triples(spans) == all_spans(lengths, width), (lengths, width)
        assert all(column.dtype == np.int64 for column in spans)


def test_negatives_are_unique_and_not_gold() -> None:
    generator = np.random.default_rng(1)
    for _ in range(50):
        lengths = generator.integers(0, 15, 6).tolist()
        width, count = int(generator.integers(1, 6)), int(generator.integers(1, 40))
        candidates = all_spans(lengths, width)
        gold = [span for span in candidates if generator.random() < 0.2]
        wide = [(sentence, 0, length) for sentence, length in enumerate(lengths) if length > width]
        sample = triples(sample_negatives(np.array(lengths), width, as_spans(gold + wide), count, generator))
        negatives = set(candidates) - set(gold)
        assert set(sample) <= negatives
        assert len(set(sample)) == len(sample)
        for sentence in range(len(lengths)):
            available = sum(span[0] == sentence for span in negatives)
            assert sum(span[0] == sentence for span in sample) == min(count, available)


def test_the_sample_depends_on_the_generator() -> None:
    lengths, gold = np.array([30, 12]), as_spans([(0, 3, 5)])
    samples = [sample_negatives(lengths, 8, gold, 20, np.random.default_rng(seed)) for seed in (5, 5, 6)]
    assert triples(samples[0]) == triples(samples[1]) != triples(samples[2])


def test_negatives_are_sampled_uniformly() -> None:
    sentences, count = 6000, 5
    gold = as_spans([(sentence, 1, 3) for sentence in range(sentences)])
    sample = triples(sample_negatives(np.full(sentences, 6), 4, gold, count, np.random.default_rng(3)))
    negatives = [span[1:] for span in all_spans([6], 4) if span[1:] != (1, 3)]
    share = count / len(negatives)
    deviation = np.sqrt(sentences * share * (1 - share))
    counts = np.array([sum(span[1:] == negative for span in sample) for negative in negatives])
    assert np.abs(counts - sentences * share).max() < 4.5 * deviation


def test_negatives_are_sampled_from_the_given_cells_which_stay_the_same() -> None:
    lengths, gold = np.array([6]), as_spans([(0, 2, 3)])
    candidates = grid(lengths, 2)
    candidates[0, 4:] = False
    before = candidates.copy()
    negatives = triples(sample_negatives(lengths, 2, gold, 100, np.random.default_rng(1), candidates))
    assert set(negatives) == {span for span in all_spans([6], 2) if span[1] < 4} - {(0, 2, 3)}
    assert (candidates == before).all()
