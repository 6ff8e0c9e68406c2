"""Grouping sentences into batches of similar length. NumPy only."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
POOL = 50  # batches per pool; the sentences of a pool are sorted by length
LENGTH = 128  # words or subwords; batches for scoring have fewer sentences if these are longer
PADDING = 256  # maximum padding of a batch for scoring: about the cost of another batch


def plan(
    costs: Ints, batch_size: int, budget: int | None, generator: np.random.Generator | None, *, padding: int = PADDING
) -> list[Ints]:  # fmt: skip
    """The indices of the sentences of each batch.

    With a generator (training), sentences are shuffled and sorted by length within pools, and the
    batches are shuffled again. ``budget`` then replaces ``batch_size``: it limits the number of
    sentences times the longest cost.

    Without a generator (scoring), sentences are sorted by length, longest first, so that running out
    of memory happens at once. A batch ends early if its sentences would need much padding, and has
    fewer sentences if these are longer than ``LENGTH``, because some heads need memory for the square
    of the length. ``budget`` then applies in addition to ``batch_size``, and ``padding`` limits the padding
    of a batch.

    >>> [batch.tolist() for batch in plan(np.array([5, 1, 4, 2]), 2, None, None)]
    [[0, 2], [3, 1]]
    """
    if generator is None:
        return _cut(np.argsort(-costs, kind="stable"), costs, batch_size, budget or LENGTH * batch_size, padding)
    order = generator.permutation(len(costs))
    size = POOL * batch_size if budget is None else max(1, POOL * budget // max(1, int(costs.mean() if len(costs) else 1)))
    batches: list[Ints] = []
    for first in range(0, len(order), size):
        pool = order[first : first + size]
        batches += _cut(pool[np.argsort(-costs[pool], kind="stable")], costs, batch_size, budget)
    # Only the last batch of a pool may be small; shuffling spreads these batches.
    return [batches[index] for index in generator.permutation(len(batches))]


def _cut(order: Ints, costs: Ints, batch_size: int, budget: int | None, padding: int | None = None) -> list[Ints]:
    batches: list[Ints] = []
    first = 0
    while first < len(order):  # sorted by decreasing cost, so the first sentence of a batch is its longest
        longest = int(costs[order[first]])
        count = batch_size if budget is None else max(1, budget // max(1, longest))
        batch = order[first : first + count]
        if padding is not None:
            batch = batch[:batch_size]
            batch = batch[: np.searchsorted(np.cumsum(longest - costs[batch]), padding, side="right")]
        batches.append(batch)
        first += len(batch)
    return batches
