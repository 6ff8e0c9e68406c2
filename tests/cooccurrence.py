"""A random text and reference co-occurrence counts."""

from __future__ import annotations

import random
from collections import defaultdict

LETTERS = "abcdefghijklmnopqrst"


def random_text(sentences: int = 60, seed: int = 1) -> list[list[str]]:
    generator = random.Random(seed)
    weights = [1 / (n + 1) for n in range(len(LETTERS))]
    return [generator.choices(LETTERS, weights, k=generator.randint(0, 25)) for _ in range(sentences)]


def reference_counts(text: list[list[str]], window: int, min_count: int = 1) -> dict[tuple[str, str], float]:
    """Count the words within the window on both sides of every word, by comparing all pairs."""
    all_words = [word for sentence in text for word in sentence]
    counts: dict[tuple[str, str], float] = defaultdict(float)
    for sentence in text:
        for i, word in enumerate(sentence):
            for j, other in enumerate(sentence):
                if 0 < abs(i - j) <= window and all_words.count(word) >= min_count and all_words.count(other) >= min_count:
                    counts[word, other] += 1 / abs(i - j)
    return dict(counts)
