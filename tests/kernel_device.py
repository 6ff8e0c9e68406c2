"""Where tests of Triton kernels run: on a GPU or, with ``TRITON_INTERPRET=1``, interpreted on a CPU."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest
import torch

_INTERPRETS = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cpu" if _INTERPRETS else "cuda"
_PROBLEM = "Triton is not installed" if find_spec("triton") is None else "kernels need a GPU or TRITON_INTERPRET=1"
needs_kernels = pytest.mark.skipif(
    find_spec("triton") is None or not (_INTERPRETS or torch.cuda.is_available()), reason=_PROBLEM
)  # fmt: skip
