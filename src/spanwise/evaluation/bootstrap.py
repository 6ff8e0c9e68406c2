"""How far a score would move with other test sentences: the percentile bootstrap."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RESAMPLES = 1_000
LEVEL = 0.95
SEED = 0
# Sentences with entities that the bootstrap takes: few, drawn again and again, vary too little. Simulated equal systems were
# told apart at the level of 5 % in 19 % of the cases on 2 sentences, in 10 % on 5, 7 % on 20 and 5 % on 50.
FEWEST = 20
BLOCK = 1_000


@dataclass(frozen=True, slots=True)
class Interval:
    """In a share ``level`` of the resamples the micro F1, or a difference of two, lies between ``low`` and ``high``."""

    low: float
    high: float
    level: float = LEVEL
    resamples: int = RESAMPLES
    seed: int = SEED

    def to_json(self) -> dict[str, Any]:
        return {
            "low": self.low,
            "high": self.high,
            "level": self.level,
            "resamples": self.resamples,
            "seed": self.seed,
        }


def f1_interval(
    counts: Iterable[tuple[int, int, int]], resamples: int = RESAMPLES, level: float = LEVEL, seed: int = SEED
) -> Interval | None:
    """The percentile bootstrap interval of the micro F1 (Efron and Tibshirani 1993, "An Introduction to the Bootstrap", 13.3).

    ``counts`` are the correct, predicted and gold entities of each sentence. Whole sentences are drawn, with replacement, as
    many as there are, for the errors in one sentence depend on each other. None where fewer than ``FEWEST`` sentences have
    entities on either side: so few, drawn again, vary less than others of the kind would.

    >>> f1_interval([(2, 2, 2), (1, 1, 1)] * 10)
    Interval(low=1.0, high=1.0, level=0.95, resamples=1000, seed=0)
    >>> f1_interval([(2, 2, 2), (1, 1, 1)])
    """
    import numpy as np

    values = np.array(list(counts), dtype=np.int64).reshape(-1, 3)
    return percentiles(f1_of(resampled(values, resamples, seed)), level, resamples, seed) if are_enough(values) else None


def are_enough(counts: NDArray[np.int64]) -> bool:
    """Whether the rows in which anything is counted are as many as the bootstrap takes."""
    return int(counts.any(axis=tuple(range(1, counts.ndim))).sum()) >= FEWEST


def f1_of(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """F1 from correct, predicted and gold in the last dimension; 0 where there are no entities."""
    import numpy as np

    f1: NDArray[np.float64] = 2 * counts[..., 0] / np.maximum(counts[..., 1] + counts[..., 2], 1)
    return f1


def resampled(counts: NDArray[np.int64], resamples: int, seed: int) -> NDArray[np.int64]:
    """The sums of the columns in each resample of the rows; a row is what is counted in one sentence.

    Sentences with the same counts are the same to the sums: how often each kind is drawn is multinomial, which costs a
    hundredth of drawing them one by one, and does not depend on their order.
    """
    import numpy as np

    generator = np.random.default_rng(seed)
    kinds, often = np.unique(counts, axis=0, return_counts=True)
    shares = often / len(counts)
    return np.concatenate([generator.multinomial(len(counts), shares, size=size) @ kinds for size in blocks(resamples)])


def blocks(resamples: int) -> list[int]:
    """So many resamples are made at a time, that memory does not grow with their number.

    >>> blocks(2_500)
    [1000, 1000, 500]
    """
    return [min(BLOCK, resamples - done) for done in range(0, resamples, BLOCK)]


def percentiles(values: NDArray[np.float64], level: float, resamples: int, seed: int) -> Interval:
    """The middle share ``level`` of what the resamples gave."""
    import numpy as np

    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), level, resamples, seed)
