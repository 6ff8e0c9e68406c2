"""GloVe: word vectors whose products are the logarithms of co-occurrence counts (Pennington et al. 2014, equation 8).

Weighted least squares by AdaGrad, pair after pair. A word's vector, its bias and the AdaGrad state of both lie side by side in
one row of a table, padded to whole cache lines. Each row also has a constant 1 where the other table has its bias, so that the
product of two rows is the whole model.
"""

from __future__ import annotations

import heapq
import math
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spanwise.core.errors import SpanwiseError
from spanwise.runtime.terminal import Bar
from spanwise.vectors.compiled import compiled
from spanwise.vectors.counting import MEMORY, Memory, count_pairs
from spanwise.vectors.numbering import Ints, number_text
from spanwise.vectors.store import Vectors
from spanwise.vectors.tiles import Floats, Tiles, make_tiles

_RATE = 0.05  # of AdaGrad, as published (section 4.2)
BYTES_PER_VALUE = 4
_LINE = 16  # values in a cache line


@dataclass(frozen=True)
class GloveSettings:
    """What is counted, and how long it is learned."""

    dim: int = 300  # size of the vectors
    window: int = 15  # words to each side that count as near
    x_max: float = 10  # count from which on all pairs weigh the same
    min_count: int = 1  # rarer words get no vector
    iterations: int = 50  # times that each pair is visited
    seed: int = 1

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not value > 0 and not (name == "seed" and value == 0):
                raise SpanwiseError(f"{name} is {value}: expected more than 0")


DEFAULTS = GloveSettings()


@dataclass(frozen=True)
class Learned:
    """Vectors, and how they came about. ``losses`` is the objective per pair, one number an iteration."""

    vectors: Vectors
    losses: tuple[float, ...]
    words: int
    pairs: int
    seconds: float


def learn_vectors(
    sentences: Iterable[Sequence[str]],
    settings: GloveSettings = DEFAULTS,
    *,
    threads: int = 1,
    log: Callable[[str], None] = lambda line: None,
    memory: Memory = MEMORY,
) -> Learned:
    """Vectors of the words of some sentences, the most frequent word first.

    The same text, settings and seed give the same vectors, whatever the number of threads.

    >>> text = ["the gene is expressed".split(), "the protein is expressed".split()] * 3
    >>> learned = learn_vectors(text, GloveSettings(dim=4, iterations=3))
    >>> learned.vectors.words, learned.vectors.table.shape, learned.words
    (('the', 'is', 'expressed', 'gene', 'protein'), (5, 4), 24)
    """
    random = np.random.default_rng(settings.seed)
    with tempfile.TemporaryDirectory(prefix="spanwise-") as name:
        folder, start = Path(name), time.perf_counter()
        text = number_text(sentences, settings.min_count, folder)
        log(f"{text.length:,} words, {len(text.words):,} different ones to learn")
        with Bar(len(text.stream)) as bar:
            pairs = count_pairs(text, settings.window, folder, memory, lambda done: bar.show(done, lambda: "words counted"))
        row_bytes = row_length(settings.dim) * BYTES_PER_VALUE
        tiles = make_tiles(pairs, len(text.words), settings.x_max, row_bytes, random, folder, memory)
        log(f"{len(tiles):,} pairs counted in {time.perf_counter() - start:.1f} s")
        start = time.perf_counter()
        model = Glove(len(text.words), settings.dim, tiles, random)
        losses = tuple(_learn(model, settings.iterations, threads, log))
        vectors = Vectors(text.words, model.vectors())
        return Learned(vectors, losses, text.length, len(tiles), time.perf_counter() - start)


def _learn(model: Glove, iterations: int, threads: int, log: Callable[[str], None]) -> Iterator[float]:
    blocks, loss = model.tiles.blocks, math.nan
    with ThreadPoolExecutor(threads) as pool, Bar(iterations * blocks) as bar:
        for iteration in range(iterations):
            start = time.perf_counter()
            for done, _ in enumerate(model.iteration(pool, threads), iteration * blocks + 1):
                bar.show(done, lambda: f"iteration {iteration + 1}, loss so far {loss:.5f}")  # noqa: B023
            loss, seconds = model.loss, time.perf_counter() - start
            bar.line(f"iteration {iteration + 1}: loss {loss:.5f}, {len(model.tiles) / seconds / 1e6:.2f} M pairs/s", log)
            yield loss


class Glove:
    """Two tables, one of words and one of their contexts, that each iteration over the pairs brings nearer to the counts."""

    def __init__(self, size: int, dim: int, tiles: Tiles, random: np.random.Generator) -> None:
        self.tiles, self.dim, self.random = tiles, dim, random
        self.words, self.contexts = _table(size, dim, random), _table(size, dim, random)
        # The bias of the one is multiplied by the 1 of the other.
        self.words[:, dim + 1] = self.contexts[:, dim] = 1
        self.losses = np.zeros(tiles.blocks**2)
        self._visit(np.zeros(0, np.int64))  # compiled here, where there is one thread

    def iteration(self, pool: ThreadPoolExecutor, threads: int) -> Iterator[int]:
        """Visit all pairs once, the rounds in random order; yields after each round."""
        for number in self.random.permutation(self.tiles.blocks).tolist():
            shares = _shares(self.tiles.round(number), self.tiles.sizes, threads)
            for _ in pool.map(self._visit, shares):
                pass
            yield number

    @property
    def loss(self) -> float:
        """The objective of the last iteration, divided by the number of pairs, each as it was when it was visited."""
        return float(self.losses.sum()) / len(self.tiles)

    def vectors(self) -> Floats:
        """Of each word, the sum of what it is as a word and as a context (section 4.2)."""
        dim, places = self.dim, self.tiles.places
        return np.ascontiguousarray((self.words[:, :dim] + self.contexts[:, :dim])[places])

    def _visit(self, tiles: Ints, rate: float = _RATE) -> None:
        t = self.tiles
        _descend(
            tiles,
            t.starts,
            t.rows,
            t.columns,
            t.targets,
            t.weights,
            self.words,
            self.contexts,
            self.dim,
            np.float32(rate),
            self.losses,
        )


@compiled
def _descend(
    tiles: Any,
    starts: Any,
    rows: Any,
    columns: Any,
    targets: Any,
    weights: Any,
    words: Any,
    contexts: Any,
    dim: int,
    rate: Any,
    losses: Any,
) -> None:
    """One AdaGrad step for each pair of the tiles. The gradient is that of half the objective: the 2 is part of the rate."""
    half = words.shape[1] // 2
    for tile in tiles:
        loss = 0.0
        for n in range(starts[tile], starts[tile + 1]):
            word, context = words[rows[n]], contexts[columns[n]]
            error = -targets[n]
            for d in range(half):
                error += word[d] * context[d]
            slope = weights[n] * error
            loss += slope * error
            for d in range(half):
                for_word, for_context = slope * context[d], slope * word[d]
                word_state, context_state = word[half + d], context[half + d]
                word[d] -= rate * for_word / math.sqrt(word_state)
                context[d] -= rate * for_context / math.sqrt(context_state)
                word[half + d] = word_state + for_word * for_word
                context[half + d] = context_state + for_context * for_context
            word[dim + 1] = 1
            context[dim] = 1
        losses[tile] = loss


def row_length(dim: int) -> int:
    """The values in a row of a table: vector, bias and constant in whole cache lines, and as many for AdaGrad."""
    return 2 * _LINE * -(-(dim + 2) // _LINE)


def _table(size: int, dim: int, random: np.random.Generator) -> Floats:
    """Small random vectors, biases of 0, and the AdaGrad state of 1 behind them. Rows begin with a cache line."""
    length = row_length(dim)
    memory = np.zeros(size * length + _LINE, np.float32)
    first = -memory.ctypes.data // BYTES_PER_VALUE % _LINE
    table = memory[first : first + size * length].reshape(size, length)
    table[:, :dim] = (random.random((size, dim), np.float32) - np.float32(0.5)) / np.float32(dim)
    table[:, length // 2 :] = 1
    return table


def _shares(tiles: Ints, sizes: Ints, threads: int) -> list[Ints]:
    """The tiles dealt to threads: each goes to the one that has the least to do."""
    shares: list[list[int]] = [[] for _ in range(threads)]
    loads = [(0, thread) for thread in range(threads)]
    for tile in tiles.tolist():
        load, thread = loads[0]
        shares[thread].append(tile)
        heapq.heapreplace(loads, (load + int(sizes[tile]), thread))
    return [np.array(share, np.int64) for share in shares if share]
