"""Batches of sentences of like length, planned ahead so that training can go on anywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from spanwise.batching.plan import Ints, plan
from spanwise.core.types import Sentence
from spanwise.encoders.base import Encoder
from spanwise.heads.base import Head


@dataclass(slots=True)
class Batch:
    """The tensors of a batch, and which sentences (numbers in the data) it holds."""

    numbers: Ints
    inputs: dict[str, Tensor]
    targets: dict[str, Tensor]

    def to(self, device: torch.device) -> Batch:
        return Batch(self.numbers, moved(self.inputs, device), moved(self.targets, device))


def moved(tensors: Mapping[str, Tensor], device: torch.device) -> dict[str, Tensor]:
    return {name: tensor.to(device, non_blocking=True) for name, tensor in tensors.items()}


@dataclass(slots=True)
class PackedBatch:
    """A batch as one piece of memory: worker processes hand over, pin and copy it at once instead of tensor by tensor."""

    numbers: Ints
    memory: Tensor
    layout: list[tuple[bool, str, torch.dtype, torch.Size, int, int]]  # input or target, name, type, shape, from, to

    @classmethod
    def pack(cls, batch: Batch) -> PackedBatch:
        pieces, layout, at = [], [], 0
        for is_input, tensors in ((True, batch.inputs), (False, batch.targets)):
            for name, tensor in tensors.items():
                # Copied, for a tensor of one element or none may come with a stride that cannot be viewed as bytes.
                raw = tensor.clone(memory_format=torch.contiguous_format).view(-1).view(torch.uint8)
                layout.append((is_input, name, tensor.dtype, tensor.shape, at, at + len(raw)))
                padding = -len(raw) % 8  # every tensor begins at a multiple of eight, as int64 wants it
                pieces += [raw, raw.new_zeros(padding)] if padding else [raw]
                at += len(raw) + padding
        return cls(batch.numbers, torch.cat(pieces), layout)

    def to(self, device: torch.device) -> Batch:
        # Pinned here and not by the loader, whose thread would disturb a recording of CUDA graphs in this one.
        memory = (self.memory.pin_memory() if device.type == "cuda" else self.memory).to(device, non_blocking=True)
        batch = Batch(self.numbers, {}, {})
        for is_input, name, dtype, shape, start, end in self.layout:
            (batch.inputs if is_input else batch.targets)[name] = memory[start:end].view(dtype).view(shape)
        return batch


class TrainingBatches(Dataset[PackedBatch]):
    """Every batch of every epoch, in order: item k is the k-th step of training.

    What an item holds depends on the seed and k alone, so worker processes may build items in any order, and a training that
    goes on after an interruption sees the same batches.
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
        self.ends: list[int] = []  # the step behind each epoch's last
        self.batches: list[Ints] = []
        rank, world = share
        for epoch in range(epochs):
            batches = plan(costs, batch_size, budget, np.random.default_rng([seed, epoch]))
            spare = -len(batches) % world  # every process makes the same number of steps
            batches += [batches[number % len(batches)] for number in range(spare)]
            self.batches += batches[rank::world]
            self.ends.append(len(self.batches))

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, step: int) -> PackedBatch:
        return PackedBatch.pack(self.batch(step))

    def batch(self, step: int) -> Batch:
        numbers = self.batches[step]
        chosen = [self.sentences[number] for number in numbers]
        generator = np.random.default_rng([self.seed, 1, step])
        return Batch(
            numbers,
            self.encoder.collate([self.prepared[number] for number in numbers]),
            self.head.targets(chosen, gold=True, generator=generator),
        )


def make_batch(
    encoder: Encoder, head: Head, sentences: Sequence[Sentence], prepared: Sequence[Any], numbers: Ints, *, gold: bool = False
) -> Batch:
    """A batch for scoring, or, with ``gold``, for the full loss without sampling."""
    chosen = [sentences[number] for number in numbers]
    return Batch(numbers, encoder.collate([prepared[n] for n in numbers]), head.targets(chosen, gold=gold))
