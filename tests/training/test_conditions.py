"""What equal weights depend on is recorded, and a resume under other conditions says so."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

import pytest
import torch
from interruptions import Interrupted, interrupt
from tiny import fit

from spanwise.training.steps import TrainingSteps


@pytest.fixture
def unfinished(tmp_path: Path) -> Path:
    """A training that was interrupted after its first checkpoint."""
    with pytest.MonkeyPatch.context() as patch:
        interrupt(patch, TrainingSteps, "_backward", 4)
        with pytest.raises(Interrupted):
            fit(tmp_path / "run", epochs=1, checkpoint_steps=2)
    return tmp_path / "run"


def test_threads_versions_and_device_are_recorded(unfinished: Path) -> None:
    conditions = json.loads((unfinished / "resume.json").read_text())["conditions"]
    packages = {name: version(name) for name in ("torch", "numpy", "tokenizers", "transformers")}
    expected = {"threads": torch.get_num_threads(), "processes": 1, "device": "cpu"}
    assert conditions.items() >= (packages | expected).items()
    assert conditions["cpu"] == torch.backends.cpu.get_cpu_capability()
    fit(unfinished, epochs=1, checkpoint_steps=2, resume=True)
    report = json.loads((unfinished / "run.json").read_text())
    assert report["conditions"] == conditions
    assert not any("other conditions" in note for note in report["notes"])


def test_a_resume_under_other_conditions_says_so(unfinished: Path) -> None:
    record = json.loads((unfinished / "resume.json").read_text())
    now = record["conditions"]["torch"]
    record["conditions"] |= {"torch": "1.0", "threads": 64}
    (unfinished / "resume.json").write_text(json.dumps(record))
    lines: list[str] = []
    fit(unfinished, epochs=1, checkpoint_steps=2, resume=True, log=lines.append)
    note = (
        f"resumed under other conditions (threads: 64, now {torch.get_num_threads()}; torch: 1.0, now {now}); "
        "the weights may differ from those of an uninterrupted run"
    )
    assert f"note: {note}" in lines
    assert note in json.loads((unfinished / "run.json").read_text())["notes"]


def test_a_resume_under_the_same_conditions_prints_no_note(unfinished: Path) -> None:
    lines: list[str] = []
    fit(unfinished, epochs=1, checkpoint_steps=2, resume=True, log=lines.append)
    assert not any("conditions" in line for line in lines)
