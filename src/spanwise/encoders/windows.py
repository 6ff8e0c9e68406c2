"""Windows over sequences that are longer than an encoder can read at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


def windows(length: int, size: int, overlap: int) -> tuple[Ints, Ints, Ints]:
    """Starts of the windows that cover ``length`` items, and for each item the window that reads it and its place there.

    Neighbouring windows share ``overlap`` items; each item is read where it stands farther from the window's rim, so that it
    sees at least half the overlap on either side. What fits one window gets one.

    >>> starts, owner, place = windows(10, 6, 2)
    >>> starts.tolist(), owner.tolist(), place.tolist()
    ([0, 4], [0, 0, 0, 0, 0, 1, 1, 1, 1, 1], [0, 1, 2, 3, 4, 1, 2, 3, 4, 5])
    """
    if length <= size:
        return np.zeros(1, np.int64), np.zeros(length, np.int64), np.arange(length, dtype=np.int64)
    stride = size - overlap
    count = -(-(length - size) // stride) + 1
    starts = np.minimum(np.arange(count, dtype=np.int64) * stride, length - size)
    # The cut between two neighbours lies in the middle of what they share.
    cuts = (starts[1:] + starts[:-1] + size) // 2
    items = np.arange(length, dtype=np.int64)
    owner = np.searchsorted(cuts, items, side="right")
    return starts, owner, items - starts[owner]
