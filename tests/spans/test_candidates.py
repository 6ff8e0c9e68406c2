"""Candidate spans and sampled negatives."""

from __future__ import annotations

import numpy as np
import pytest

from spanwise.spans.candidates import Spans, grid, packed, sampled_negatives

Triple = tuple[int, int, int]


def triples(spans: Spans) -> list[Triple]:
    return list(zip(*(column.tolist() for column in spans), strict=True))


def enumerated(lengths: list[int], width: int) -> list[Triple]:
    return [
        (number, start, end)
        for number, length in enumerate(lengths)
        for start in range(length)
        for end in range(start + 1, min(start + width, length) + 1)
    ]


def as_spans(found: list[Triple]) -> Spans:
    return Spans(*np.array(found, np.int64).reshape(-1, 3).T)


@pytest.mark.parametrize("lengths", [[5, 1, 3], [0], [], [2, 0, 9], [7]])
@pytest.mark.parametrize("width", [1, 2, 4, 30])
def test_all_spans_are_those_of_a_literal_loop(lengths: list[int], width: int) -> None:
    spans = packed(grid(np.array(lengths, np.int64), width))
    assert triples(spans) == enumerated(lengths, width)
    assert all(column.dtype == np.int64 for column in spans)


def test_negatives_are_no_gold_no_twins_and_as_many_as_asked() -> None:
    generator = np.random.default_rng(1)
    for _ in range(50):
        lengths = generator.integers(0, 15, 6).tolist()
        width, count = int(generator.integers(1, 6)), int(generator.integers(1, 40))
        every = enumerated(lengths, width)
        gold = [span for span in every if generator.random() < 0.2]
        wide = [(number, 0, length) for number, length in enumerate(lengths) if length > width]
        found = triples(sampled_negatives(np.array(lengths), width, as_spans(gold + wide), count, generator))
        negatives = set(every) - set(gold)
        assert set(found) <= negatives
        assert len(set(found)) == len(found)
        for number in range(len(lengths)):
            there = sum(span[0] == number for span in negatives)
            assert sum(span[0] == number for span in found) == min(count, there)


def test_one_generator_state_gives_one_sample() -> None:
    lengths, gold = np.array([30, 12]), as_spans([(0, 3, 5)])
    samples = [sampled_negatives(lengths, 8, gold, 20, np.random.default_rng(seed)) for seed in (5, 5, 6)]
    assert triples(samples[0]) == triples(samples[1]) != triples(samples[2])


def test_every_negative_is_as_likely() -> None:
    sentences, count = 6000, 5
    gold = as_spans([(number, 1, 3) for number in range(sentences)])
    found = triples(sampled_negatives(np.full(sentences, 6), 4, gold, count, np.random.default_rng(3)))
    negatives = [span[1:] for span in enumerated([6], 4) if span[1:] != (1, 3)]
    share = count / len(negatives)
    deviation = np.sqrt(sentences * share * (1 - share))
    counts = np.array([sum(span[1:] == negative for span in found) for negative in negatives])
    assert np.abs(counts - sentences * share).max() < 4.5 * deviation
