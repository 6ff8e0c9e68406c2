"""Adversarial training: the engine against the literal computation, accumulation, restoration, and refusals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from pathlib import Path

import pytest
import torch
from steps import gradients, make_trainer
from tiny import corpus, quiet
from torch import Tensor
from torch.func import functional_call

from spanwise import SpanwiseError
from spanwise.batching.batches import Batch
from spanwise.models.model import Model
from spanwise.recipes.catalog import configure
from spanwise.training.adversarial import perturb
from spanwise.training.loop import Trainer

EPSILON = 0.7
TABLES = {
    "static": {"words.learned.weight", "characters.vectors.weight"},
    "transformer": {"model.embeddings.word_embeddings.weight"},
    "concat": {
        "parts.0.model.embeddings.word_embeddings.weight", "parts.1.words.learned.weight", "parts.1.characters.vectors.weight",
    },
}  # fmt: skip


def make_encoder_trainer(kind: str, bert: Path, folder: Path, overrides: Sequence[str] = ()) -> Trainer:
    """A trainer with dropout, so that the two passes draw different random numbers."""
    transformer = {"kind": "transformer", "name": str(bert)}
    static = {"kind": "static", "word_size": 8, "char_hidden": 4, "hidden": 8}
    parts = [transformer, {**static, "layers": 0}]
    encoders = {"transformer": transformer, "static": static, "concat": {"kind": "concat", "hidden": 8, "parts": parts}}
    config = configure("global-pointer", overrides=("training.batch_size=8", "training.clip=1e9"))
    config = configure("", resumed=config.model_copy(update={"encoder": encoders[kind]}), overrides=overrides)
    torch.manual_seed(0)
    data = corpus(60)
    return Trainer(Model.build(config, data), data, folder, device="cpu", log=quiet)


def table_names(model: Model) -> set[str]:
    tables = {id(table) for table in model.encoder.embeddings()}
    return {name for name, parameter in model.encoder.named_parameters() if id(parameter) in tables}


def literal_gradients(model: Model, batch: Batch, epsilon: float) -> dict[str, Tensor]:
    """The sum of the gradients of a batch's loss at the weights and at the perturbed weights."""
    names = {f"encoder.{name}" for name in table_names(model)}
    weights = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}

    def gradient(values: dict[str, Tensor]) -> dict[str, Tensor]:
        loss = functional_call(model, values, (batch.inputs, batch.targets))["loss"]
        results = torch.autograd.grad(loss, list(weights.values()), allow_unused=True)
        return {
            name: torch.zeros_like(weights[name]) if result is None else result
            for name, result in zip(weights, results, strict=True)
        }

    first = gradient(dict(weights))
    moved = {
        name: weight + epsilon * first[name] / first[name].pow(2).sum().sqrt() if name in names else weight
        for name, weight in weights.items()
    }
    second = gradient(moved)
    return {name: first[name] + second[name] for name in weights}


def failing_after(table: Tensor) -> Iterator[Tensor]:
    yield table
    raise RuntimeError("out of memory")


@pytest.mark.parametrize("in_place", [False, True])
def test_a_table_is_restored_if_the_next_one_cannot_be_perturbed(in_place: bool) -> None:
    table = torch.zeros(1, 2, requires_grad=True)
    table.grad = torch.ones(1, 2)
    with pytest.raises(RuntimeError, match="out of memory"), perturb(failing_after(table), EPSILON, in_place=in_place):
        pass
    assert table.tolist() == [[0.0, 0.0]]


def test_weights_that_only_the_first_pass_uses_keep_their_gradients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some encoders skip layers at random."""
    trainer = make_trainer(tmp_path, overrides=("training.clip=1e9", f"training.adversarial={EPSILON}"))
    weight, backward, seen = trainer.steps.trainable[-1], trainer.steps._backward, list[Tensor]()

    def skip_in_second_pass(batch: Batch) -> dict[str, Tensor]:
        losses = backward(batch)
        assert weight.grad is not None
        if seen:
            weight.grad = None
        else:
            seen.append(weight.grad.clone())
        return losses

    monkeypatch.setattr(trainer.steps, "_backward", skip_in_second_pass)
    received = gradients(trainer, [[0, 1, 2]])
    name = next(name for name, parameter in trainer.model.named_parameters() if parameter is weight)
    torch.testing.assert_close(received[name], seen[0])


@pytest.mark.parametrize("kind", TABLES)
def test_a_step_adds_the_gradients_of_a_perturbed_pass(kind: str, tiny_bert: Path, tmp_path: Path) -> None:
    trainer = make_encoder_trainer(kind, tiny_bert, tmp_path, [f"training.adversarial={EPSILON}"])
    assert table_names(trainer.model) == TABLES[kind]
    reference = deepcopy(trainer.model).train()
    packed = trainer.batches[0]
    torch.manual_seed(5)
    expected = literal_gradients(reference, packed.to(torch.device("cpu")), EPSILON)
    before = {name: parameter.clone() for name, parameter in trainer.model.named_parameters()}
    torch.manual_seed(5)
    received: dict[str, Tensor] = {}

    def record() -> None:
        received.update((name, p.grad.clone()) for name, p in trainer.model.named_parameters() if p.grad is not None)

    trainer.steps.wrapped_optimizer.step = record
    trainer.steps.wrapped_model.train()
    trainer.step(0, packed)
    assert received
    for name, gradient in received.items():
        torch.testing.assert_close(gradient, expected[name], atol=1e-5, rtol=1e-4, msg=name)
    for name, parameter in trainer.model.named_parameters():
        assert torch.equal(parameter, before[name]), name


def test_epsilon_scales_the_perturbation(tmp_path: Path) -> None:
    plain = gradients(make_trainer(tmp_path, overrides=("training.clip=1e9",)), [[0, 1, 2]])
    small, large = (
        gradients(make_trainer(tmp_path, overrides=("training.clip=1e9", f"training.adversarial={epsilon}")), [[0, 1, 2]])
        for epsilon in (1e-6, 1.0)
    )
    for name, gradient in plain.items():
        torch.testing.assert_close(small[name], 2 * gradient, atol=1e-4, rtol=1e-2, msg=name)
    assert any((large[name] - small[name]).abs().max() > 0.01 for name in plain)


@pytest.mark.parametrize("recipe", ["seqner", "spanner"])
def test_accumulated_batches_equal_one_larger_batch(tmp_path: Path, recipe: str) -> None:
    joined = make_trainer(tmp_path, recipe, ("training.accumulate=3", f"training.adversarial={EPSILON}"))
    order = sorted(range(60), key=lambda n: len(joined.corpus["train"][n].words))
    parts = [order[:1], order[50:57], order[20:23]]
    several = gradients(joined, parts)
    one = gradients(make_trainer(tmp_path, recipe, (f"training.adversarial={EPSILON}",)), [[n for part in parts for n in part]])
    for name in one:
        torch.testing.assert_close(several[name], one[name], atol=1e-6, rtol=1e-4, msg=name)


@pytest.mark.parametrize("in_place", [False, True])
def test_tables_are_restored_after_an_error(in_place: bool) -> None:
    table, unused = (torch.randn(50, 3, requires_grad=True) for _ in range(2))
    table.grad = torch.randn(50, 3)
    before, address = table.detach().clone(), table.data_ptr()

    def fail() -> None:
        with perturb([table, unused], 1e6, in_place=in_place):
            assert (table.data_ptr() == address) == in_place  # graphs recorded before read this address
            assert not torch.equal(table, before)
            raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011
        fail()
    assert torch.equal(table, before)
    assert table.data_ptr() == address


@pytest.mark.parametrize("in_place", [False, True])
def test_a_table_moves_along_its_normalised_gradient(in_place: bool) -> None:
    table, gradient = torch.randn(50, 3, requires_grad=True), torch.randn(50, 3)
    table.grad = gradient.clone()
    expected = table.detach() + EPSILON * torch.nn.functional.normalize(gradient.flatten(), dim=0).view(50, 3)
    with perturb([table], EPSILON, in_place=in_place):
        torch.testing.assert_close(table.detach(), expected)
        (table * 2).sum().backward()  # a second pass adds its gradient
    torch.testing.assert_close(table.grad, gradient + 2)


def test_a_zero_gradient_moves_nothing() -> None:
    table = torch.randn(5, 3, requires_grad=True)
    table.grad = torch.zeros(5, 3)
    before = table.detach().clone()
    with perturb([table], 1.0):
        assert torch.equal(table, before)


def test_frozen_embeddings_are_refused(tiny_bert: Path, tmp_path: Path) -> None:
    overrides = ["training.adversarial=1", "encoder.frozen_embeddings=true"]
    with pytest.raises(SpanwiseError, match="all of them are frozen"):
        make_encoder_trainer("transformer", tiny_bert, tmp_path, overrides)
