"""Training in memory."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tiny import STATIC, corpus
from tiny import fit as train_run

from spanwise.recipes.catalog import configure
from spanwise.training.fit import fit
from spanwise.training.loop import Trainer

SETTINGS = {"epochs": 2, "batch_size": 8, "head_rate": 0.03, "selection": "last"}


def test_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with checkpoints between epochs, which would replace those of others in the folder of temporary files."""
    monkeypatch.setattr("spanwise.training.fit.gettempdir", lambda: str(tmp_path))
    config = configure("seqner", encoder="static", settings={**SETTINGS, "checkpoint_steps": 1}, overrides=STATIC)
    fit(corpus(60), config, device="cpu")
    assert not list(tmp_path.iterdir())


def test_the_weights_are_those_of_the_last_epoch_of_a_run(tmp_path: Path) -> None:
    config = configure("seqner", encoder="static", settings=SETTINGS, overrides=STATIC)
    model = fit(corpus(60), config, device="cpu")
    run = train_run(tmp_path / "run", epochs=2, selection="last")
    for name, weights in run.model.state_dict().items():
        torch.testing.assert_close(model.state_dict()[name], weights, rtol=0, atol=0, msg=name)


def test_deterministic_algorithms_are_used_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[bool] = []
    monkeypatch.setattr(Trainer, "make_all_steps", lambda self: used.append(torch.are_deterministic_algorithms_enabled()))
    for is_requested in (False, True):
        settings = {**SETTINGS, "deterministic": is_requested}
        fit(corpus(8), configure("seqner", encoder="static", settings=settings, overrides=STATIC), device="cpu")
    assert used == [False, True]
    assert not torch.are_deterministic_algorithms_enabled()
