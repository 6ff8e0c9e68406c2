"""Common sizes of batches, compared with a slow reference."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from spanwise.batching.shape_classes import MAX_CLASSES, MIN_BATCHES, common_sizes
from spanwise.encoders.fixed_shapes import SizeTable
from spanwise.runtime.cuda_graphs import pad_length


def reference(batches: list[np.ndarray], costs: np.ndarray, table: SizeTable) -> list[dict[str, int] | None]:
    keys = [(len(batch), pad_length(int(costs[batch].max()))) for batch in batches]
    recorded = {key for key, count in Counter(keys).most_common(MAX_CLASSES) if count >= MIN_BATCHES}
    sizes: list[dict[str, int] | None] = []
    for batch, key in zip(batches, keys, strict=True):
        if key not in recorded or (table.is_regular is not None and not table.is_regular[batch].all()):
            sizes.append(None)
            continue
        same = [other for other, other_key in zip(batches, keys, strict=True) if other_key == key]
        same = [other for other in same if table.is_regular is None or table.is_regular[other].all()]
        sums = {name: max(int(column[other].sum()) for other in same) for name, column in table.sums.items()}
        maxima = {name: max(int(column[other].max()) for other in same) for name, column in table.maxima.items()}
        sizes.append({name: pad_length(size) for name, size in (sums | maxima).items()})
    return sizes


@pytest.mark.parametrize("seed", range(20))
def test_common_sizes_equal_the_reference(seed: int) -> None:
    generator = np.random.default_rng(seed)
    count = int(generator.integers(1, 60))
    batches = [generator.integers(0, count, size) for size in generator.integers(1, 5, 120)]
    costs = generator.integers(0, 40 * (seed + 1), count)
    is_regular = None if seed % 3 == 0 else generator.random(count) < 0.9
    table = SizeTable({"rows": generator.integers(0, 9, count)}, {"words": generator.integers(0, 99, count)}, is_regular)
    assert common_sizes(batches, costs, table) == reference(batches, costs, table)


def test_no_batches() -> None:
    assert common_sizes([], np.array([], np.int64), SizeTable({}, {})) == []
