"""Settings that follow from the data, and the recipe of a training without options."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tiny import STATIC, corpus, fit

from spanwise.config.settings import MAX_EPOCHS, MIN_DEV_ENTITIES, MIN_EPOCHS, TRAINING_STEPS, TrainingSettings
from spanwise.evaluation.tasks import EntityTask
from spanwise.models.model import Model
from spanwise.recipes.resolve import resolve_config

SIZES = (1, 20, 100, 500, 922, 5_400, 15_000, 100_000)


def test_small_corpora_get_more_epochs_and_about_as_many_steps() -> None:
    rows = [TrainingSettings().resolve(size) for size in SIZES]
    epochs = [row.epochs or 0 for row in rows]
    assert epochs == sorted(epochs, reverse=True)
    assert (epochs[0], epochs[-1]) == (MAX_EPOCHS, MIN_EPOCHS)
    for size, row in zip(SIZES, rows, strict=True):
        assert row.epochs
        assert row.batch_size
        assert row.patience
        steps = row.epochs * size / row.batch_size
        assert row.epochs in (MIN_EPOCHS, MAX_EPOCHS) or steps == pytest.approx(TRAINING_STEPS, rel=0.05)
        assert 5 <= row.patience <= row.epochs


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, (9, 29, 17, "best")),
        ({"epochs": 7}, (9, 7, None, "best")),
        ({"epochs": 7, "patience": 2}, (9, 7, 2, "best")),
        ({"patience": 2}, (9, 29, 2, "best")),
        ({"batch_size": 64}, (64, 29, 17, "best")),
        ({"selection": "last"}, (9, 29, None, "last")),
    ],
)
def test_given_settings_are_used_as_they_are(given: dict[str, Any], expected: tuple[Any, ...]) -> None:
    settings = TrainingSettings.model_validate(given).resolve(922)
    assert (settings.batch_size, settings.epochs, settings.patience, settings.selection) == expected


@pytest.mark.parametrize(
    ("given", "selection"),
    [({}, "last"), ({"epochs": 7}, "best"), ({"patience": 3}, "best"), ({"selection": "best"}, "best"), ({"seed": 2}, "last")],
)
def test_the_last_epoch_is_kept_if_dev_is_tiny_and_epochs_are_automatic(given: dict[str, Any], selection: str) -> None:
    settings = TrainingSettings.model_validate(given).resolve(100, dev_entities=MIN_DEV_ENTITIES - 1)
    assert settings.selection == selection
    assert (settings.patience is None) == (selection == "last" or "epochs" in given)


def test_the_last_epoch_is_kept_on_request(tmp_path: Path) -> None:
    lines: list[str] = []
    run = fit(tmp_path / "run", epochs=3, overrides=["training.selection=last"], head_rate=0.0, log=lines.append)
    assert json.loads((run.folder / "run.json").read_text())["best_epoch"] == 3
    assert any("keeping the last epoch" in line for line in lines)
    assert not any("(best)" in line for line in lines)


def test_patience_counts_from_the_best_epoch_if_the_last_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = iter([0.8, 0.6, 0.7, 0.6, 0.7])
    monkeypatch.setattr(EntityTask, "selection_score", lambda self, dev: next(scores))
    run = fit(tmp_path / "run", epochs=5, overrides=["training.selection=last", "training.patience=3"])
    assert json.loads((run.folder / "run.json").read_text())["best_epoch"] == 4


def test_a_training_without_options_uses_the_recipe_spanwise() -> None:
    model = Model.build(resolve_config(encoder="static", overrides=STATIC), corpus())
    assert (model.config.recipe, model.config.head["kind"]) == ("spanwise", "grid")
    training = model.config.training
    assert (training.epochs, training.batch_size, training.selection) == (100, 8, "last")


def test_the_line_before_training_has_epochs_batches_and_patience(tmp_path: Path) -> None:
    lines: list[str] = []
    fit(tmp_path / "run", epochs=None, overrides=["training.patience=1"], head_rate=0.0, log=lines.append)
    (plan,) = (line for line in lines if line.startswith("training "))
    assert ": 100 epochs, 800 steps in batches of 8, patience 1, " in plan
    assert sum(line.startswith("epoch ") for line in lines) == 2
