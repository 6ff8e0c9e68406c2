"""Training speed of GloVe: pairs per second of Spanwise and of a reference loop, interleaved in one run.

    python bench/glove.py DATA [--corpora genia litbank ncbi_disease] [--dim 100] [--threads 2] [--rounds 7] [--json FILE]

The text is that of the train splits of the corpora, folders in DATA. The reference loop is the
straightforward implementation: one thread, plain tables, one pair after the other, compiled by numba
with the same options. It visits pairs in random order, as published, and sorted by word, which is less
random and halves the memory access. In each round every contender visits all pairs once, in random
order. A ratio is the median of the quotients over the rounds, with quartiles in brackets, so other load
on the machine affects all alike. Compilation is not counted. If fewer cores are busy than there are
threads, the machine was busy, and the last line is not meaningful.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from numba import njit

from spanwise.inputs.vector_text import corpus_text
from spanwise.vectors.cooccurrence import count_pairs
from spanwise.vectors.glove import BYTES_PER_VALUE, Glove, row_length
from spanwise.vectors.indexing import index_text
from spanwise.vectors.tiles import Tiles, make_tiles

REQUIRED_PER_THREAD, REQUIRED_SCALING = 1.0, 1.7


@njit(nogil=True, fastmath=True, error_model="numpy")
def reference(
    rows: Any, columns: Any, targets: Any, weights: Any, w: Any, c: Any, bw: Any, bc: Any, sw: Any, sc: Any, sbw: Any, sbc: Any
) -> float:
    """Visit all pairs once: equation 8, minimised by AdaGrad."""
    rate = np.float32(0.05)
    loss = 0.0
    for n in range(len(rows)):
        i, j = rows[n], columns[n]
        error = bw[i] + bc[j] - targets[n]
        for d in range(w.shape[1]):
            error += w[i, d] * c[j, d]
        slope = weights[n] * error
        loss += slope * error
        for d in range(w.shape[1]):
            w_gradient, c_gradient = slope * c[j, d], slope * w[i, d]
            w[i, d] -= rate * w_gradient / math.sqrt(sw[i, d])
            c[j, d] -= rate * c_gradient / math.sqrt(sc[j, d])
            sw[i, d] += w_gradient * w_gradient
            sc[j, d] += c_gradient * c_gradient
        bw[i] -= rate * slope / math.sqrt(sbw[i])
        bc[j] -= rate * slope / math.sqrt(sbc[j])
        sbw[i] += slope * slope
        sbc[j] += slope * slope
    return loss


class Reference:
    """The reference loop over pairs in the given order."""

    def __init__(self, size: int, dim: int, tiles: Tiles, order: Any) -> None:
        random = np.random.default_rng(1)
        self.pairs = [np.ascontiguousarray(a[order]) for a in (tiles.rows, tiles.columns, tiles.targets, tiles.weights)]
        vectors = [((random.random((size, dim)) - 0.5) / dim).astype(np.float32) for _ in range(2)]
        biases = [np.zeros(size, np.float32) for _ in range(2)]
        states = [np.ones_like(table) for table in (*vectors, *biases)]
        self.tables = [*vectors, *biases, *states]
        reference(*(a[:0] for a in self.pairs), *self.tables)

    def __call__(self) -> float:
        return float(reference(*self.pairs, *self.tables)) / len(self.pairs[0])


class Trainer:
    """The trainer of Spanwise with a number of threads."""

    def __init__(self, size: int, dim: int, tiles: Tiles, threads: int) -> None:
        self.model, self.threads = Glove(size, dim, tiles, np.random.default_rng(1), "adagrad"), threads
        self.pool = ThreadPoolExecutor(threads)

    def __call__(self) -> float:
        for _ in self.model.iteration(self.pool, self.threads):
            pass
        return self.model.loss


def quotients(times: Sequence[float], others: Sequence[float]) -> tuple[float, str]:
    """Return the median speed-up of the others, and its text with quartiles."""
    ratios = [a / b for a, b in zip(times, others, strict=True)]
    low, median, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return median, f"{median:.2f}x [{low:.2f}, {high:.2f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--corpora", nargs="+", default=["genia", "litbank", "ncbi_disease"])
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    dim, threads = arguments.dim, arguments.threads

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = index_text(chain.from_iterable(corpus_text(arguments.data / c) for c in arguments.corpora), 1, folder)
        size = len(text.words)
        start = time.perf_counter()
        pairs = count_pairs(text, 15, folder)
        random = np.random.default_rng(0)
        tiles = make_tiles(pairs, size, 10, row_length(dim) * BYTES_PER_VALUE, random, folder)
        seconds = time.perf_counter() - start
        print(f"{text.length:,} words, {size:,} different, {len(tiles):,} pairs in {seconds:.1f} s (with compilation)")

        spanwise_1, spanwise_n = "spanwise, 1 thread", f"spanwise, {threads} threads"
        shuffled, by_word = "reference loop", "reference loop, pairs by word"
        contenders: dict[str, Callable[[], float]] = {
            shuffled: Reference(size, dim, tiles, random.permutation(len(tiles))),
            by_word: Reference(size, dim, tiles, np.argsort(tiles.rows, kind="stable")),
            spanwise_1: Trainer(size, dim, tiles, 1),
            spanwise_n: Trainer(size, dim, tiles, threads),
        }
        walls: dict[str, list[float]] = {name: [] for name in contenders}
        losses: dict[str, list[float]] = {name: [] for name in contenders}
        busy: dict[str, list[float]] = {name: [] for name in contenders}
        for number in range(arguments.rounds):
            order = list(contenders)
            Random(number).shuffle(order)
            for name in order:
                wall, cpu = time.perf_counter(), time.process_time()
                losses[name].append(contenders[name]())
                walls[name].append(time.perf_counter() - wall)
                busy[name].append((time.process_time() - cpu) / walls[name][-1])

    rates = {name: len(tiles) / statistics.median(times) for name, times in walls.items()}
    for name, rate in rates.items():
        is_decreasing = all(b < a for a, b in zip(losses[name], losses[name][1:], strict=False))
        print(
            f"{name:28} {rate / 1e6:6.2f} M pairs/s   cores busy {statistics.median(busy[name]):.2f}   loss "
            f"{losses[name][0]:.4f} to {losses[name][-1]:.4f}{', decreasing' if is_decreasing else ', NOT decreasing'}"
        )
    shared = [seconds * threads for seconds in walls[spanwise_n]]
    per_thread, shown = quotients(walls[shuffled], shared)
    print(f"{threads} threads, per thread, to the reference loop:  {shown} (required {REQUIRED_PER_THREAD})")
    print(f"1 thread to the reference loop:              {quotients(walls[shuffled], walls[spanwise_1])[1]}")
    print(f"1 thread to the reference loop, pairs by word: {quotients(walls[by_word], walls[spanwise_1])[1]}")
    scaling, shown = quotients(walls[spanwise_1], walls[spanwise_n])
    print(f"{threads} threads to 1:                              {shown} (required {REQUIRED_SCALING})")
    if arguments.json:
        record = {"pairs_per_second": rates, "per_thread": per_thread, "scaling": scaling, "walls": walls, "losses": losses}
        arguments.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
