"""Deterministic training: no algorithms without a fixed order, and no CUDA graphs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from interruptions import Interrupted, interrupt
from tiny import STATIC, corpus, digest, fit, model

import spanwise
from spanwise import SpanwiseError
from spanwise.batching.batches import TrainingBatches
from spanwise.cli import main
from spanwise.training.acceleration import enable_cuda_graphs
from spanwise.training.deterministic import deterministic_algorithms
from spanwise.training.steps import TrainingSteps


def test_the_option_is_a_setting_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    data = tmp_path / "data"
    data.mkdir()
    for split, sentences in corpus().splits.items():
        spanwise.write(sentences, data / f"{split}.jsonl")
    during: list[bool] = []
    make = TrainingSteps.make

    def watched(self: TrainingSteps, *arguments: Any, **options: Any) -> Any:
        during.append(torch.are_deterministic_algorithms_enabled())
        return make(self, *arguments, **options)

    monkeypatch.setattr(TrainingSteps, "make", watched)
    fixed = [word for setting in STATIC for word in ("--set", setting)]
    words = ["train", str(data), "--out", str(tmp_path / "run"), "--recipe", "seqner", "--encoder", "static", *fixed]
    with pytest.raises(SystemExit) as caught:
        main([*words, "--epochs", "1", "--device", "cpu", "--deterministic"])
    assert not caught.value.code
    assert yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["training"]["deterministic"] is True
    assert during
    assert all(during)
    assert not torch.are_deterministic_algorithms_enabled()


def test_a_resumed_run_stays_deterministic(tmp_path: Path) -> None:
    options: dict[str, Any] = {"epochs": 2, "checkpoint_steps": 2}
    fit(tmp_path / "whole", deterministic=True, **options)
    with pytest.MonkeyPatch.context() as patch:
        interrupt(patch, TrainingSteps, "_backward", 5)
        with pytest.raises(Interrupted):
            fit(tmp_path / "parts", deterministic=True, **options)
    assert not torch.are_deterministic_algorithms_enabled()
    record = json.loads((tmp_path / "parts" / "resume.json").read_text())
    assert record["config"]["training"]["deterministic"] is True
    fit(tmp_path / "parts", resume=True, **options)
    assert digest(tmp_path / "parts") == digest(tmp_path / "whole")


def test_an_operation_without_a_fixed_order_is_an_error_of_one_line() -> None:
    problem = "cumsum_cuda_kernel does not have a deterministic implementation, but you set 'torch.use_deterministic_algorithms"
    expected = "uses cumsum_cuda_kernel, which has no deterministic algorithm"
    with pytest.raises(SpanwiseError, match=expected), deterministic_algorithms():
        raise RuntimeError(problem)
    with pytest.raises(RuntimeError, match="shape"), deterministic_algorithms():
        raise RuntimeError("shape mismatch")
    assert not torch.are_deterministic_algorithms_enabled()


def test_nothing_is_recorded(tiny_bert: Path) -> None:
    built, train = model(tiny_bert, "global-pointer"), corpus()["train"]
    batches = TrainingBatches(
        built.encoder, built.head, train, built.encoder.prepare(train), epochs=3, batch_size=4, budget=None, seed=1
    )
    with deterministic_algorithms():
        assert not batches.fix_shapes()
        enable_cuda_graphs(built)
        assert getattr(built.encoder, "graphs", None) is None
    assert batches.fix_shapes()
    enable_cuda_graphs(built)
    assert getattr(built.encoder, "graphs", None) is not None
