"""How fast GloVe learns: pairs per second of Spanwise's trainer and of a literal loop, measured side by side in the same run.

    python bench/glove.py DATA [--corpora genia litbank ncbi_disease] [--dim 100] [--threads 2] [--rounds 7] [--json FILE]

The text is that of the corpora's train splits, folders in DATA. The literal loop is the one anybody would write: one thread,
plain tables, pair after pair, compiled by numba with the same options. It runs over pairs in random order, as GloVe is
published, and over the pairs by word, which leaves it less random and saves it half the trips to memory. Each round lets every
contender visit all pairs once, in changing order; a ratio is the median of the rounds' quotients, with the quartiles in
brackets, so that other load on the machine falls on all sides. Compiling is not counted. Where fewer cores are kept busy than
there are threads, the machine had other work, and the last line says nothing.
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
from spanwise.vectors.counting import count_pairs
from spanwise.vectors.glove import BYTES_PER_VALUE, Glove, row_length
from spanwise.vectors.numbering import number_text
from spanwise.vectors.tiles import Tiles, make_tiles

REQUIRED_PER_THREAD, REQUIRED_SCALING = 1.0, 1.7


@njit(nogil=True, fastmath=True, error_model="numpy")
def literal(
    rows: Any, columns: Any, targets: Any, weights: Any, w: Any, c: Any, bw: Any, bc: Any, sw: Any, sc: Any, sbw: Any, sbc: Any
) -> float:
    """Equation 8 and AdaGrad, as they stand."""
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
            for_w, for_c = slope * c[j, d], slope * w[i, d]
            w[i, d] -= rate * for_w / math.sqrt(sw[i, d])
            c[j, d] -= rate * for_c / math.sqrt(sc[j, d])
            sw[i, d] += for_w * for_w
            sc[j, d] += for_c * for_c
        bw[i] -= rate * slope / math.sqrt(sbw[i])
        bc[j] -= rate * slope / math.sqrt(sbc[j])
        sbw[i] += slope * slope
        sbc[j] += slope * slope
    return loss


class Literal:
    """The literal loop with its own tables, over the pairs in the given order."""

    def __init__(self, size: int, dim: int, tiles: Tiles, order: Any) -> None:
        random = np.random.default_rng(1)
        self.pairs = [np.ascontiguousarray(a[order]) for a in (tiles.rows, tiles.columns, tiles.targets, tiles.weights)]
        vectors = [((random.random((size, dim)) - 0.5) / dim).astype(np.float32) for _ in range(2)]
        biases = [np.zeros(size, np.float32) for _ in range(2)]
        states = [np.ones_like(table) for table in (*vectors, *biases)]
        self.tables = [*vectors, *biases, *states]
        literal(*(a[:0] for a in self.pairs), *self.tables)

    def __call__(self) -> float:
        return float(literal(*self.pairs, *self.tables)) / len(self.pairs[0])


class Trainer:
    """Spanwise's own, with as many threads."""

    def __init__(self, size: int, dim: int, tiles: Tiles, threads: int) -> None:
        self.model, self.threads = Glove(size, dim, tiles, np.random.default_rng(1)), threads
        self.pool = ThreadPoolExecutor(threads)

    def __call__(self) -> float:
        for _ in self.model.iteration(self.pool, self.threads):
            pass
        return self.model.loss


def quotients(times: Sequence[float], others: Sequence[float]) -> tuple[float, str]:
    """How much faster the others are: the median, and how it is shown."""
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
        text = number_text(chain.from_iterable(corpus_text(arguments.data / c) for c in arguments.corpora), 1, folder)
        size = len(text.words)
        start = time.perf_counter()
        pairs = count_pairs(text, 15, folder)
        random = np.random.default_rng(0)
        tiles = make_tiles(pairs, size, 10, row_length(dim) * BYTES_PER_VALUE, random, folder)
        seconds = time.perf_counter() - start
        print(f"{text.length:,} words, {size:,} different, {len(tiles):,} pairs in {seconds:.1f} s (with compiling)")

        ours_1, ours_n = "spanwise, 1 thread", f"spanwise, {threads} threads"
        shuffled, by_word = "literal loop", "literal loop, pairs by word"
        contenders: dict[str, Callable[[], float]] = {
            shuffled: Literal(size, dim, tiles, random.permutation(len(tiles))),
            by_word: Literal(size, dim, tiles, np.argsort(tiles.rows, kind="stable")),
            ours_1: Trainer(size, dim, tiles, 1),
            ours_n: Trainer(size, dim, tiles, threads),
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
        fell = all(b < a for a, b in zip(losses[name], losses[name][1:], strict=False))
        print(
            f"{name:28} {rate / 1e6:6.2f} M pairs/s   cores kept busy {statistics.median(busy[name]):.2f}   loss "
            f"{losses[name][0]:.4f} to {losses[name][-1]:.4f}{', falling each time' if fell else ', NOT falling each time'}"
        )
    shared = [seconds * threads for seconds in walls[ours_n]]
    per_thread, shown = quotients(walls[shuffled], shared)
    print(f"{threads} threads, per thread, to the literal loop:  {shown} (required {REQUIRED_PER_THREAD})")
    print(f"1 thread to the literal loop:                {quotients(walls[shuffled], walls[ours_1])[1]}")
    print(f"1 thread to the literal loop, pairs by word: {quotients(walls[by_word], walls[ours_1])[1]}")
    scaling, shown = quotients(walls[ours_1], walls[ours_n])
    print(f"{threads} threads to 1:                              {shown} (required {REQUIRED_SCALING})")
    if arguments.json:
        record = {"pairs_per_second": rates, "per_thread": per_thread, "scaling": scaling, "walls": walls, "losses": losses}
        arguments.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
