"""Device and precision of training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from accelerate.utils import DistributedDataParallelKwargs

from spanwise.encoders.base import Encoder
from spanwise.heads.abilities import TrainsInBfloat16, UsesCudaGraphs, heads_with
from spanwise.models.model import Model, count_parameters
from spanwise.runtime.device import is_single_process
from spanwise.training.optimization import SMALL_ENCODER


def choose_precision(requested: str, encoder: Encoder, *, on_cpu: bool) -> str:
    """The precision of training: fp32 on a CPU and, by default, for small encoders; else bf16."""
    if on_cpu:
        return "fp32"
    if requested != "auto":
        return requested
    # A small encoder is limited by kernel launches; mixed precision only adds casts.
    return "fp32" if count_parameters(encoder) < SMALL_ENCODER else "bf16"


def make_accelerator(on_cpu: bool, precision: str, trackers: Sequence[str], folder: Path) -> Accelerator:
    if not on_cpu:
        torch.set_float32_matmul_precision("high")  # TF32: precise enough here, and several times faster
    # An earlier training in this process may have used another precision or, as a single process, another device.
    AcceleratorState._reset_state(reset_partial_state=is_single_process())
    return Accelerator(
        cpu=on_cpu,
        mixed_precision="no" if precision == "fp32" else precision,
        log_with=list(trackers) or None,
        project_dir=folder if trackers else None,
        # A batch may leave weights unused: spans of one word need no recurrent ones.
        kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=True)],
    )


def enable_cuda_graphs(model: Model) -> None:
    """Record the forward and backward passes of encoder and head as CUDA graphs, unless training is deterministic."""
    if torch.are_deterministic_algorithms_enabled():
        return
    model.encoder.enable_cuda_graphs()
    for head in heads_with(model.head, UsesCudaGraphs):
        head.enable_cuda_graphs()


def store_by_channel(model: Model) -> None:
    """Store the weights of convolutions by channel: the fastest ones of a GPU read the channels of a cell together."""
    for module in model.modules():
        if isinstance(module, torch.nn.Conv2d):
            module.weight.data = module.weight.data.contiguous(memory_format=torch.channels_last)


def use_bfloat16_in_heads(model: Model) -> None:
    """Train in bfloat16 what takes longer than a small encoder, which is trained in float32."""
    for head in heads_with(model.head, TrainsInBfloat16):
        head.train_in_bfloat16()
