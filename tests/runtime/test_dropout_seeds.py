"""Seeds for the dropout of kernels."""

from __future__ import annotations

import torch
from torch.utils.checkpoint import checkpoint

from spanwise.runtime.dropout_seeds import COUNT, next_seed, shared_seeds

CPU = torch.device("cpu")


def draw(count: int) -> list[int]:
    return [int(next_seed(CPU)[0]) for _ in range(count)]


def test_all_layers_and_passes_have_different_seeds() -> None:
    torch.manual_seed(1)
    seeds = draw(3)
    for _ in range(2):
        with shared_seeds():
            seeds += draw(2 * COUNT + 1)
    seeds += draw(3)
    assert len(set(seeds)) == len(seeds)


def test_a_repeated_pass_has_the_same_seeds() -> None:
    def layers(inputs: torch.Tensor) -> torch.Tensor:
        with shared_seeds():
            passes.append(draw(5))
        return (2 * inputs).sin()

    passes: list[list[int]] = []
    inputs = torch.ones(1, requires_grad=True)
    with shared_seeds():  # of the encoder below
        checkpoint(layers, inputs, use_reentrant=False).sum().backward()
    torch.manual_seed(2)
    layers(inputs)
    torch.manual_seed(2)
    layers(inputs)
    assert passes[0] == passes[1] != passes[2]
    assert passes[-1] == passes[-2]


def test_seeds_share_an_alignment_and_few_draws() -> None:
    with shared_seeds():
        seeds = [next_seed(CPU) for _ in range(COUNT)]
    assert len({seed.untyped_storage().data_ptr() for seed in seeds}) == 1
    assert {(seed.data_ptr() - seeds[0].data_ptr()) % 16 for seed in seeds} == {0}
