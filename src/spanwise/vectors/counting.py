"""How often words stand near each other (GloVe, Pennington et al. 2014, section 3), counted in bounded memory.

Words that stand d apart count 1/d, in both directions. Windows end with the sentence: corpora often list their sentences in no
order, so that the words beyond say nothing about those within. Words too rare to be learned keep their places.

Pairs are collected in a buffer as single integers (both words, then the distance), sorted, and summed into a run. Runs that
outgrow memory go to disk, and are merged in the end, one range of pairs at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spanwise.core.errors import SpanwiseError
from spanwise.vectors.compiled import compiled
from spanwise.vectors.numbering import END, Ints, NumberedText

Counts = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Memory:
    """How many pairs may be held: as they are collected, and in all. Beyond that they lie on disk."""

    buffer: int = 1 << 23
    held: int = 1 << 24


MEMORY = Memory()


class Pairs(NamedTuple):
    """Unordered pairs, each once: ``keys`` are ``first * size + second`` of words ``first <= second``, ascending."""

    keys: Ints
    counts: Counts


def count_pairs(
    text: NumberedText,
    window: int,
    folder: Path,
    memory: Memory = MEMORY,
    progress: Callable[[int], None] = lambda done: None,
) -> Pairs:
    """The pairs of a text. They lie in ``folder`` when they are many. ``progress`` hears how much of the stream is done."""
    size, bits = len(text.words), window.bit_length()
    if size.bit_length() * 2 + bits > 63:
        raise SpanwiseError(f"{size:,} words with a window of {window} are too many to count; raise min_count")
    packed = np.empty(max(memory.buffer, window), np.int64)
    runs = _Runs(folder, memory.held)
    at = 0
    while at < len(text.stream):
        at, filled = _near(text.stream, text.ranks, at, size, window, bits, packed)
        packed[:filled].sort()
        runs.add(_summed(packed[:filled], bits))
        progress(at)
    return runs.merged()


@compiled
def _near(stream: Any, ranks: Any, at: int, size: int, window: int, bits: int, packed: Any) -> tuple[int, int]:
    """Fill ``packed`` with the pairs from place ``at`` on; where it ended, and how many there are."""
    filled = 0
    while at < len(stream) and filled + window <= len(packed):
        here = ranks[stream[at]]
        if here >= 0:
            for distance in range(1, min(window, len(stream) - 1 - at) + 1):
                there = ranks[stream[at + distance]]
                if there == END:
                    break
                if there >= 0:
                    key = np.int64(min(here, there)) * size + max(here, there)
                    packed[filled] = (key << bits) | distance
                    filled += 1
        at += 1
    return at, filled


def _summed(packed: Ints, bits: int) -> Pairs:
    keys, counts = np.empty(len(packed), np.int64), np.empty(len(packed))
    found = _sum_distances(packed, bits, keys, counts)
    return Pairs(keys[:found].copy(), counts[:found].copy())


@compiled
def _sum_distances(packed: Any, bits: int, keys: Any, counts: Any) -> int:
    found, last = 0, -1
    mask = (1 << bits) - 1
    for pair in packed:
        key = pair >> bits
        if key != last:
            keys[found], counts[found] = key, 0.0
            found += 1
            last = key
        counts[found - 1] += 1.0 / (pair & mask)
    return found


@compiled
def _sum_equal(keys: Any, counts: Any) -> int:
    """Add up the counts of equal keys, which stand side by side; both arrays are overwritten from the beginning."""
    found = 0
    for n in range(len(keys)):
        if found and keys[n] == keys[found - 1]:
            counts[found - 1] += counts[n]
        else:
            keys[found], counts[found] = keys[n], counts[n]
            found += 1
    return found


class _Runs:
    """Sorted runs of pairs, at most ``held`` of them in memory."""

    def __init__(self, folder: Path, held: int) -> None:
        self.folder, self.held = folder, held
        self.inner: list[Pairs] = []
        self.outer: list[Pairs] = []

    def add(self, run: Pairs) -> None:
        self.inner.append(run)
        if sum(len(run.keys) for run in self.inner) <= self.held:
            return
        together = _merge(self.inner)
        if len(together.keys) <= self.held // 2:  # the runs had much in common, and there is room again
            self.inner = [together]
            return
        self.inner = []
        number = len(self.outer)
        keys, counts = (
            self._on_disk(f"keys-{number}.npy", together.keys),
            self._on_disk(f"counts-{number}.npy", together.counts),
        )
        self.outer.append(Pairs(keys, counts))

    def _on_disk(self, name: str, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        path = self.folder / name
        np.save(path, array)
        return np.asarray(np.load(path, mmap_mode="r"))

    def merged(self) -> Pairs:
        runs = [*self.outer, *self.inner]
        total = sum(len(run.keys) for run in runs)
        if not total:
            raise SpanwiseError("no two words of the text stand near each other: nothing to learn from")
        if not self.outer:
            return _merge(runs)
        keys = room(self.folder / "keys", total, np.int64, self.held)
        counts = room(self.folder / "counts", total, np.float64, self.held)
        found = 0
        for lower, upper in _ranges(runs, self.held, total):
            part = _merge([_between(run, lower, upper) for run in runs])
            end = found + len(part.keys)
            keys[found:end], counts[found:end] = part
            found = end
        return Pairs(keys[:found], counts[:found])


def room(path: Path, size: int, type: Any, held: int) -> npt.NDArray[Any]:
    """An array to fill, in memory or, where it has more than ``held`` items, in a file."""
    return np.empty(size, type) if size <= held else np.asarray(np.memmap(path, type, "w+", shape=(size,)))


def _merge(runs: Sequence[Pairs]) -> Pairs:
    if len(runs) == 1:
        return runs[0]
    keys, counts = (np.concatenate(arrays) for arrays in zip(*runs, strict=True))
    order = np.argsort(keys, kind="stable")  # merges what is sorted already
    keys, counts = keys[order], counts[order]
    found = _sum_equal(keys, counts)
    return Pairs(keys[:found].copy(), counts[:found].copy())


def _ranges(runs: Sequence[Pairs], held: int, total: int) -> list[tuple[int, int]]:
    """Ranges of keys that cover all, with about ``held`` pairs of the runs in each, as samples of each run tell."""
    step = max(1, held // (8 * len(runs)))
    samples = np.sort(np.concatenate([run.keys[::step] for run in runs]))
    cuts = samples[:: max(1, -(-len(samples) * held // total))][1:].tolist()
    edges = [0, *dict.fromkeys(cuts), np.iinfo(np.int64).max]
    return list(pairwise(edges))


def _between(run: Pairs, lower: int, upper: int) -> Pairs:
    first, last = np.searchsorted(run.keys, (lower, upper))
    return Pairs(run.keys[first:last], run.counts[first:last])
