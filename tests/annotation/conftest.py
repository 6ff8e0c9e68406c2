"""Fixtures for the tests of annotation."""

from __future__ import annotations

from pathlib import Path

import pytest
from annotating import KeywordPredictor, model_folder


@pytest.fixture
def keywords(monkeypatch: pytest.MonkeyPatch) -> KeywordPredictor:
    """The predictor that every model folder of the test loads."""
    predictor = KeywordPredictor()
    monkeypatch.setattr("spanwise.annotation.engine.load", lambda model, device, maps_weights: predictor)
    return predictor


@pytest.fixture
def model(tmp_path: Path, keywords: KeywordPredictor) -> Path:
    return model_folder(tmp_path / "model")
