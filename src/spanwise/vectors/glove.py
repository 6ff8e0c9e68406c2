"""GloVe: word vectors whose products approximate log co-occurrence counts (Pennington et al. 2014, equation 8).

Weighted least squares, minimised one pair at a time by the steps of the authors' program. They differ
from AdaGrad (``optimizer: adagrad``): the program accumulates (rate * gradient)^2 for vectors, so that
their steps shrink later, and steps biases at a rate of 1. One row of a table holds a word's
vector, its bias and the AdaGrad state of both, padded to whole cache lines. Each row has a constant 1
where the other table has its bias, so the product of two rows is the whole model.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from spanwise.core.counting import counted
from spanwise.core.errors import SpanwiseError, unknown_name
from spanwise.files.disk import temporary_folder
from spanwise.runtime.progress import ProgressBar
from spanwise.vectors.compiled import compiled
from spanwise.vectors.cooccurrence import MEMORY, Memory, count_pairs
from spanwise.vectors.indexing import Ints, index_text
from spanwise.vectors.store import Vectors
from spanwise.vectors.tiles import Floats, Tiles, make_tiles

_LEARNING_RATE = 0.05  # of AdaGrad, as published (section 4.2)
BYTES_PER_VALUE = 4
_LINE = 16  # values in a cache line

Optimizer = Literal["adagrad", "published"]


@dataclass(frozen=True)
class GloveSettings:
    """Settings of a GloVe training."""

    dim: int = field(default=300, metadata={"description": "size of the vectors"})
    window: int = field(default=15, metadata={"description": "words on each side that count as context"})
    x_max: float = field(default=10, metadata={"description": "pairs with this count or more have the full weight"})
    min_count: int = field(default=1, metadata={"description": "rarer words get no vector"})
    iterations: int = field(default=50, metadata={"description": "passes over all pairs"})
    optimizer: Optimizer = field(
        default="published", metadata={"description": "published: the steps of the authors' program; or adagrad"}
    )
    seed: int | None = field(default=None, metadata={"description": "random seed; default: the seed of the training, or 1"})

    def __post_init__(self) -> None:
        if self.optimizer not in get_args(Optimizer):
            raise unknown_name("optimizer", self.optimizer, get_args(Optimizer))
        for name, value in asdict(self).items():
            if name != "optimizer" and value is not None and not value > 0 and not (name == "seed" and value == 0):
                raise SpanwiseError(f"{name}: expected more than 0, found {value}")


DEFAULTS = GloveSettings()


@dataclass(frozen=True)
class GloveResult:
    """Trained vectors and statistics. ``losses`` is the objective per pair, one value per iteration."""

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
) -> GloveResult:
    """Train vectors for the words of some sentences, the most frequent word first.

    The same text, settings and seed give the same vectors with any number of threads.

    >>> text = ["the gene is expressed".split(), "the protein is expressed".split()] * 3
    >>> learned = learn_vectors(text, GloveSettings(dim=4, iterations=3))
    >>> learned.vectors.words, learned.vectors.table.shape, learned.words
    (('the', 'is', 'expressed', 'gene', 'protein'), (5, 4), 24)
    """
    random = np.random.default_rng(1 if settings.seed is None else settings.seed)
    with temporary_folder() as folder:
        start = time.perf_counter()
        text = index_text(sentences, settings.min_count, folder)
        log(f"{counted(text.length, 'word')}, {len(text.words):,} different")
        with ProgressBar(len(text.stream)) as bar:
            pairs = count_pairs(text, settings.window, folder, memory, lambda done: bar.show(done, lambda: "words counted"))
        row_bytes = row_length(settings.dim) * BYTES_PER_VALUE
        tiles = make_tiles(pairs, len(text.words), settings.x_max, row_bytes, random, folder, memory)
        log(f"{counted(len(tiles), 'pair')} counted in {time.perf_counter() - start:.1f} s")
        start = time.perf_counter()
        model = Glove(len(text.words), settings.dim, tiles, random, settings.optimizer)
        losses = tuple(_learn(model, settings.iterations, threads, log))
        vectors = Vectors(text.words, model.vectors())
        return GloveResult(vectors, losses, text.length, len(tiles), time.perf_counter() - start)


def _learn(model: Glove, iterations: int, threads: int, log: Callable[[str], None]) -> Iterator[float]:
    blocks, loss = model.tiles.blocks, math.nan
    with ThreadPoolExecutor(threads) as pool, ProgressBar(iterations * blocks) as bar:
        for iteration in range(iterations):
            start = time.perf_counter()
            for done, _ in enumerate(model.iteration(pool, threads), iteration * blocks + 1):
                bar.show(done, lambda: f"iteration {iteration + 1}, loss so far {loss:.5f}")  # noqa: B023
            loss, seconds = model.loss, time.perf_counter() - start
            bar.print_line(f"iteration {iteration + 1}: loss {loss:.5f}, {len(model.tiles) / seconds / 1e6:.2f} M pairs/s", log)
            yield loss


class Glove:
    """The model: a table of word vectors and a table of context vectors."""

    def __init__(
        self, size: int, dim: int, tiles: Tiles, random: np.random.Generator, optimizer: Optimizer = "published"
    ) -> None:
        self.tiles, self.dim, self.random = tiles, dim, random
        self.is_published = optimizer == "published"
        self.words, self.contexts = _init_table(size, dim, random), _init_table(size, dim, random)
        # The bias of one table is multiplied by the 1 of the other.
        self.words[:, dim + 1] = self.contexts[:, dim] = 1
        self.losses = np.zeros(tiles.blocks**2)
        self._visit(np.zeros(0, np.int64))  # compile before there are threads

    def iteration(self, pool: ThreadPoolExecutor, threads: int) -> Iterator[int]:
        """Visit all pairs once, with the rounds in random order; yield after each round."""
        for number in self.random.permutation(self.tiles.blocks).tolist():
            per_thread = _assign_tiles(self.tiles.round(number), self.tiles.sizes, threads)
            for _ in pool.map(self._visit, per_thread):
                pass
            yield number

    @property
    def loss(self) -> float:
        """The objective per pair of the last iteration, measured when each pair was visited."""
        return float(self.losses.sum()) / len(self.tiles)

    def vectors(self) -> Floats:
        """Return the sum of the word and context vectors of each word (section 4.2)."""
        dim, positions = self.dim, self.tiles.positions
        return np.ascontiguousarray((self.words[:, :dim] + self.contexts[:, :dim])[positions])

    def _visit(self, tiles: Ints, rate: float = _LEARNING_RATE) -> None:
        t = self.tiles
        _adagrad_steps(
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
            np.float32(rate if self.is_published else 1),
            self.is_published,
            self.losses,
        )


@compiled
def _adagrad_steps(
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
    scale: Any,
    has_unit_bias_rate: bool,
    losses: Any,
) -> None:
    """Take one AdaGrad step per pair of the tiles, on half the objective: the factor 2 is part of the rate.

    The states are sums of (``scale`` * gradient)^2. ``has_unit_bias_rate`` steps biases at a rate and
    scale of 1.
    """
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
            word_bias, word_bias_state = word[dim], word[half + dim]
            context_bias, context_bias_state = context[dim + 1], context[half + dim + 1]
            for d in range(half):
                word_gradient, context_gradient = slope * context[d], slope * word[d]
                word_state, context_state = word[half + d], context[half + d]
                word[d] -= rate * word_gradient / math.sqrt(word_state)
                context[d] -= rate * context_gradient / math.sqrt(context_state)
                word[half + d] = word_state + scale * scale * word_gradient * word_gradient
                context[half + d] = context_state + scale * scale * context_gradient * context_gradient
            if has_unit_bias_rate:
                word[dim] = word_bias - slope / math.sqrt(word_bias_state)
                context[dim + 1] = context_bias - slope / math.sqrt(context_bias_state)
                word[half + dim] = word_bias_state + slope * slope
                context[half + dim + 1] = context_bias_state + slope * slope
            word[dim + 1] = 1
            context[dim] = 1
        losses[tile] = loss


def row_length(dim: int) -> int:
    """Return the length of a table row: vector, bias and constant in whole cache lines, twice for AdaGrad."""
    return 2 * _LINE * -(-(dim + 2) // _LINE)


def _init_table(size: int, dim: int, random: np.random.Generator) -> Floats:
    """Create small random vectors, biases of 0 and AdaGrad states of 1, with rows aligned to cache lines."""
    length = row_length(dim)
    memory = np.zeros(size * length + _LINE, np.float32)
    first = -memory.ctypes.data // BYTES_PER_VALUE % _LINE
    table = memory[first : first + size * length].reshape(size, length)
    table[:, :dim] = (random.random((size, dim), np.float32) - np.float32(0.5)) / np.float32(dim)
    table[:, length // 2 :] = 1
    return table


def _assign_tiles(tiles: Ints, sizes: Ints, threads: int) -> list[Ints]:
    """Assign each tile to the thread with the fewest pairs so far."""
    assigned: list[list[int]] = [[] for _ in range(threads)]
    loads = [(0, thread) for thread in range(threads)]
    for tile in tiles.tolist():
        load, thread = loads[0]
        assigned[thread].append(tile)
        heapq.heapreplace(loads, (load + int(sizes[tile]), thread))
    return [np.array(part, np.int64) for part in assigned if part]
