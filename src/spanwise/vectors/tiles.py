"""The pairs in the order in which they are learned: fast to visit, free of conflicts between threads, and random enough.

Both words of a pair have a vector and its AdaGrad state to load and to store; in random order, all the time goes to memory. So
words are dealt at random into blocks, and pairs into tiles, one for each block of words and block of contexts: the vectors of
two blocks stay in the cache while a tile is visited. Within a tile, pairs stand by word, so that one vector stays at hand, and
in random order for each word.

Tiles that share no block can be visited at the same time (Gemulla et al. 2011, "Large-scale matrix factorization with
distributed stochastic gradient descent"). A *round* is a set of such tiles that covers all blocks; as many rounds as there are
blocks cover all pairs. No two threads ever touch the same number, so the result does not depend on how many there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from spanwise.vectors.compiled import compiled
from spanwise.vectors.counting import MEMORY, Memory, Pairs, room
from spanwise.vectors.numbering import Ints, Numbers

Floats = npt.NDArray[np.float32]

_FEWEST_BLOCKS = 16
_REUSE = 8  # pairs of a tile per word of its blocks, or loading the blocks would not pay
_BLOCK_BYTES = 1 << 20
_CHUNK = 1 << 22


@dataclass(frozen=True)
class Tiles:
    """Ordered pairs by tile: those of tile ``t = row block * blocks + column block`` begin at ``starts[t]``.

    ``rows`` and ``columns`` are places in the tables that are learned; ``places`` says which place a word has. A pair's
    ``targets`` is the logarithm of its count, its ``weights`` what its error counts.
    """

    blocks: int
    places: Ints
    starts: Ints
    rows: Numbers
    columns: Numbers
    targets: Floats
    weights: Floats

    def __len__(self) -> int:
        return len(self.rows)

    def round(self, number: int) -> Ints:
        """The tiles of a round, which share no block, largest first."""
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
    """The pairs of ``size`` words, each in both directions; a word with itself once, with both counts."""
    ordered = 2 * len(pairs.keys)
    blocks = min(size, max(_FEWEST_BLOCKS, min(ordered // (_REUSE * size), size * row_bytes // _BLOCK_BYTES)))
    places, width = random.permutation(size), -(-size // blocks)
    sizes = np.zeros(blocks * blocks, np.int64)
    chunks = [slice(at, at + _CHUNK) for at in range(0, len(pairs.keys), _CHUNK)]
    for chunk in chunks:
        _count(pairs.keys[chunk], size, places, width, blocks, sizes)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    rows, columns, targets, weights = (
        room(folder / f"pairs-{name}", int(starts[-1]), type, memory.held)
        for name, type in (("rows", np.int32), ("columns", np.int32), ("targets", np.float32), ("weights", np.float32))
    )
    filled = starts[:-1].copy()
    for chunk in chunks:
        _fill(pairs.keys[chunk], pairs.counts[chunk], size, places, width, blocks, filled, rows, columns, targets)
    for tile in range(blocks * blocks):
        part = slice(starts[tile], starts[tile + 1])
        order = random.permutation(sizes[tile])
        order = order[np.argsort(rows[part][order], kind="stable")]
        rows[part], columns[part], counts = rows[part][order], columns[part][order], targets[part][order]
        targets[part], weights[part] = np.log(counts), weight(counts, x_max)
    return Tiles(blocks, places, starts, rows, columns, targets, weights)


def weight(counts: Floats, x_max: float) -> Floats:
    """What the error of a pair counts, f(X) of equation 9: rare pairs little, and none more than those of ``x_max``."""
    weights: Floats = np.minimum(counts / np.float32(x_max), 1) ** np.float32(0.75)
    return weights


@compiled
def _count(keys: Any, size: int, places: Any, width: int, blocks: int, sizes: Any) -> None:
    for key in keys:
        first, second = places[key // size], places[key % size]
        sizes[first // width * blocks + second // width] += 1
        if first != second:
            sizes[second // width * blocks + first // width] += 1


@compiled
def _fill(
    keys: Any, counts: Any, size: int, places: Any, width: int, blocks: int, filled: Any, rows: Any, columns: Any, values: Any
) -> None:
    """Put each pair behind the last one of its tile."""
    for n in range(len(keys)):
        first, second = places[keys[n] // size], places[keys[n] % size]
        count = counts[n] if first != second else 2 * counts[n]
        for _ in range(2 if first != second else 1):
            tile = first // width * blocks + second // width
            at = filled[tile]
            rows[at], columns[at], values[at] = first, second, count
            filled[tile] = at + 1
            first, second = second, first
