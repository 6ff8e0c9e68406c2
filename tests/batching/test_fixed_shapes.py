"""Batches padded to common shapes: the same losses and gradients, in few shapes."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import corpus
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from spanwise.batching.batches import PackedBatch, TrainingBatches
from spanwise.batching.shape_classes import MIN_BATCHES
from spanwise.core.types import Corpus, Span
from spanwise.models.model import Model
from spanwise.recipes.catalog import configure
from spanwise.runtime.fast_linear import FastLinear, fast_linear, use_fast_linear
from spanwise.spans.deep import SpanTransformer

NO_DROPOUT = ("head.dropout=0", "head.hidden_dropout=0")
RECIPES = {
    "spanwise": ("head.channels=6", "head.rank=4", "head.relations=false", *NO_DROPOUT),
    "biaffine": ("head.size=6", *NO_DROPOUT),
    "global-pointer": ("head.size=8", "head.dropout=0"),
    "efficient-global-pointer": ("head.size=8", "head.dropout=0"),
    "spanner": ("head.dropout=0", "head.negatives=20"),
    "seqner": ("head.dropout=0",),
    "seqner-crf": ("head.dropout=0",),
    "deep-span": ("head.lstm=4", "head.hidden=6", "head.max_width=5"),
    "deep-span-pruned": ("head.lstm=4", "head.hidden=6", "head.max_width=5"),
}


MARKS: tuple[tuple[Span, ...] | tuple[str, ...] | None, ...] = (None, (), ("Drug",), (Span(0, 2),))


def partial_corpus() -> Corpus:
    """The tiny corpus with all kinds of marks of partial annotation, and sentences without any."""
    data = corpus(80)
    train = tuple(replace(s, annotated=MARKS[index % len(MARKS)]) for index, s in enumerate(data["train"]))
    return Corpus({**data.splits, "train": train})


def make_batches(recipe: str, encoder: str, *overrides: str, data: Corpus | None = None) -> tuple[Model, TrainingBatches]:
    torch.manual_seed(2)
    data = data or corpus(80)
    model = Model.build(configure(recipe, encoder=encoder, overrides=overrides), data).train()
    prepared = model.encoder.prepare(data["train"])
    batches = TrainingBatches(model.encoder, model.head, data["train"], prepared, epochs=4, batch_size=4, budget=None, seed=1)
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        if isinstance(module, SpanTransformer):
            module._layers = tuple(replace(layer, dropout=0.0, attention_dropout=0.0) for layer in module._layers)
    return model, batches


def learn(model: Model, batches: TrainingBatches, step: int) -> tuple[float, dict[str, Tensor]]:
    """The loss of a batch and the gradients of all weights."""
    model.zero_grad(set_to_none=True)
    batch = batches.batch(step)
    loss = model(batch.inputs, batch.targets)["loss"]
    loss.backward()
    return loss.item(), {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("is_partial", [False, True])
@pytest.mark.parametrize("recipe", RECIPES)
def test_padded_batches_have_the_same_losses_and_gradients(
    recipe: str, is_partial: bool, tiny_bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    overrides = (*RECIPES[recipe], *(("encoder.parts.0.masking=0",) if recipe == "spanwise" else ()))
    model, batches = make_batches(recipe, str(tiny_bert), *overrides, data=partial_corpus() if is_partial else None)
    plain = [learn(model, batches, step) for step in range(12)]
    assert batches.fix_shapes()
    model.encoder.enable_step_graphs()
    use_fast_linear(model)  # also on the CPU, which does not need it
    monkeypatch.setattr(FastLinear, "forward", lambda self, inputs: fast_linear(inputs, self.weight, self.bias))
    padded = [step for step in range(12) if batches.sizes[step] is not None]
    assert len(padded) > 6
    for step in padded:
        loss, gradients = learn(model, batches, step)
        assert loss == pytest.approx(plain[step][0], rel=1e-5)
        assert gradients.keys() == plain[step][1].keys()
        for name, gradient in gradients.items():
            expected = plain[step][1][name]
            rounding = 1e-6 + 1e-5 * expected.abs().max().item()  # of sums in another order
            torch.testing.assert_close(
                gradient, expected, rtol=1e-3, atol=rounding, msg=lambda text, name=name: f"{name}: {text}"
            )


def test_batches_of_a_class_have_one_shape(tiny_bert: Path) -> None:
    _, batches = make_batches("spanwise", str(tiny_bert), *RECIPES["spanwise"])
    before = {PackedBatch.pack(batches.batch(step)).key for step in range(len(batches))}
    assert batches.fix_shapes()
    shapes = defaultdict(list)
    for step in range(len(batches)):
        shapes[PackedBatch.pack(batches.batch(step)).key].append(batches.sizes[step] is not None)
    recorded = [flags for flags in shapes.values() if any(flags)]
    assert len(recorded) < len(before) / 4
    assert all(len(flags) >= MIN_BATCHES and all(flags) for flags in recorded)


@pytest.mark.parametrize("recipe", ["locate-label", "sng"])
def test_other_heads_keep_their_shapes(recipe: str, tiny_bert: Path) -> None:
    _, batches = make_batches(recipe, str(tiny_bert))
    assert not batches.fix_shapes()
    assert batches.sizes == []


def test_encoders_with_an_lstm_keep_their_shapes() -> None:
    _, batches = make_batches("global-pointer", "static")
    assert not batches.fix_shapes()


class WaitingOperations(TorchDispatchMode):
    """Collects operations that make the host wait for a device, which a recording does not allow."""

    NAMES = ("nonzero", "_local_scalar_dense", "masked_select", "unique", "repeat_interleave.Tensor", "equal.default")

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = str(function)
        is_index = "aten.index" in name and isinstance(args[1], (list, tuple))
        if any(part in name for part in self.NAMES):
            self.names.add(name)
        elif is_index and any(isinstance(index, Tensor) and index.dtype == torch.bool for index in args[1]):
            self.names.add(f"{name} with a mask")
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("recipe", RECIPES)
def test_recorded_steps_never_wait_for_the_device(recipe: str, tiny_bert: Path) -> None:
    model, batches = make_batches(recipe, str(tiny_bert), *RECIPES[recipe])
    assert batches.fix_shapes()
    model.encoder.enable_step_graphs()
    batch = batches.batch(next(step for step in range(12) if batches.sizes[step] is not None))
    with WaitingOperations() as operations:
        model(batch.inputs, batch.targets)["loss"].backward()
    assert not operations.names
