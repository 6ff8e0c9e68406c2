"""The switch of experimental kernels for GPUs."""

from __future__ import annotations

import os

SWITCH = "SPANWISE_KERNELS"


def uses_experimental_kernels() -> bool:
    """Whether the project's Triton kernels are used in training on a GPU. They are off unless ``SPANWISE_KERNELS=1``.

    The kernels agree with PyTorch in Triton's interpreter, but not all of them were measured on a GPU yet.
    """
    return os.environ.get(SWITCH) == "1"
