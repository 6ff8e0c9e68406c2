"""Co-occurrence counts of words (GloVe, Pennington et al. 2014, section 3), in bounded memory.

A pair of words at distance d counts 1/d, in both directions. Windows end at the end of a sentence,
because sentences of many corpora are in random order. Words too rare to get a vector still count for
the distance.

Pairs are collected in a buffer as single integers (both words, then the distance), sorted, and summed
into a run. Runs that exceed the memory limit go to disk and are merged at the end, one range of pairs
at a time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spanwise.core.errors import SpanwiseError
from spanwise.vectors.compiled import compiled
from spanwise.vectors.indexing import END, IndexedText, Ints

Counts = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Memory:
    """The number of pairs in the buffer, and in memory in total; additional pairs go to disk."""

    buffer: int = 1 << 23
    max_pairs: int = 1 << 24


MEMORY = Memory()


class Pairs(NamedTuple):
    """Unordered pairs, each once. ``keys`` are ``first * size + second`` with ``first <= second``, ascending."""

    keys: Ints
    counts: Counts


def count_pairs(
    text: IndexedText,
    window: int,
    folder: Path,
    memory: Memory = MEMORY,
    progress: Callable[[int], None] = lambda done: None,
) -> Pairs:
    """Count the pairs of a text, with temporary files in ``folder``.

    ``progress`` is called with the number of words done.
    """
    size, bits = len(text.words), window.bit_length()
    if size.bit_length() * 2 + bits > 63:
        raise SpanwiseError(f"{size:,} words with a window of {window} are too many to count; raise min_count")
    packed = np.empty(max(memory.buffer, window), np.int64)
    runs = _Runs(folder, memory.max_pairs)
    position = 0
    while position < len(text.stream):
        position, filled = _collect_pairs(text.stream, text.ranks, position, size, window, bits, packed)
        packed[:filled].sort()
        runs.add(_sum_packed(packed[:filled], bits))
        progress(position)
    return runs.merged()


@compiled
def _collect_pairs(stream: Any, ranks: Any, position: int, size: int, window: int, bits: int, packed: Any) -> tuple[int, int]:
    """Fill ``packed`` with the pairs from ``position`` on; return the next position and the number of pairs."""
    filled = 0
    while position < len(stream) and filled + window <= len(packed):
        word = ranks[stream[position]]
        if word >= 0:
            for distance in range(1, min(window, len(stream) - 1 - position) + 1):
                context = ranks[stream[position + distance]]
                if context == END:
                    break
                if context >= 0:
                    key = np.int64(min(word, context)) * size + max(word, context)
                    packed[filled] = (key << bits) | distance
                    filled += 1
        position += 1
    return position, filled


def _sum_packed(packed: Ints, bits: int) -> Pairs:
    keys, counts = np.empty(len(packed), np.int64), np.empty(len(packed))
    size = _sum_distances(packed, bits, keys, counts)
    return Pairs(keys[:size].copy(), counts[:size].copy())


@compiled
def _sum_distances(packed: Any, bits: int, keys: Any, counts: Any) -> int:
    """Write each key and its count to the arrays; return the number of keys."""
    size, last = 0, -1
    mask = (1 << bits) - 1
    for pair in packed:
        key = pair >> bits
        if key != last:
            keys[size], counts[size] = key, 0.0
            size += 1
            last = key
        counts[size - 1] += 1.0 / (pair & mask)
    return size


@compiled
def _sum_equal(keys: Any, counts: Any) -> int:
    """Add up the counts of equal, adjacent keys in place; return the number of different keys."""
    size = 0
    for n in range(len(keys)):
        if size and keys[n] == keys[size - 1]:
            counts[size - 1] += counts[n]
        else:
            keys[size], counts[size] = keys[n], counts[n]
            size += 1
    return size


class _Runs:
    """Sorted runs of pairs, with at most ``max_pairs`` pairs in memory."""

    def __init__(self, folder: Path, max_pairs: int) -> None:
        self.folder, self.max_pairs = folder, max_pairs
        self.in_memory: list[Pairs] = []
        self.on_disk: list[Pairs] = []

    def add(self, run: Pairs) -> None:
        self.in_memory.append(run)
        if sum(len(run.keys) for run in self.in_memory) <= self.max_pairs:
            return
        merged = _merge(self.in_memory)
        if len(merged.keys) <= self.max_pairs // 2:  # many pairs were equal, so there is enough memory again
            self.in_memory = [merged]
            return
        self.in_memory = []
        number = len(self.on_disk)
        keys, counts = (
            self._save(f"keys-{number}.npy", merged.keys),
            self._save(f"counts-{number}.npy", merged.counts),
        )
        self.on_disk.append(Pairs(keys, counts))

    def _save(self, name: str, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        path = self.folder / name
        np.save(path, array)
        return np.asarray(np.load(path, mmap_mode="r"))

    def merged(self) -> Pairs:
        runs = [*self.on_disk, *self.in_memory]
        total = sum(len(run.keys) for run in runs)
        if not total:
            raise SpanwiseError("no two words of the text occur in the same window; vectors need sentences of several words")
        if not self.on_disk:
            return _merge(runs)
        keys = allocate(self.folder / "keys", total, np.int64, self.max_pairs)
        counts = allocate(self.folder / "counts", total, np.float64, self.max_pairs)
        size = 0
        for lower, upper in _ranges(runs, self.max_pairs, total):
            part = _merge([_between(run, lower, upper) for run in runs])
            end = size + len(part.keys)
            keys[size:end], counts[size:end] = part
            size = end
        return Pairs(keys[:size], counts[:size])


def allocate(path: Path, size: int, type: Any, max_pairs: int) -> npt.NDArray[Any]:
    """Allocate an array in memory, or in a file if it has more than ``max_pairs`` items."""
    if size <= max_pairs:
        return np.empty(size, type)
    with path.open("wb") as file:
        if hasattr(os, "posix_fallocate"):  # otherwise a full disk would stop the process when the array is filled
            os.posix_fallocate(file.fileno(), 0, size * np.dtype(type).itemsize)
        else:
            file.truncate(size * np.dtype(type).itemsize)
    return np.asarray(np.memmap(path, type, "r+", shape=(size,)))


def _merge(runs: Sequence[Pairs]) -> Pairs:
    if len(runs) == 1:
        return runs[0]
    keys, counts = (np.concatenate(arrays) for arrays in zip(*runs, strict=True))
    order = np.argsort(keys, kind="stable")  # merges the sorted runs
    keys, counts = keys[order], counts[order]
    size = _sum_equal(keys, counts)
    return Pairs(keys[:size].copy(), counts[:size].copy())


def _ranges(runs: Sequence[Pairs], max_pairs: int, total: int) -> list[tuple[int, int]]:
    """Return ranges that cover all keys, each with about ``max_pairs`` pairs, estimated from samples of each run."""
    step = max(1, max_pairs // (8 * len(runs)))
    samples = np.sort(np.concatenate([run.keys[::step] for run in runs]))
    cuts = samples[:: max(1, -(-len(samples) * max_pairs // total))][1:].tolist()
    edges = [0, *dict.fromkeys(cuts), np.iinfo(np.int64).max]
    return list(pairwise(edges))


def _between(run: Pairs, lower: int, upper: int) -> Pairs:
    first, last = np.searchsorted(run.keys, (lower, upper))
    return Pairs(run.keys[first:last], run.counts[first:last])
