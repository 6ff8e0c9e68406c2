"""Settings that follow from the data, and the recipe of a training without options."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny import STATIC, corpus, fit

from spanwise.config.settings import MAX_EPOCHS, MIN_EPOCHS, TRAINING_STEPS, TrainingSettings
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
        ({}, (9, 29, 12)),
        ({"epochs": 7}, (9, 7, None)),
        ({"epochs": 7, "patience": 2}, (9, 7, 2)),
        ({"patience": 2}, (9, 29, 2)),
        ({"batch_size": 64}, (64, 29, 12)),
    ],
)
def test_given_settings_are_used_as_they_are(given: dict[str, int], expected: tuple[int | None, ...]) -> None:
    settings = TrainingSettings.model_validate(given).resolve(922)
    assert (settings.batch_size, settings.epochs, settings.patience) == expected


def test_a_training_without_options_uses_the_recipe_spanwise() -> None:
    model = Model.build(resolve_config(encoder="static", overrides=STATIC), corpus())
    assert (model.config.recipe, model.config.head["kind"]) == ("spanwise", "grid")
    assert (model.config.training.epochs, model.config.training.batch_size) == (100, 8)


def test_the_line_before_training_has_epochs_batches_and_patience(tmp_path: Path) -> None:
    lines: list[str] = []
    fit(tmp_path / "run", epochs=None, overrides=["training.patience=1"], head_rate=0.0, log=lines.append)
    (plan,) = (line for line in lines if line.startswith("training "))
    assert ": 100 epochs, 800 steps in batches of 8, patience 1, " in plan
    assert sum(line.startswith("epoch ") for line in lines) == 2
