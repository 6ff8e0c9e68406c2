"""The cells of a grid in training on a GPU, with few kernels."""

from __future__ import annotations

from functools import cache, partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from spanwise.heads.cells import sum_words, windows
from spanwise.runtime.kernel_choice import MAX_VALUES, example_values, kernels_agree, uses_kernels

PARTS = 5  # of a projected word
MAX_CHANNELS = 256  # values of a cell; a program reads whole cells
MAX_WIDTH = 32  # words of a cell; a program reads all cells that start at a word


def can_use_cell_kernels(words: Tensor, widest: int, channels: int, rank: int) -> bool:
    """Whether kernels can compute cells of these words: small cells in float32, in training on a GPU, with Triton."""
    if not words.is_cuda or not torch.is_grad_enabled() or not uses_kernels():
        return False
    is_float32 = words.dtype == torch.float32 and not torch.is_autocast_enabled("cuda")
    size = max(channels, rank)
    largest = words.shape[0] * words.shape[1] * max(widest, PARTS) * size  # of all tensors
    is_small = size <= MAX_CHANNELS and widest <= MAX_WIDTH and largest < MAX_VALUES
    return is_float32 and is_small and _works(words.device, widest, channels, rank)


def joined_cells(
    words: Tensor, product: Tensor | None, widths: Tensor, norm: Any, inside: Tensor, dropout: float,
    *, has_content: bool,
) -> Tensor:  # fmt: skip
    """The cells before the convolutions [B, T, W, d], computed by kernels.

    ``words`` are the projected words [B, T, first | last | left | right | content], ``product`` is the weight of the
    products of left and right, and ``widths`` are vectors [W, d].
    """
    from spanwise.heads.cell_kernels import JoinedCells

    result: Tensor = JoinedCells.apply(  # type: ignore[no-untyped-call]
        words, product, widths, norm.weight, norm.bias, inside, norm.eps, dropout, has_content
    )
    return result


def compared_cells(cells: Tensor, convolution: Any, norm: Any, inside: Tensor) -> Tensor:
    """The cells after a convolution: each plus what its neighbours [B, T, W, d] add, computed by kernels."""
    from spanwise.heads.cell_norm_kernels import ComparedCells

    neighbours = F.conv2d(cells.permute(0, 3, 1, 2), convolution.weight, padding=convolution.padding).permute(0, 2, 3, 1)
    result: Tensor = ComparedCells.apply(  # type: ignore[no-untyped-call]
        cells, neighbours, convolution.bias, norm.weight, norm.bias, inside, norm.eps
    )
    return result


@cache
def _works(device: torch.device, widest: int, channels: int, rank: int) -> bool:
    """Whether kernels compute cells of this size."""
    sizes = (channels, channels, rank, rank, channels)
    mask = torch.tensor([[True] * 5, [True, True, False, False, False]], device=device).unsqueeze(2)
    inside = windows(mask, widest).squeeze(-1) & mask
    shapes = [(2, 5, sum(sizes)), (widest, channels), *[(channels,)] * 3, (channels, channels, 3, 3), (channels, rank)]
    inputs = [example_values(*shape, device=device, seed=seed) for seed, shape in enumerate(shapes if rank else shapes[:-1])]

    def kernels(words: Tensor, widths: Tensor, weight: Tensor, bias: Tensor, offset: Tensor, *matrices: Tensor) -> Tensor:
        convolution, product = matrices if rank else (matrices[0], None)
        norm = _Norm(weight, bias)
        cells = joined_cells(words, product, widths, norm, inside, 0.0, has_content=True)
        return compared_cells(cells, _Convolution(convolution, offset), norm, inside)

    def reference(words: Tensor, widths: Tensor, weight: Tensor, bias: Tensor, offset: Tensor, *matrices: Tensor) -> Tensor:
        multiply = partial(F.linear, weight=matrices[1]) if rank else None
        cells = F.gelu(F.layer_norm(sum_words(words, sizes, widths, multiply), weight.shape, weight, bias))
        cells = cells * inside.unsqueeze(-1)
        neighbours = F.conv2d(cells.permute(0, 3, 1, 2), matrices[0], offset, padding=1).permute(0, 2, 3, 1)
        return (cells + F.gelu(F.layer_norm(neighbours, weight.shape, weight, bias))) * inside.unsqueeze(-1)

    return kernels_agree("grid", kernels, reference, inputs)


class _Norm(NamedTuple):
    """The weights of a layer norm."""

    weight: Tensor
    bias: Tensor
    eps: float = 1e-5


class _Convolution(NamedTuple):
    """The weights of a convolution of three rows and columns."""

    weight: Tensor
    bias: Tensor
    padding: int = 1
