"""``check_head`` detects heads that break the contract."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint

import pytest
import torch
from torch import Tensor

from spanwise.encoders.base import TokenStates
from spanwise.heads import HEADS
from spanwise.heads.base import Losses
from spanwise.heads.spanner import SpanNer
from spanwise.testing import check_head


class DoesNotLearn(SpanNer):
    def loss(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Losses:
        losses = super().loss(states, targets)
        return Losses(0 * losses.sums + 1, losses.counts)


class DependsOnTheBatch(SpanNer):
    def logits(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Tensor:
        return super().logits(states, targets) + 0.01 * len(states.words) * torch.arange(3)


class ReadsPadding(SpanNer):
    def logits(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Tensor:
        padding = (states.words * ~states.mask.unsqueeze(-1)).sum((1, 2))  # 0 for the static encoder without padding states
        return super().logits(states, targets) + 1e-3 * padding[targets["sentence"], None] * torch.arange(3)


class HasUnsavedState(SpanNer):
    steps = 0

    def loss(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Losses:
        self.steps += self.training
        losses = super().loss(states, targets)
        return Losses(losses.sums * (1 + self.steps / 100), losses.counts)


class ChangesWhenLoaded(SpanNer):
    offset = 0.0

    def logits(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Tensor:
        if self.training:
            self.offset = 3.0
        return super().logits(states, targets) + self.offset * torch.tensor([1.0, 0.0, 0.0])


class DividesByTheNumberOfSpans(SpanNer):
    def loss(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Losses:
        losses = super().loss(states, targets)
        return Losses(losses.sums / losses.counts, torch.ones_like(losses.counts))


class GivesNoReason(SpanNer):
    @property
    def onnx(self) -> str:
        return " "


@pytest.mark.parametrize(
    ("head", "problem"),
    [
        (DoesNotLearn, "the training loss does not decrease"),
        (DependsOnTheBatch, "in a batch of 2: the loss differs"),
        (ReadsPadding, "(in a batch of|with random states of padding)"),
        (HasUnsavedState, "the weights of a resumed run differ"),
        (ChangesWhenLoaded, "(of a resumed run|of the loaded model) differ"),
        (DividesByTheNumberOfSpans, "(the loss differs|is not finite)"),
        (GivesNoReason, "must be a graph or a reason"),
    ],
)
def test_violations_are_reported(head: type[SpanNer], problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(HEADS._entries, "broken", [EntryPoint("broken", "broken:Head", "spanwise.heads")])
    monkeypatch.setitem(HEADS._loaded, "broken", head)
    with pytest.raises(AssertionError, match=problem):
        check_head("broken", overrides=["encoder.char_hidden=0", "encoder.layers=0"])
