"""Classes of batches with a common shape, so that a few recorded training steps serve all batches.

The sizes of a batch are sums or maxima over its sentences: the longest sentence in words, the number
of words with several subwords, of spellings, of gold rows. All batches are planned before training,
so the largest size that will occur is known for each class of batches: those with the same number of
sentences and nearly the same length. Every batch of a class is padded to these sizes.
"""

from __future__ import annotations

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
    classes: dict[tuple[int, int], list[int]] = {}  # the batches of each
    for number, batch in enumerate(batches):
        classes.setdefault((len(batch), pad_length(int(costs[batch].max(initial=1)))), []).append(number)
    largest = sorted(classes.values(), key=len, reverse=True)[:MAX_CLASSES]
    batch_table = table.of_batches(batches)
    columns = {**batch_table.sums, **batch_table.maxima}
    sizes: list[dict[str, int] | None] = [None] * len(batches)
    for numbers in largest:
        regular = [n for n in numbers if batch_table.is_regular is None or batch_table.is_regular[n]]
        if len(numbers) >= MIN_BATCHES and regular:
            common = {name: pad_length(int(column[regular].max())) for name, column in columns.items()}
            for number in regular:
                sizes[number] = common
    return sizes
