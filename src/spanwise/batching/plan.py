"""Which sentences are read together: batches of like length. NumPy only."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
POOL = 50  # batches whose sentences are sorted by length together
LENGTH = 128  # words or subwords of a sentence up to which a batch for scoring has as many as it may
PADDING = 256  # at most so much is added to a batch for scoring: about what a batch more would cost


def plan(costs: Ints, batch_size: int, budget: int | None, generator: np.random.Generator | None) -> list[Ints]:
    """Which sentences go into which batch.

    With a generator: shuffled, sorted by length within pools of some batches, and the batches shuffled again. Without: by
    length, longest first, so that memory runs out at once if it does, and a batch ends early where its sentences would need
    much padding: one very long sentence does not make a whole batch as long. Where sentences are longer than ``LENGTH``, fewer
    are read together, for some heads need memory for the square of it. ``budget`` bounds sentences x longest cost of a batch in
    other ways: in training instead of their number, for scoring besides it.

    >>> [batch.tolist() for batch in plan(np.array([5, 1, 4, 2]), 2, None, None)]
    [[0, 2], [3, 1]]
    """
    if generator is None:
        return _cut(np.argsort(-costs, kind="stable"), costs, batch_size, budget or LENGTH * batch_size, PADDING)
    order = generator.permutation(len(costs))
    size = POOL * batch_size if budget is None else max(1, POOL * budget // max(1, int(costs.mean() if len(costs) else 1)))
    batches: list[Ints] = []
    for first in range(0, len(order), size):
        pool = order[first : first + size]
        batches += _cut(pool[np.argsort(-costs[pool], kind="stable")], costs, batch_size, budget)
    # Only a pool's last batch may be small: moved about, it does no harm.
    return [batches[number] for number in generator.permutation(len(batches))]


def _cut(order: Ints, costs: Ints, batch_size: int, budget: int | None, padding: int | None = None) -> list[Ints]:
    batches: list[Ints] = []
    first = 0
    while first < len(order):  # sorted by falling cost, so a batch's first sentence is its longest
        longest = int(costs[order[first]])
        count = batch_size if budget is None else max(1, budget // max(1, longest))
        batch = order[first : first + count]
        if padding is not None:
            batch = batch[:batch_size]
            batch = batch[: np.searchsorted(np.cumsum(longest - costs[batch]), padding, side="right")]
        batches.append(batch)
        first += len(batch)
    return batches
