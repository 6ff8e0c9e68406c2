"""The decision whether training uses kernels, and the comparison of kernels with PyTorch."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from steps import make_trainer
from torch import Tensor

from spanwise.core.errors import SpanwiseError, SpanwiseWarning
from spanwise.runtime import column_sums, kernel_choice
from spanwise.runtime.kernel_choice import MIN_STEPS, SWITCH, example_values, kernels_agree, plan_steps, uses_kernels

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SWITCH, raising=False)
    monkeypatch.setattr(kernel_choice, "_reported", set())
    monkeypatch.setattr(kernel_choice, "_planned_steps", None)


@pytest.mark.parametrize("steps", [None, MIN_STEPS - 1, MIN_STEPS])
@pytest.mark.parametrize(("value", "switched"), [(None, None), ("", None), ("0", False), ("1", True)])
def test_long_trainings_use_kernels_unless_switched(
    monkeypatch: pytest.MonkeyPatch, value: str | None, switched: bool | None, steps: int | None
) -> None:
    if value is not None:
        monkeypatch.setenv(SWITCH, value)
    plan_steps(steps)
    assert uses_kernels() is (steps != MIN_STEPS - 1 if switched is None else switched)


def square(values: Tensor, factors: Tensor) -> Tensor:
    return factors * values.square()


def inputs() -> list[Tensor]:
    return [example_values(4, 3, device=CPU, seed=seed) for seed in (1, 2)]


def test_equal_results_and_gradients_agree_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert kernels_agree("square", square, square, inputs())
        assert kernels_agree("square", lambda *rows: square(*rows) * 1.001, square, inputs())
        half = [tensor.bfloat16() for tensor in inputs()]
        assert kernels_agree("square", square, square, half)
        assert kernels_agree("sum", lambda row, _: row.detach().sum(0), lambda row, _: row.detach().sum(0), inputs())


class WrongGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, values: Tensor) -> Tensor:
        return values.clone()

    @staticmethod
    def backward(ctx: object, gradient: Tensor) -> Tensor:
        return 1.1 * gradient


def fail(values: Tensor, factors: Tensor) -> Tensor:
    raise RuntimeError("no C compiler\nwas found")


@pytest.mark.parametrize(
    ("kernels", "reason"),
    [
        (lambda values, factors: 1.1 * square(values, factors), "results differ from PyTorch by 0.1 of the largest value"),
        (lambda values, factors: square(WrongGradient.apply(values), factors), "results differ from PyTorch by 0.1 "),
        (lambda values, factors: square(values / 0, factors), "results differ from PyTorch by inf "),
        (lambda values, factors: square(values, factors)[:2], "RuntimeError: "),
        (lambda values, factors: values.square(), "RuntimeError: "),  # no gradient of the factors
        (fail, "RuntimeError: no C compiler; SPANWISE_KERNELS=0 trains without kernels and without this warning$"),
    ],
)
def test_errors_and_differences_are_reported(kernels: Callable[..., Tensor], reason: str) -> None:
    with pytest.warns(SpanwiseWarning, match=f"^training without the square kernels, which is slower: {reason}"):
        assert not kernels_agree("square", kernels, square, inputs())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not kernels_agree("other", kernels, square, inputs())  # a reason is reported once


def test_missing_triton_is_reported_once_for_all_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)
    for kernels in ("spanwise.runtime.sum_kernels", "spanwise.runtime.shared_kernels"):
        monkeypatch.delitem(sys.modules, kernels, raising=False)
    works = column_sums._works.__wrapped__
    with pytest.warns(SpanwiseWarning, match=r"^training without the Triton kernels, .*: Triton is not installed; "):
        assert not works(CPU, torch.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not works(CPU, torch.bfloat16)


def test_of_several_processes_the_first_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not kernels_agree("square", fail, square, inputs())


def test_other_values_of_the_switch_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "off")
    with pytest.raises(SpanwiseError, match=r"^environment variable SPANWISE_KERNELS=off: expected 0 .* or 1 "):
        plan_steps(5000)


def test_random_numbers_of_the_training_stay_the_same() -> None:
    state = torch.get_rng_state()
    assert kernels_agree("square", lambda *rows: square(*rows) + 0 * torch.rand(1), square, inputs())
    assert torch.equal(torch.get_rng_state(), state)


def test_trainer_plans_its_steps(tmp_path: Path) -> None:
    steps = len(make_trainer(tmp_path, overrides=("training.epochs=3",)).batches)
    assert 0 < steps < MIN_STEPS
    assert kernel_choice._planned_steps == steps
    assert not uses_kernels()
