"""Forks of a process that has used several threads."""

from __future__ import annotations

from collections.abc import Iterator

import forked
import pytest
import torch
from forked import Forked
from torch import nn


@pytest.fixture
def _two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("_two_threads")
def test_a_fork_does_not_wait_for_threads_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    lstm = nn.LSTM(16, 16, 2, bidirectional=True)

    def compute() -> None:
        lstm(torch.zeros(50, 64, 16))

    compute()
    monkeypatch.setattr(forked, "LIMIT", 30.0)
    with Forked(compute) as process:
        assert process.wait().code == 0
