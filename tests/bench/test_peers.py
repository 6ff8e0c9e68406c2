"""``bench/peers.py`` and its workers, with fake peers that need no library."""

import argparse
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import peer_environments
import peers
import pytest
from peer_contenders import WORKER, Contender, ContenderError, Field, Library

from spanwise.core.types import Entity, Sentence

# Memorises the words of the entities, and prints lines that must not reach the driver.
MEMORY = """
from job import to_records

class Peer:
    version = "memory 1"

    def __init__(self, job, train):
        self.train_examples, self.known, self.epochs = train, {}, 0

    def train(self, epochs, should_continue):
        for _ in range(epochs):
            print("epoch", flush=True)
            self.known |= {example.words[start]: type for example in self.train_examples for type, start, _ in example.entities}
            self.epochs += 1
            if not should_continue():
                return

    def predict(self, sentences):
        return [
            to_records((self.known[word], n, n + 1) for n, word in enumerate(words) if word in self.known) for words in sentences
        ]
"""
FAILS_AT_PREDICTION = MEMORY.replace("    def predict(self, sentences):", "    def predict(self, sentences):\n        1 / 0")
TRAIN = [Sentence("a", ("Oslo", "rains"), (Entity("Place", ((0, 1),)),)), Sentence("b", ("no", "one"))]
TEST = [
    Sentence("c", ("Oslo", "and", "Bergen"), (Entity("Place", ((0, 1),)), Entity("Place", ((2, 3),)))),
    Sentence("d", ("rains", "Oslo"), (Entity("Place", ((1, 2),)),)),
]


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    (tmp_path / "memory.py").write_text(MEMORY)
    (tmp_path / "fails_late.py").write_text(FAILS_AT_PREDICTION)
    (tmp_path / "no_library.py").write_text("import a_missing_library")
    (tmp_path / "old_library.py").write_text("from json import missing_name")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return {
        "encoder": "", "train": peers.write(tmp_path / "train.jsonl", TRAIN), "test": peers.write(tmp_path / "test.jsonl", TEST),
        "types": ["Place"], "width": 3, "batch_size": 2, "predict_batch": 2, "rate": 0.1, "seed": 1, "clock": "wall",
        "epochs": 5, "options": {},
    }  # fmt: skip


@pytest.fixture
def start(job: dict[str, Any], tmp_path: Path) -> Iterator[Any]:
    started: list[Contender] = []

    def start_contender(module: str, **changes: Any) -> Contender:
        library = Library(module, nests=True)
        started.append(Contender(library, sys.executable, job | changes, 1, tmp_path / f"{module}.log"))
        return started[-1]

    yield start_contender
    for contender in started:
        contender.close()


def test_a_worker_responds_to_every_command(start: Any) -> None:
    contender = start("memory")
    assert contender.version == "memory 1"
    assert contender.ask({"do": "predict", "from": 0, "to": 2})["entities"] == 0, "not trained yet"
    for _ in range(3):
        assert contender.ask({"do": "train"}).keys() == {"seconds"}
    assert contender.ask({"do": "predict", "from": 0, "to": 2})["entities"] == 2
    assert contender.ask({"do": "predict", "from": 1, "to": 2})["entities"] == 1
    predictions = contender.ask({"do": "fit", "epochs": 1})["predictions"]
    assert predictions == [[{"type": "Place", "spans": [[0, 1]]}], [{"type": "Place", "spans": [[1, 2]]}]]
    contender.close()
    assert contender.process.returncode == 0
    assert contender.log.read_text() == "epoch\n" * 4, "three epochs of the first model and one of the second"


@pytest.mark.parametrize(
    ("module", "message"),
    [
        ("no_library", "not installed: No module named 'a_missing_library'"),
        ("old_library", "does not run: ImportError: cannot import name 'missing_name'"),
    ],
)
def test_the_reason_for_a_failed_peer_is_reported(start: Any, module: str, message: str) -> None:
    with pytest.raises(ContenderError, match=message):
        start(module)


def test_training_that_ends_too_early_is_an_error(start: Any) -> None:
    contender = start("memory", epochs=2)
    contender.ask({"do": "train"})
    contender.ask({"do": "train"})
    with pytest.raises(ContenderError, match="training ended too early"):
        contender.ask({"do": "train"})


def test_contenders_take_turns_and_failed_ones_are_removed(start: Any, capsys: pytest.CaptureFixture[str]) -> None:
    field = Field("memory")
    field.contenders = {name: start(name) for name in ("memory", "fails_late")}
    result = peers.measured(field, len(TRAIN), TEST, argparse.Namespace(blocks=3, training_blocks=None, slice=1, epochs=2))
    assert list(result["training"]) == ["memory", "fails_late"]
    assert list(result["prediction"]) == ["memory"]
    assert result["training"]["memory"]["ratio"] == 1
    assert result["f1"] == {"memory": pytest.approx(0.8)}, "two of three, both correct"
    assert result["memory"]["memory"] > 1
    assert field.lost == {"fails_late": "does not run: ZeroDivisionError: division by zero"}
    assert "fails_late" in capsys.readouterr().out


def test_a_failed_reference_stops_the_comparison(start: Any) -> None:
    field = Field("fails_late")
    field.contenders = {"fails_late": start("fails_late")}
    with pytest.raises(SystemExit, match="the reference fails_late failed"):
        field.ask("fails_late", {"do": "predict", "from": 0, "to": 1})


def test_ratios_are_medians_over_turns() -> None:
    times = {"reference": [1.0, 2.0, 3.0], "other": [2.0, 8.0, 3.0]}  # quotients 1/2, 1/4 and 1
    row = peers.compared(times, "reference", 10)["other"]
    assert (row["ratio"], row["low"], row["high"]) == (0.5, 0.25, 1.0)
    assert row["per_second"] == 10 / 3


def test_flat_entities_are_the_outermost() -> None:
    spans = [("Org", (0, 3)), ("Place", (0, 1)), ("Org", (4, 6)), ("Place", (5, 7))]
    sentence = Sentence("s", tuple("abcdefgh"), (*(Entity(t, (s,)) for t, s in spans), Entity("Org", ((0, 1), (7, 8)))))
    flat = peers.flat(peers.contiguous(sentence))
    assert [(e.type, tuple(e.fragments[0])) for e in flat.entities] == [("Org", (0, 3)), ("Org", (4, 6))]


def test_the_table_is_sorted_by_f1() -> None:
    result = {
        "f1": {"a": 0.5, "b": 0.75}, "versions": {"a": "a 1", "b": "b 2"}, "memory": {"a": 10.4, "b": 2048.0},
        "seconds": {"a": {"training": 9.6, "prediction": 2.0}, "b": {"training": 100.0, "prediction": 0.5}},
    }  # fmt: skip
    assert peers.table(result, 8).splitlines()[2:] == [
        "| b (b 2) | 75.00 | 100 | 16 | 2048 |",
        "| a (a 1) | 50.00 | 10 | 4 | 10 |",
    ]


def test_each_library_has_its_own_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def run(command: list[Any], check: bool) -> None:
        commands.append([str(part) for part in command])
        (tmp_path / "flair").mkdir(exist_ok=True)
        if failing and "pip" in commands[-1]:
            raise subprocess.CalledProcessError(1, "pip")

    monkeypatch.setattr(peer_environments.subprocess, "run", run)
    library = peers.PEERS["flair"]
    arguments = argparse.Namespace(python=[], environments=tmp_path)
    failing = True
    with pytest.raises(ContenderError, match="could not be installed"):
        peers.python_of("flair", library, arguments)
    failing = False
    python = str(tmp_path / "flair" / "bin" / "python")
    commands.clear()
    assert [peers.python_of("flair", library, arguments) for _ in range(2)] == [python, python]
    assert [command[2] for command in commands] == ["venv", "pip"], "installed once, again after a failure"
    assert "transformers==4.57.6" in commands[1]
    assert peers.python_of("flair", library, argparse.Namespace(python=["flair=mine"], environments=tmp_path)) == "mine"
    assert peers.python_of("flair", library, argparse.Namespace(python=[], environments=None)) == sys.executable
    assert {library.environment for library in peers.PEERS.values()} == set(peer_environments.REQUIREMENTS)


def test_exports_are_separate_contenders() -> None:
    assert peers.spanwise_contenders(["spanner"], int8=False, dev=None)["spanner"].options == {"recipe": "spanner"}
    exported = peers.spanwise_contenders(["spanner"], int8=True, dev="dev.jsonl")
    assert list(exported) == ["spanner_int8"]
    assert exported["spanner_int8"].options == {"recipe": "spanner", "int8": True, "dev": "dev.jsonl"}


def test_the_reference_is_the_first_contender_or_the_given_one() -> None:
    assert peers.choose_reference(None, ["spanner", "spancat"]) == "spanner"
    assert peers.choose_reference("spancat", ["spanner", "spancat"]) == "spancat"
    with pytest.raises(SystemExit, match="--reference flair: expected one of spanner, spancat"):
        peers.choose_reference("flair", ["spanner", "spancat"])


def test_training_may_have_fewer_turns_than_prediction(start: Any) -> None:
    field = Field("memory")
    field.contenders = {"memory": start("memory", epochs=3)}  # more epochs would be an error
    arguments = argparse.Namespace(blocks=5, training_blocks=1, slice=1, epochs=None)
    assert list(peers.measured(field, len(TRAIN), TEST, arguments)["prediction"]) == ["memory"]


def test_spanwise_predicts_with_its_export(
    job: dict[str, Any], tiny_bert: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(WORKER.parent))
    from job import Job, read  # type: ignore[import-not-found]
    from spanwise_model import Peer  # type: ignore[import-not-found]

    options = {"recipe": "seqner", "int8": True, "dev": job["train"]}
    peer = Peer(Job(**job | {"encoder": str(tiny_bert), "options": options}), read(job["train"]))
    peer.train(1, lambda: True)
    peer.model = None  # so only the export can predict
    assert len(peer.predict([example.words for example in read(job["test"])])) == 2
    assert "quantization=QuantizationRecord" in capsys.readouterr().err
