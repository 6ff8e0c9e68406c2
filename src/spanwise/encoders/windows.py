"""Overlapping windows over sequences that are longer than an encoder's window."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


def windows(length: int, size: int, overlap: int) -> tuple[Ints, Ints, Ints]:
    """The starts of windows that cover ``length`` items, and the window of each item with its position there.

    Adjacent windows share ``overlap`` items. An item belongs to the window in which it is farther
    from the edge, so it has at least half the overlap as context on either side. A sequence that
    fits one window gets one window.

    >>> starts, window, position = windows(10, 6, 2)
    >>> starts.tolist(), window.tolist(), position.tolist()
    ([0, 4], [0, 0, 0, 0, 0, 1, 1, 1, 1, 1], [0, 1, 2, 3, 4, 1, 2, 3, 4, 5])
    """
    if length <= size:
        return np.zeros(1, np.int64), np.zeros(length, np.int64), np.arange(length, dtype=np.int64)
    stride = size - overlap
    count = -(-(length - size) // stride) + 1
    starts = np.minimum(np.arange(count, dtype=np.int64) * stride, length - size)
    # Adjacent windows are split in the middle of their overlap.
    splits = (starts[1:] + starts[:-1] + size) // 2
    items = np.arange(length, dtype=np.int64)
    window = np.searchsorted(splits, items, side="right")
    return starts, window, items - starts[window]
