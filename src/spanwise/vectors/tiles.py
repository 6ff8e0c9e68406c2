"""Order of training pairs: cache-friendly, without conflicts between threads, and sufficiently random.

For each pair, two vectors and their AdaGrad states are loaded and stored. In random order, memory access
takes all the time. Words are therefore assigned at random to blocks, and pairs to tiles, one for each
block of words and block of contexts. The vectors of two blocks stay in the cache while a tile is
visited. Within a tile, pairs are sorted by word, so one vector is reused, and are in random order for
each word.

Tiles that share no block can be visited in parallel (Gemulla et al. 2011, "Large-scale matrix
factorization with distributed stochastic gradient descent"). A *round* is a set of such tiles that
covers all blocks. There are as many rounds as blocks, and together they cover all pairs. No two
threads access the same values, so the result does not depend on the number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from spanwise.vectors.compiled import compiled
from spanwise.vectors.cooccurrence import MEMORY, Memory, Pairs, allocate
from spanwise.vectors.indexing import Ints, Numbers

Floats = npt.NDArray[np.float32]

_MIN_BLOCKS = 16
_REUSE = 8  # minimum pairs per word of a tile's blocks, which make loading the blocks worthwhile
_BLOCK_BYTES = 1 << 20
_CHUNK = 1 << 22


@dataclass(frozen=True)
class Tiles:
    """Ordered pairs by tile: those of tile ``t = row block * blocks + column block`` start at ``starts[t]``.

    ``rows`` and ``columns`` are rows of the word and context tables; ``positions`` maps a word to its
    row. ``targets`` are the logarithms of counts, ``weights`` the weights of errors.
    """

    blocks: int
    positions: Ints
    starts: Ints
    rows: Numbers
    columns: Numbers
    targets: Floats
    weights: Floats

    def __len__(self) -> int:
        return len(self.rows)

    def round(self, number: int) -> Ints:
        """Return the tiles of a round, which share no block, largest first."""
        first = np.arange(self.blocks)
        tiles = first * self.blocks + (first + number) % self.blocks
        return tiles[np.argsort(-self.sizes[tiles], kind="stable")]

    @property
    def sizes(self) -> Ints:
        return np.diff(self.starts)


def make_tiles(
    pairs: Pairs,
    size: int,
    x_max: float,
    row_bytes: int,
    random: np.random.Generator,
    folder: Path,
    memory: Memory = MEMORY,
) -> Tiles:
    """Arrange the pairs of ``size`` words, each in both directions; a word with itself once, with both counts."""
    ordered = 2 * len(pairs.keys)
    blocks = min(size, max(_MIN_BLOCKS, min(ordered // (_REUSE * size), size * row_bytes // _BLOCK_BYTES)))
    positions, width = random.permutation(size), -(-size // blocks)
    sizes = np.zeros(blocks * blocks, np.int64)
    chunks = [slice(start, start + _CHUNK) for start in range(0, len(pairs.keys), _CHUNK)]
    for chunk in chunks:
        _count(pairs.keys[chunk], size, positions, width, blocks, sizes)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    rows, columns, targets, weights = (
        allocate(folder / f"pairs-{name}", int(starts[-1]), type, memory.max_pairs)
        for name, type in (("rows", np.int32), ("columns", np.int32), ("targets", np.float32), ("weights", np.float32))
    )
    filled = starts[:-1].copy()
    for chunk in chunks:
        _fill(pairs.keys[chunk], pairs.counts[chunk], size, positions, width, blocks, filled, rows, columns, targets)
    for tile in range(blocks * blocks):
        part = slice(starts[tile], starts[tile + 1])
        order = random.permutation(sizes[tile])
        order = order[np.argsort(rows[part][order], kind="stable")]
        rows[part], columns[part], counts = rows[part][order], columns[part][order], targets[part][order]
        targets[part], weights[part] = np.log(counts), weight(counts, x_max)
    return Tiles(blocks, positions, starts, rows, columns, targets, weights)


def weight(counts: Floats, x_max: float) -> Floats:
    """Return the weights f(X) of errors (equation 9): small for rare pairs, constant from ``x_max`` on."""
    weights: Floats = np.minimum(counts / np.float32(x_max), 1) ** np.float32(0.75)
    return weights


@compiled
def _count(keys: Any, size: int, positions: Any, width: int, blocks: int, sizes: Any) -> None:
    for key in keys:
        first, second = positions[key // size], positions[key % size]
        sizes[first // width * blocks + second // width] += 1
        if first != second:
            sizes[second // width * blocks + first // width] += 1


@compiled
def _fill(
    keys: Any,
    counts: Any,
    size: int,
    positions: Any,
    width: int,
    blocks: int,
    filled: Any,
    rows: Any,
    columns: Any,
    values: Any,
) -> None:
    """Append each pair to its tile."""
    for n in range(len(keys)):
        first, second = positions[keys[n] // size], positions[keys[n] % size]
        count = counts[n] if first != second else 2 * counts[n]
        for _ in range(2 if first != second else 1):
            tile = first // width * blocks + second // width
            index = filled[tile]
            rows[index], columns[index], values[index] = first, second, count
            filled[tile] = index + 1
            first, second = second, first
