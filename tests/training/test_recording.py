"""Recording of training steps without a GPU: what must hold around a recording."""

from __future__ import annotations

import gc
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from spanwise.training.step_graphs import StepGraphs


def test_no_garbage_is_collected_while_a_step_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph of an earlier training that is freed during a recording makes the recording invalid."""
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: None)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", object)
    monkeypatch.setattr(torch.cuda, "graph", lambda *_, **__: nullcontext())
    collects: list[bool] = []

    def compute(batch: Any) -> dict[str, torch.Tensor]:
        collects.append(gc.isenabled())
        return {"loss": torch.zeros(())}

    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    graphs = StepGraphs(compute, optimizer, torch.device("cpu"))
    packed = SimpleNamespace(memory=torch.zeros(8, dtype=torch.uint8), view=lambda memory: None)
    gc.enable()
    graphs._record(packed)  # type: ignore[arg-type]
    assert collects == [False]
    assert gc.isenabled()
