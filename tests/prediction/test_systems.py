"""Predictions of systems that are named on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny import model, sentences

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.decoding.thresholds import Threshold
from spanwise.formats import Ledger, write
from spanwise.prediction.load import load
from spanwise.prediction.systems import parse_systems, system_predictions


def predictions(path: Path, gold: Path, threshold: Threshold) -> list[Sentence]:
    (system,) = parse_systems([str(path)])
    options = {"format": None, "data_format": None, "ledger": Ledger(), "device": "cpu", "threshold": threshold}
    (predicted,) = system_predictions(system, sentences(20), gold, "test", **options)  # type: ignore[arg-type]
    return predicted


@pytest.mark.parametrize(
    ("threshold", "known"),
    [(0.0, 0.0), (0.05, 0.05), (0.9, 0.9), ({"Drug": 0.1, "Food": 0.3}, {"Drug": 0.1}), ({"Food": 0.3}, 0.0)],
)
def test_a_threshold_may_be_lower_than_that_of_a_model(tmp_path: Path, threshold: Threshold, known: Threshold) -> None:
    model("static", "global-pointer", seed=3).save(tmp_path / "run")
    write(sentences(20), tmp_path / "gold.jsonl")
    expected = load(tmp_path / "run", "cpu").predict(sentences(20), threshold=known)
    assert predictions(tmp_path / "run", tmp_path / "gold.jsonl", threshold) == expected
    # Predictions in a file can only be dropped.
    write(load(tmp_path / "run", "cpu").predict(sentences(20)), tmp_path / "predicted.jsonl")
    rest = predictions(tmp_path / "predicted.jsonl", tmp_path / "gold.jsonl", 0.9)
    assert all((entity.score or 0) >= 0.9 for sentence in rest for entity in sentence.entities)


def test_the_first_of_several_repeated_names_is_reported(tmp_path: Path) -> None:
    names = ["once", *"hgfedcba", *"abcdefgh"]
    with pytest.raises(SpanwiseError, match="two systems are named 'h'"):
        parse_systems([f"{name}={tmp_path}" for name in names])
