"""A small text, and its words counted together as literally as can be."""

from __future__ import annotations

import random
from collections import defaultdict

LETTERS = "abcdefghijklmnopqrst"


def some_text(sentences: int = 60, seed: int = 1) -> list[list[str]]:
    choose = random.Random(seed)
    weights = [1 / (n + 1) for n in range(len(LETTERS))]
    return [choose.choices(LETTERS, weights, k=choose.randint(0, 25)) for _ in range(sentences)]


def literal_counts(text: list[list[str]], window: int, min_count: int = 1) -> dict[tuple[str, str], float]:
    """For each place of each sentence, all places within the window to either side."""
    every = [word for sentence in text for word in sentence]
    counts: dict[tuple[str, str], float] = defaultdict(float)
    for sentence in text:
        for here, word in enumerate(sentence):
            for there, other in enumerate(sentence):
                if 0 < abs(here - there) <= window and every.count(word) >= min_count and every.count(other) >= min_count:
                    counts[word, other] += 1 / abs(here - there)
    return dict(counts)
