"""How far a score would move with other test sentences: the percentile bootstrap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

RESAMPLES = 1_000
LEVEL = 0.95
SEED = 0


@dataclass(frozen=True, slots=True)
class Interval:
    """In a share ``level`` of the resamples the micro F1 lies between ``low`` and ``high``."""

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
    many as there are, for the errors in one sentence depend on each other. A resample that has no entities on either side has
    no F1 and is left out; None when there are no entities at all.

    >>> f1_interval([(2, 2, 2), (1, 1, 1)])
    Interval(low=1.0, high=1.0, level=0.95, resamples=1000, seed=0)
    """
    import numpy as np

    # Sentences with the same counts are the same to the score: how often each kind is drawn is multinomial, which costs a
    # hundredth of drawing them one by one, and does not depend on their order.
    kinds = sorted(Counter(counts).items())
    values = np.array([kind for kind, _ in kinds], dtype=np.int64).reshape(-1, 3)
    often = np.array([number for _, number in kinds], dtype=np.int64)
    if not values.any():
        return None
    drawn = np.random.default_rng(seed).multinomial(often.sum(), often / often.sum(), size=resamples)
    correct, predicted, support = (drawn @ values).T
    total = predicted + support
    defined = total > 0
    if not defined.any():
        return None
    f1 = 2 * correct[defined] / total[defined]
    low, high = np.quantile(f1, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), level, resamples, seed)
