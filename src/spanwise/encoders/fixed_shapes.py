"""The sizes of batches and padding to given sizes, so that batches of similar length get the same shapes.

Arrays of one shape can share a recorded training step (``batching/shape_classes.py``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SizeTable:
    """Sizes by sentence or by batch; those of a batch are ``sums`` or ``maxima`` over its sentences.

    A sentence for which ``is_regular`` is False has no fixed shape, for example if it needs several rows.
    """

    sums: Mapping[str, Ints]
    maxima: Mapping[str, Ints]
    is_regular: npt.NDArray[np.bool_] | None = None

    def join(self, other: SizeTable) -> SizeTable:
        """Both tables together."""
        masks = [mask for mask in (self.is_regular, other.is_regular) if mask is not None]
        is_regular = np.logical_and.reduce(masks) if masks else None
        return SizeTable({**self.sums, **other.sums}, {**self.maxima, **other.maxima}, is_regular)

    def prefixed(self, prefix: str) -> SizeTable:
        sums, maxima = ({prefix + name: column for name, column in columns.items()} for columns in (self.sums, self.maxima))
        return SizeTable(sums, maxima, self.is_regular)

    def of_batches(self, batches: Sequence[Ints]) -> SizeTable:
        """The sizes of batches, given by the indices of their sentences; no batch is empty."""
        if not batches:
            return self
        sentences = np.concatenate(batches)
        starts = np.cumsum([0, *map(len, batches[:-1])])
        return SizeTable(
            {name: np.add.reduceat(column[sentences], starts) for name, column in self.sums.items()},
            {name: np.maximum.reduceat(column[sentences], starts) for name, column in self.maxima.items()},
            None if self.is_regular is None else np.logical_and.reduceat(self.is_regular[sentences], starts),
        )


def pad_to(tensor: Tensor, shape: Sequence[int], value: float | bool) -> Tensor:
    """Pad a tensor at the end of each dimension.

    >>> pad_to(torch.tensor([[1, 2]]), (2, 3), 0).tolist()
    [[1, 2, 0], [0, 0, 0]]
    """
    if tensor.shape == torch.Size(shape):
        return tensor
    result = tensor.new_full(tuple(shape), value)
    result[tuple(slice(size) for size in tensor.shape)] = tensor
    return result


def pad_subword_inputs(inputs: Mapping[str, Tensor], sizes: Mapping[str, int], *, has_tables: bool) -> dict[str, Tensor]:
    """Pad the word indices of ``word_index`` to ``sizes``; ids and their mask already have a common length.

    There is at least one more word than the longest sentence has. Words that only fill the tables
    are written there, where the mask is false.
    """
    batch_size, length = inputs["first"].shape
    words = sizes["words"]
    padded = {
        **{name: inputs[name] for name in ("ids", "seen", "cls")},
        "first": pad_to(inputs["first"], (batch_size, words), 0),
        "mask": pad_to(inputs["mask"], (batch_size, words), False),
    }
    for name in ("several", "deep") if has_tables else ():
        count, depth = sizes[name], sizes[f"{name}_depth"]
        if not count:
            continue
        empty = torch.zeros(0, dtype=torch.int64)
        table, counts, positions = (
            inputs.get(key, default)
            for key, default in ((name, empty.view(0, 1)), (f"{name}_counts", empty), (f"{name}_words", empty))
        )
        # Positions count words of padded sentences. Rows of the table repeat their last subword.
        positions = positions // length * words + positions % length
        table = torch.cat((table, table[:, -1:].expand(-1, depth - table.shape[1])), 1)
        padded[name] = pad_to(table, (count, depth), 0)
        padded[f"{name}_counts"] = pad_to(counts, (count,), 1)
        padded[f"{name}_words"] = pad_to(positions, (count,), words - 1)
    return padded


def pad_word_inputs(inputs: Mapping[str, Tensor], sizes: Mapping[str, int]) -> dict[str, Tensor]:
    """Pad words, tags and spellings to ``sizes``; all spellings move to one table."""
    shape = (len(inputs["mask"]), sizes["words"])
    padded = {name: pad_to(tensor, shape, 0) for name, tensor in inputs.items() if name not in ("short", "long")}
    if "spelling" in inputs:
        tables = [inputs[name] for name in ("short", "long")]
        characters = sizes["characters"]
        rows = torch.cat([pad_to(table, (len(table), characters), 0) for table in tables])
        padded["short"] = pad_to(rows, (sizes["spellings"], characters), 0)
        padded["long"] = rows.new_zeros((0, characters))
    return padded
