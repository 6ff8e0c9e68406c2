# mypy: ignore-errors
# ruff: noqa: N803  Triton writes constants in capitals
"""Parts that the Triton kernels of several modules share: loading values, layer norm, dropout and the precision of products."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from spanwise.runtime.dropout_seeds import next_seed


@triton.jit
def load_floats(pointers, mask):
    """Values of any type in float32, and 0 where the mask is false."""
    return tl.load(pointers, mask=mask, other=0.0).to(tl.float32)


@triton.jit
def head_offsets(rows, WIDTH: tl.constexpr, SIZE: tl.constexpr):
    """The positions of a head's values in rows of WIDTH values, [rows, SIZE]. The head is the program's second number."""
    columns = tl.program_id(1) * SIZE + tl.arange(0, SIZE)
    return rows[:, None] * WIDTH + columns[None, :]


@triton.jit
def normalize(rows, is_inside, epsilon, WIDTH: tl.constexpr):
    """Rows with a mean of 0 and a variance of 1; their former means, and the factors by which they were scaled."""
    mean = tl.sum(rows, 1) / WIDTH
    centred = tl.where(is_inside, rows - mean[:, None], 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(centred * centred, 1) / WIDTH + epsilon)
    return centred * scale[:, None], mean, scale


@triton.jit
def norm_gradient(upper, normal, scale, WIDTH: tl.constexpr):
    """The gradient of the rows before ``normalize``, from that of the rows after it, which are ``normal``."""
    mean = tl.sum(upper, 1)[:, None] / WIDTH
    return (upper - mean - normal * (tl.sum(upper * normal, 1)[:, None] / WIDTH)) * scale


@triton.jit
def random_numbers(seed, number):
    """A number from 0 to 1 for each ``number``: the finalizer of MurmurHash3, ten times as fast as ``tl.rand``."""
    bits = number.to(tl.uint32) * 0x9E3779B1 + seed.to(tl.uint32)
    bits = (bits ^ (bits >> 16)) * 0x85EBCA6B
    bits = (bits ^ (bits >> 13)) * 0xC2B2AE35
    bits = bits ^ (bits >> 16)
    return (bits >> 8).to(tl.float32) * (1.0 / 16777216.0)


@triton.jit
def drop(values, is_kept, dropout):
    """Set values to 0 where they are not kept, and scale the others, so that the mean stays the same."""
    return tl.where(is_kept, values / (1.0 - dropout), 0.0)


def dropout_seed(dropout: float, device: torch.device) -> Tensor:
    """A random seed for a layer, on the device; 0 without dropout."""
    return next_seed(device) if dropout else torch.zeros(2, dtype=torch.int64, device=device)


def product_precision() -> str:
    """The precision of products of float32 in kernels, as PyTorch is set."""
    return "ieee" if torch.get_float32_matmul_precision() == "highest" else "tf32"
