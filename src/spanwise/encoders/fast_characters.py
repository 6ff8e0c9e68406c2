"""The convolution over characters in training on a GPU, with few kernels."""

from __future__ import annotations

from functools import cache

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from spanwise.encoders.vocabulary import PADDING
from spanwise.runtime.kernel_choice import example_values, kernels_agree, uses_kernels

MAX_CHARACTERS = 1024  # a program reads the gradients of all of them
MAX_FILTERS = 256
MAX_LENGTH = 64


def character_maxima(vectors: Tensor, weight: Tensor, bias: Tensor, table: Tensor) -> Tensor:
    """The maximum of each filter over the characters of a word, at least 0: [words, filters].

    ``vectors`` [V, d] are those of all characters, ``weight`` [filters, d, 3] and ``bias`` are those of the
    convolution, and ``table`` [words, length] has the characters of words, followed by padding.
    """
    filtered = F.conv1d(F.embedding(table, vectors, PADDING).transpose(1, 2), weight, bias, padding=1).relu()
    maximum: Tensor = (filtered * (table != PADDING).unsqueeze(1)).amax(2)  # at least 0, the value of padding
    return maximum


def maxima_with_kernels(vectors: Tensor, weight: Tensor, bias: Tensor, *tables: Tensor) -> Tensor:
    """The ``character_maxima`` of several tables together, computed by kernels. The vector of padding must be 0."""
    from spanwise.encoders.character_kernels import CharacterMaxima

    result: Tensor = CharacterMaxima.apply(vectors, weight, bias, *tables)  # type: ignore[no-untyped-call]
    return result


def can_use_character_kernels(vectors: Tensor, weight: Tensor, *tables: Tensor) -> bool:
    """Whether kernels can compute maxima: few characters and filters in float32, in training on a GPU, with Triton."""
    if not vectors.is_cuda or not torch.is_grad_enabled() or not uses_kernels():
        return False
    is_float32 = vectors.dtype == torch.float32 and not torch.is_autocast_enabled("cuda")
    is_small = len(vectors) <= MAX_CHARACTERS and len(weight) <= MAX_FILTERS
    is_short = all(0 < table.shape[1] <= MAX_LENGTH for table in tables)
    return is_float32 and is_small and is_short and _works(vectors.device, len(vectors), weight.shape[0], weight.shape[1])


@cache
def _works(device: torch.device, characters: int, filters: int, size: int) -> bool:
    """Whether kernels compute maxima for these numbers of characters and filters, and vectors of this size."""
    vectors = example_values(characters, size, device=device, seed=1)
    vectors[PADDING] = 0.0
    weight, bias = example_values(filters, size, 3, device=device, seed=2), example_values(filters, device=device, seed=3)
    table = torch.arange(35, device=device).view(5, 7) % characters
    table = table.masked_fill(torch.arange(7, device=device) >= torch.tensor([[7], [1], [3], [0], [6]], device=device), PADDING)
    return kernels_agree("character", maxima_with_kernels, character_maxima, [vectors, weight, bias, table])
