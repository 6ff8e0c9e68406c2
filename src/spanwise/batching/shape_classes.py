"""Classes of batches with a common shape, so that a few recorded training steps serve all batches.

The sizes of a batch are sums or maxima over its sentences: the longest sentence in words, the number
of words with several subwords, of spellings, of gold rows. All batches are planned before training,
so the largest size that will occur is known for each class of batches: those with the same number of
sentences and nearly the same length. Every batch of a class is padded to these sizes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spanwise.encoders.fixed_shapes import SizeTable
from spanwise.runtime.cuda_graphs import pad_length

Ints = npt.NDArray[np.int64]
MIN_BATCHES = 3  # of a class; recording costs about as much as two steps
MAX_CLASSES = 96


def common_sizes(batches: Sequence[Ints], costs: Ints, table: SizeTable) -> list[dict[str, int] | None]:
    """The sizes to which each batch is padded; None for a batch that keeps its own shape.

    >>> table = SizeTable({"rows": np.array([3, 1, 9])}, {"words": np.array([4, 6, 30])})
    >>> common_sizes([np.array([0]), np.array([1]), np.array([0]), np.array([2])], np.array([5, 7, 33]), table)[0]
    {'rows': 8, 'words': 8}
    """
    keys = [(len(batch), pad_length(int(costs[batch].max(initial=1)))) for batch in batches]
    counts = Counter(keys)
    recorded = {key for key, count in counts.most_common(MAX_CLASSES) if count >= MIN_BATCHES}
    largest: dict[tuple[int, int], dict[str, int]] = {}
    sizes = [table.of_batch(batch) if key in recorded else None for batch, key in zip(batches, keys, strict=True)]
    for key, batch_sizes in zip(keys, sizes, strict=True):
        if batch_sizes is not None:
            current = largest.setdefault(key, batch_sizes)
            largest[key] = {name: max(size, current[name]) for name, size in batch_sizes.items()}
    rounded = {key: {name: pad_length(size) for name, size in common.items()} for key, common in largest.items()}
    return [None if batch_sizes is None else rounded[key] for key, batch_sizes in zip(keys, sizes, strict=True)]
