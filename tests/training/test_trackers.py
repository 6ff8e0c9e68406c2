"""Trackers through Accelerate."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from tiny import corpus, fit

from spanwise import SpanwiseError
from spanwise.training.trackers import check_trackers


def test_an_unknown_tracker() -> None:
    with pytest.raises(SpanwiseError, match=r"unknown tracker 'tensorbord' \(did you mean 'tensorboard'\?\)"):
        check_trackers(["tensorbord"])


def test_a_tracker_that_is_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("accelerate.tracking.get_available_trackers", lambda: ["mlflow"])
    with pytest.raises(SpanwiseError, match="tracker 'tensorboard' is not installed; run pip install tensorboard"):
        fit(tmp_path / "run", trackers=["tensorboard"])
    assert not (tmp_path / "run").exists()
    check_trackers(["mlflow"])
    check_trackers([])


def test_settings_metrics_and_final_scores_are_logged(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from accelerate.tracking import LOGGER_TYPE_TO_CLASS, GeneralTracker
    from accelerate.utils import LoggerType

    calls: list[tuple[str, dict[str, Any], Any]] = []

    class Recorder(GeneralTracker):
        name = "tensorboard"
        requires_logging_directory = True
        tracker = None

        def __init__(self, run_name: str, logging_dir: str, **options: Any) -> None:
            super().__init__()
            calls.append(("start", {"run": run_name, "folder": str(logging_dir)}, None))

        def store_init_configuration(self, values: dict[str, Any]) -> None:
            calls.append(("settings", values, None))

        def log(self, values: dict[str, Any], step: int | None = None, **options: Any) -> None:
            calls.append(("log", values, step))

        def finish(self) -> None:
            calls.append(("end", {}, None))

    monkeypatch.setitem(LOGGER_TYPE_TO_CLASS, "tensorboard", Recorder)
    monkeypatch.setattr("accelerate.tracking.get_available_trackers", lambda: [LoggerType.TENSORBOARD])
    fit(tmp_path / "run", corpus(), epochs=2, trackers=["tensorboard"])
    kinds = [kind for kind, *_ in calls]
    assert kinds == ["start", "settings", "log", "log", "log", "end"]
    assert str(tmp_path / "run") in calls[0][1]["folder"]
    assert calls[1][1]["training.epochs"] == 2
    assert calls[1][1]["head.kind"] == "seqner"
    assert [step for kind, _, step in calls if kind == "log"] == [3, 6, None]
    assert {"loss", "dev.f1", "epoch"} <= calls[2][1].keys()
    assert calls[4][1].keys() == {"dev_f1", "test_f1"}


@pytest.mark.skipif(importlib.util.find_spec("tensorboard") is None, reason="tensorboard is not installed")
def test_tensorboard_writes_events(tmp_path: Path) -> None:
    fit(tmp_path / "run", corpus(), epochs=2, trackers=["tensorboard"])
    assert list((tmp_path / "run").rglob("events.out.tfevents*"))
