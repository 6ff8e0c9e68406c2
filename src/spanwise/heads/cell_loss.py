"""The cross-entropy of the cells of a grid, summed over the spans of a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import torch
from torch import Tensor

from spanwise.losses.smoothing import soft_cross_entropy
from spanwise.runtime.kernel_choice import MAX_VALUES, example_values, kernels_agree, uses_kernels

MAX_CLASSES = 256  # a program reads all classes of a cell
COLUMNS = ("sentence", "start", "end", "label", "mass")  # of the gold rows


def gold_cells(targets: Mapping[str, Tensor], inside: Tensor) -> Tensor:
    """The flat index of each gold row's cell among all cells [B, T, W]."""
    _, length, widest = inside.shape
    start = targets["start"]
    return (targets["sentence"] * length + start) * widest + targets["end"] - start - 1


def cell_losses(
    logits: Tensor, inside: Tensor, targets: Mapping[str, Tensor], open_masses: Tensor | None = None,
    row_masses: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The cross-entropy of each cell [B, T, W].

    ``logits`` are [B, T, W, C + 1], gold rows and masses as in ``soft_cross_entropy``.
    """
    gold = gold_cells(targets, inside)
    values = logits.flatten(0, 1).transpose(1, 2)
    return soft_cross_entropy(values, gold, targets["label"], targets["mass"], open_masses, row_masses).view_as(inside)


def sums_with_kernels(logits: Tensor, inside: Tensor, targets: Mapping[str, Tensor]) -> Tensor:
    """The sum of ``cell_losses`` over the spans of each sentence [B], computed by kernels."""
    from spanwise.heads.cell_loss_kernels import CellLosses

    result: Tensor = CellLosses.apply(logits, inside, *(targets[name] for name in COLUMNS))  # type: ignore[no-untyped-call]
    return result


def can_use_loss_kernels(logits: Tensor) -> bool:
    """Whether kernels can compute the losses of logits in float32: with few classes, in training on a GPU, with Triton."""
    if not logits.is_cuda or not torch.is_grad_enabled() or not uses_kernels():
        return False
    is_small = logits.shape[-1] <= MAX_CLASSES and logits.numel() < MAX_VALUES
    return logits.dtype == torch.float32 and is_small and _works(logits.device, logits.shape[2], logits.shape[3])


@cache
def _works(device: torch.device, widest: int, classes: int) -> bool:
    """Whether kernels compute the losses for these numbers of widths and classes."""
    rows = {"sentence": [0, 0, 1, 0], "start": [0, 2, 1, 0], "end": [1, 3, 2, 1], "label": [0, 0, classes - 2, 0]}
    targets = {name: torch.tensor(values, device=device) for name, values in rows.items()}
    targets["mass"] = torch.tensor([0.5, 1.0, 0.75, 0.0], device=device)
    inside = torch.ones(2, 3, widest, dtype=torch.bool, device=device)
    inside[1, 2] = False

    def reference(logits: Tensor) -> Tensor:
        return cell_losses(logits, inside, targets).masked_fill(~inside, 0.0).flatten(1).sum(1)

    def kernels(logits: Tensor) -> Tensor:
        return sums_with_kernels(logits, inside, targets)

    return kernels_agree("loss", kernels, reference, [example_values(2, 3, widest, classes, device=device)])
