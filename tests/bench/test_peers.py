"""``bench/peers.py`` and its workers, with invented peers that need no library and are quick."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import peers
import pytest
from peers import Contender, Field, Library, LostError

from spanwise.core.types import Entity, Sentence

# Learns the words of the entities by heart, in as many epochs as it is let, and prints what no driver should see.
BY_HEART = """
from job import written

class Peer:
    version = "by heart 1"

    def __init__(self, job, train):
        self.train_examples, self.known, self.epochs = train, {}, 0

    def train(self, epochs, goes_on):
        for _ in range(epochs):
            print("epoch", flush=True)
            self.known |= {one.words[start]: type for one in self.train_examples for type, start, _ in one.entities}
            self.epochs += 1
            if not goes_on():
                return

    def predict(self, sentences):
        return [
            written((self.known[word], n, n + 1) for n, word in enumerate(words) if word in self.known) for words in sentences
        ]
"""
FAILS_AT_PREDICTION = BY_HEART.replace("    def predict(self, sentences):", "    def predict(self, sentences):\n        1 / 0")
TRAIN = [Sentence("a", ("Oslo", "rains"), (Entity("Place", ((0, 1),)),)), Sentence("b", ("no", "one"))]
TEST = [
    Sentence("c", ("Oslo", "and", "Bergen"), (Entity("Place", ((0, 1),)), Entity("Place", ((2, 3),)))),
    Sentence("d", ("rains", "Oslo"), (Entity("Place", ((1, 2),)),)),
]


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    (tmp_path / "by_heart.py").write_text(BY_HEART)
    (tmp_path / "fails_late.py").write_text(FAILS_AT_PREDICTION)
    (tmp_path / "no_library.py").write_text("import a_library_that_nobody_has")
    (tmp_path / "old_library.py").write_text("from json import what_is_not_there")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return {
        "encoder": "", "train": peers.write(tmp_path / "train.jsonl", TRAIN), "test": peers.write(tmp_path / "test.jsonl", TEST),
        "types": ["Place"], "width": 3, "batch_size": 2, "predict_batch": 2, "rate": 0.1, "seed": 1, "clock": "wall",
        "epochs": 5, "options": {},
    }  # fmt: skip


@pytest.fixture
def start(job: dict[str, Any], tmp_path: Path) -> Iterator[Any]:
    started: list[Contender] = []

    def begin(module: str, **changes: Any) -> Contender:
        library = Library(module, nests=True)
        started.append(Contender(library, sys.executable, job | changes, 1, tmp_path / f"{module}.log"))
        return started[-1]

    yield begin
    for contender in started:
        contender.close()


def test_a_worker_answers_every_command(start: Any) -> None:
    contender = start("by_heart")
    assert contender.version == "by heart 1"
    assert contender.ask({"do": "predict", "from": 0, "to": 2})["entities"] == 0, "nothing is learned yet"
    for _ in range(3):
        assert contender.ask({"do": "train"}).keys() == {"seconds"}
    assert contender.ask({"do": "predict", "from": 0, "to": 2})["entities"] == 2
    assert contender.ask({"do": "predict", "from": 1, "to": 2})["entities"] == 1
    found = contender.ask({"do": "fit", "epochs": 1})["found"]
    assert found == [[{"type": "Place", "spans": [[0, 1]]}], [{"type": "Place", "spans": [[1, 2]]}]]
    contender.close()
    assert contender.process.returncode == 0
    assert contender.log.read_text() == "epoch\n" * 4, "three epochs of the first model and one of the second"


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("no_library", "not installed: No module named 'a_library_that_nobody_has'"),
        ("old_library", "does not run: ImportError: cannot import name 'what_is_not_there'"),
    ],
)
def test_a_peer_that_cannot_be_loaded_says_why(start: Any, module: str, said: str) -> None:
    with pytest.raises(LostError, match=said):
        start(module)


def test_training_that_ends_too_early_is_no_time(start: Any) -> None:
    contender = start("by_heart", epochs=2)
    contender.ask({"do": "train"})
    contender.ask({"do": "train"})
    with pytest.raises(LostError, match="training ended before it was told to"):
        contender.ask({"do": "train"})


def test_contenders_take_turns_and_one_that_fails_leaves(start: Any, capsys: pytest.CaptureFixture[str]) -> None:
    field = Field("by_heart")
    field.contenders = {name: start(name) for name in ("by_heart", "fails_late")}
    result = peers.measured(field, len(TRAIN), TEST, argparse.Namespace(blocks=3, slice=1, epochs=2))
    assert list(result["training"]) == ["by_heart", "fails_late"]
    assert list(result["prediction"]) == ["by_heart"]
    assert result["training"]["by_heart"]["ratio"] == 1
    assert result["f1"] == {"by_heart": pytest.approx(0.8)}, "two of three, both right"
    assert field.lost == {"fails_late": "does not run: ZeroDivisionError: division by zero"}
    assert "fails_late" in capsys.readouterr().out


def test_without_the_reference_nothing_is_measured(start: Any) -> None:
    field = Field("fails_late")
    field.contenders = {"fails_late": start("fails_late")}
    with pytest.raises(SystemExit, match="without fails_late"):
        field.ask("fails_late", {"do": "predict", "from": 0, "to": 1})


def test_ratios_are_of_throughput_turn_by_turn() -> None:
    times = {"ours": [1.0, 2.0, 3.0], "theirs": [2.0, 8.0, 3.0]}  # quotients 1/2, 1/4 and 1
    row = peers.compared(times, "ours", 10)["theirs"]
    assert (row["ratio"], row["low"], row["high"]) == (0.5, 0.25, 1.0)
    assert row["per_second"] == 10 / 3


def test_the_flat_view_keeps_the_outermost() -> None:
    spans = [("Org", (0, 3)), ("Place", (0, 1)), ("Org", (4, 6)), ("Place", (5, 7))]
    sentence = Sentence("s", tuple("abcdefgh"), (*(Entity(t, (s,)) for t, s in spans), Entity("Org", ((0, 1), (7, 8)))))
    flat = peers.flat(peers.contiguous(sentence))
    assert [(e.type, tuple(e.fragments[0])) for e in flat.entities] == [("Org", (0, 3)), ("Org", (4, 6))]
