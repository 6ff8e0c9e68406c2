"""Batches of sentences of similar length, planned in advance so that training can resume at any step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.data import Dataset

from spanwise.batching.plan import Ints, plan
from spanwise.batching.shape_classes import common_sizes
from spanwise.core.types import Sentence
from spanwise.encoders.base import Encoder
from spanwise.heads.abilities import HasFixedShapes
from spanwise.heads.base import Head

TARGETS = "targets."  # prefix of the sizes of targets, among those of the encoder's inputs


@dataclass(slots=True)
class Batch:
    """The tensors of a batch and the indices of its sentences."""

    indices: Ints
    inputs: dict[str, Tensor]
    targets: dict[str, Tensor]

    def to(self, device: torch.device) -> Batch:
        return Batch(self.indices, to_device(self.inputs, device), to_device(self.targets, device))


def to_device(tensors: Mapping[str, Tensor], device: torch.device) -> dict[str, Tensor]:
    """Copy tensors; one that has several names is copied once."""
    distinct = {id(tensor): tensor for tensor in tensors.values()}
    copies = {key: tensor.to(device, non_blocking=True) for key, tensor in distinct.items()}
    return {name: copies[id(tensor)] for name, tensor in tensors.items()}


@dataclass(slots=True)
class PackedBatch:
    """A batch in one block of memory, which is sent between processes, pinned and copied as a whole."""

    indices: Ints
    memory: Tensor
    layout: list[tuple[bool, str, torch.dtype, torch.Size, int, int]]  # is input, name, type, shape, start, end

    @classmethod
    def pack(cls, batch: Batch) -> PackedBatch:
        chunks, layout, offset = [], [], 0
        for is_input, tensors in ((True, batch.inputs), (False, batch.targets)):
            for name, tensor in tensors.items():
                # Cloned, because tensors of at most one element may have strides that cannot be viewed as bytes.
                raw = tensor.clone(memory_format=torch.contiguous_format).view(-1).view(torch.uint8)
                layout.append((is_input, name, tensor.dtype, tensor.shape, offset, offset + len(raw)))
                padding = -len(raw) % 8  # tensors are aligned to eight bytes, as int64 requires
                chunks += [raw, raw.new_zeros(padding)] if padding else [raw]
                offset += len(raw) + padding
        return cls(batch.indices, torch.cat(chunks), layout)

    def __reduce__(self) -> tuple[Any, ...]:
        """Send the bytes themselves to another process: shared memory costs it a new connection for each batch."""
        return _receive, (self.indices, self.memory.numpy(), self.layout)

    @property
    def key(self) -> tuple[tuple[bool, str, torch.dtype, torch.Size, int, int], ...]:
        """The key that batches of the same shapes share."""
        return tuple(self.layout)

    def view(self, memory: Tensor) -> Batch:
        """A batch whose tensors are parts of ``memory``, laid out as that of this batch."""
        batch = Batch(self.indices, {}, {})
        for is_input, name, dtype, shape, start, end in self.layout:
            (batch.inputs if is_input else batch.targets)[name] = memory[start:end].view(dtype).view(shape)
        return batch

    def to(self, device: torch.device) -> Batch:
        # Pinned here instead of in the loader, whose thread would interfere with the capture of CUDA graphs.
        memory = (self.memory.pin_memory() if device.type == "cuda" else self.memory).to(device, non_blocking=True)
        return self.view(memory)


def _receive(indices: Ints, memory: npt.NDArray[np.uint8], layout: list[Any]) -> PackedBatch:
    return PackedBatch(indices, torch.from_numpy(memory), layout)


class TrainingBatches(Dataset[PackedBatch]):
    """Every batch of every epoch, in order: item k is the k-th step of training.

    An item depends only on the seed and k, so worker processes may build items in any order, and a
    resumed run gets the same batches.
    """

    def __init__(
        self,
        encoder: Encoder,
        head: Head,
        sentences: Sequence[Sentence],
        prepared: Sequence[Any],
        *,
        epochs: int,
        batch_size: int,
        budget: int | None,
        seed: int,
        share: tuple[int, int] = (0, 1),
    ) -> None:
        self.encoder, self.head, self.sentences, self.prepared, self.seed = encoder, head, sentences, prepared, seed
        costs = np.array([encoder.cost(item) for item in prepared], np.int64)
        self.ends: list[int] = []  # the number of steps after each epoch
        self.batches: list[Ints] = []
        rank, world = share
        for epoch in range(epochs):
            batches = plan(costs, batch_size, budget, np.random.default_rng([seed, epoch]))
            spare = -len(batches) % world  # every process must take the same number of steps
            batches += [batches[index % len(batches)] for index in range(spare)]
            self.batches += batches[rank::world]
            self.ends.append(len(self.batches))
        self.sizes: list[dict[str, int] | None] = []
        self._costs = costs
        self._is_partial = any(sentence.annotated is not None for sentence in sentences)

    @property
    def starts(self) -> list[int]:
        """The number of steps before each epoch."""
        return [0, *self.ends[:-1]]

    def fix_shapes(self) -> bool:
        """Pad batches of similar length to the same shapes, so that whole training steps can be recorded.

        Returns False, and changes nothing, if encoder or head do not support it, or if training is deterministic.
        """
        if torch.are_deterministic_algorithms_enabled():
            return False
        head, table = self.head, self.encoder.size_table(self.prepared)
        if table is None or not isinstance(head, HasFixedShapes) or not head.is_recordable:
            return False
        table = table.join(head.size_table(self.sentences).prefixed(TARGETS))
        self.sizes = common_sizes(self.batches, self._costs, table)
        return True

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, step: int) -> PackedBatch:
        return PackedBatch.pack(self.batch(step))

    def batch(self, step: int) -> Batch:
        indices = self.batches[step]
        sentences = [self.sentences[index] for index in indices]
        generator = np.random.default_rng([self.seed, 1, step])
        inputs = self.encoder.collate([self.prepared[index] for index in indices])
        targets = self.head.targets(sentences, gold=True, generator=generator)
        if self.sizes and (sizes := self.sizes[step]) is not None:
            assert isinstance(self.head, HasFixedShapes)
            inputs = self.encoder.pad(inputs, sizes)
            target_sizes = {name.removeprefix(TARGETS): size for name, size in sizes.items() if name.startswith(TARGETS)}
            shape = inputs["mask"].shape
            targets = self.head.pad(targets, target_sizes, shape, is_partial=self._is_partial)
        return Batch(indices, inputs, targets)


def make_batch(
    encoder: Encoder, head: Head, sentences: Sequence[Sentence], prepared: Sequence[Any], indices: Ints, *, gold: bool = False
) -> Batch:
    """A batch for scoring or, with ``gold``, for the full loss without sampling."""
    batch = [sentences[index] for index in indices]
    return Batch(indices, encoder.collate([prepared[index] for index in indices]), head.targets(batch, gold=gold))
