"""A training that is interrupted: what its folder is good for, and how it goes on. And folders that a training may not have."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from running import Result, Runner
from tiny import STATIC, corpus, digest

from spanwise import Entity
from spanwise.formats import write
from spanwise.training.loop import Trainer
from spanwise.types import Corpus

RATE = ("--set", "training.head_rate=0.03")
OPTIONS = ("--recipe", "seqner", "--encoder", "static", "--epochs", "2", "--batch-size", "8", *RATE,
           *(word for setting in STATIC for word in ("--set", setting)))  # fmt: skip
EPOCH = 3  # steps


def saved(data: Corpus, folder: Path) -> Path:
    folder.mkdir()
    for split, sentences in data.splits.items():
        write(sentences, folder / f"{split}.jsonl")
    return folder


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return saved(corpus(), tmp_path / "data")


@contextmanager
def interrupted(step: int) -> Iterator[None]:
    """As if somebody pressed Ctrl-C in a step, counted from 1."""
    backward, calls = Trainer._backward, []

    def failing(self: Trainer, packed: Any) -> Any:
        calls.append(1)
        if len(calls) == step:
            raise KeyboardInterrupt
        return backward(self, packed)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "_backward", failing)
        yield


@pytest.fixture
def train(run: Runner, data: Path, tmp_path: Path) -> Runner:
    def call(out: str, *words: object, data: Path = data) -> Result:
        return run("train", data, "--out", tmp_path / out, "--device", "cpu", *words)

    return call


def test_weights_are_there_when_an_epoch_has_been_scored(train: Runner, run: Runner, data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with interrupted(EPOCH):
        result = train("run", *OPTIONS, "--set", "training.checkpoint_steps=1")
    assert (result.code, result.err) == (130, "spanwise: interrupted; the same command with --resume goes on with it\n")
    assert not (folder / "model.safetensors").exists()
    for command in (("predict", folder, data / "dev.jsonl"), ("evaluate", folder, data), ("describe", folder)):
        result = run(*command)
        assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
        assert result.err.startswith(f"{folder}: no trained model here yet: its training has not finished an epoch; go on with")
    assert train("run", "--resume").code == 0
    train("whole", *OPTIONS, "--set", "training.checkpoint_steps=1")
    assert digest(folder) == digest(tmp_path / "whole")
    (folder / "model.safetensors").unlink()  # of a finished training
    assert run("describe", folder).err == f"{folder}: no trained model here (model.safetensors missing)\n"


def test_whoever_uses_an_unfinished_training_is_told(train: Runner, run: Runner, data: Path, tmp_path: Path) -> None:
    folder, note = tmp_path / "run", f"note: {tmp_path / 'run'}: its training is unfinished; this is the best epoch so far\n"
    with interrupted(EPOCH + 1):
        train("run", *OPTIONS)
    commands = (("predict", folder, data / "dev.jsonl"), ("evaluate", folder, data))
    for command in commands:
        result = run(*command, "--device", "cpu")
        assert (result.code, result.err) == (0, note)
    assert run("export", folder, "--out", tmp_path / "exported").code == 0
    assert run("evaluate", tmp_path / "exported", data, "--device", "cpu").err == ""
    train("run", "--resume")
    assert [run(*command, "--device", "cpu").err for command in commands] == ["", ""]


@pytest.mark.parametrize("step", [1, EPOCH + 2])  # before the first checkpoint and behind it
def test_a_training_goes_on_with_its_own_settings(train: Runner, tmp_path: Path, step: int) -> None:
    train("whole", *OPTIONS, "--seed", 4)
    with interrupted(step):
        train("run", *OPTIONS, "--seed", 4)
    for words, names in (
        (("--epochs", 3), "training.epochs"), (("--set", "encoder.hidden=8"), "encoder.hidden"),
        (("--recipe", "seqner", "--seed", 5), "training.seed"),
    ):  # fmt: skip
        result = train("run", *words, "--resume")
        complaint = f"{tmp_path / 'run'}: cannot resume with other settings than it began with: {names}\n"
        assert (result.code, result.err) == (2, complaint)
    assert "began with: head.kind, " in train("run", *OPTIONS, "--recipe", "spanner", "--resume").err
    assert "began with: encoder." in train("run", "--encoder", "minilm", "--resume").err
    result = train("run", "--encoder", "static", "--epochs", 2, "--resume")
    assert (result.code, result.err) == (0, "")
    assert digest(tmp_path / "run") == digest(tmp_path / "whole")
    asked = [json.loads((tmp_path / name / "run.json").read_text())["asked"] for name in ("run", "whole")]
    assert asked[0] == asked[1]
    assert {path.name for path in (tmp_path / "run").iterdir()} == {path.name for path in (tmp_path / "whole").iterdir()}


def test_what_a_training_started_from_is_not_forgotten(train: Runner, tmp_path: Path) -> None:
    train("first", *OPTIONS)
    start = (*OPTIONS, "--seed", 3, "--init", tmp_path / "first")
    train("whole", *start)
    with interrupted(1):
        train("run", *start)
    assert "started from" in train("run", "--resume").out
    assert digest(tmp_path / "run") == digest(tmp_path / "whole")


def test_other_data_is_said_before_settings_that_follow_from_it(train: Runner, tmp_path: Path) -> None:
    plain = corpus()
    first, *rest = plain["train"]
    apart = replace(first, entities=(Entity("Place", ((0, 1), (2, 3))),))
    other = saved(Corpus({**plain.splits, "train": (apart, *rest)}), tmp_path / "other")
    options = (*OPTIONS, "--recipe", "spanner")
    with interrupted(EPOCH + 1):
        train("run", *options)
    for words in (options, ()):
        result = train("run", *words, "--resume", data=other)
        complaint = f"{tmp_path / 'run'}: cannot resume, for the train data is not what it began with\n"
        assert (result.code, result.err) == (2, complaint)


def test_nothing_to_resume_is_said(train: Runner, tmp_path: Path) -> None:
    for words in ((), ("--seeds", "1"), ("--sweep", "head.tagging=softmax")):
        out = f"new{len(words)}{''.join(words)[:4]}"
        result = train(out, *OPTIONS, *words, "--resume")
        assert result.code == 0
        assert f"nothing to resume in {tmp_path / out}: training from the start\n" in result.out


def test_what_fails_before_the_first_step_leaves_no_folder(train: Runner, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    bare = {split: tuple(replace(one, entities=()) for one in found) for split, found in corpus().splits.items()}
    nothing = saved(Corpus(bare), tmp_path / "nothing")
    before = sorted(tmp_path.iterdir())
    for out in ("new", "far/away/run", "there"):
        for words in ((), ("--seeds", "1,2")):
            assert train(out, *OPTIONS, *words, "--init", tmp_path / "none").code == 2
            assert train(out, *OPTIONS, *words, data=nothing).err.startswith("the training data has no entities")
    assert sorted(tmp_path.iterdir()) == before
    assert not list((tmp_path / "there").iterdir())


# --- several runs ------------------------------------------------------------------------------------------------------


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


SEVERAL = {"seeds": ("--seeds", "1"), "sweep": ("--sweep", "head.tagging=softmax,crf")}


@pytest.mark.parametrize("kind", SEVERAL)
def test_several_runs_do_not_go_where_others_are(train: Runner, tmp_path: Path, kind: str) -> None:
    options = ("--epochs", "1", *(word for word in OPTIONS if word not in ("--epochs", "2")))
    train("single", *options)
    with interrupted(2):
        train("begun", *options)
    (other,) = (name for name in SEVERAL if name != kind)
    train("own", *options, *SEVERAL[kind])
    train("other", *options, *SEVERAL[other])
    with interrupted(EPOCH + 1 if other == "sweep" else 2):
        train("part", *options, *SEVERAL[other])
    assert not list((tmp_path / "part").glob("*.json"))
    for out, complaint in (
        ("single", "holds a finished training (run.json is there); "),
        ("begun", "holds an unfinished training of a single run; choose another folder"),
        ("other", f"holds the training of --{other} ("), ("part", f"holds the training of --{other} ("),
        ("own", f"holds a finished training ({kind}.json is there); --resume adds to it, or choose another folder"),
    ):  # fmt: skip
        before = contents(tmp_path / out)
        for resume in ((), ("--resume",)) if out != "own" else ((),):
            result = train(out, *options, *SEVERAL[kind], *resume)
            assert (result.code, result.err.count("\n")) == (2, 1)
            assert result.err.startswith(f"{tmp_path / out}: {complaint}")
        assert contents(tmp_path / out) == before


def test_runs_of_several_go_on_only_as_they_would_be_trained_now(train: Runner, tmp_path: Path) -> None:
    with interrupted(EPOCH + 1):
        result = train("runs", *OPTIONS, "--seeds", "1,2")
    assert result.err == "spanwise: interrupted; the same command with --resume goes on with it\n"
    result = train("runs", "--encoder", "static", "--seeds", "1,2", "--resume")
    assert result.code == 2
    assert result.err.startswith(f"{tmp_path / 'runs/seed-1'}: cannot resume with other settings than it began with: ")
    assert train("runs", *OPTIONS, "--seeds", "1,2", "--resume").code == 0
    train("whole", *OPTIONS, "--seed", 1)
    assert digest(tmp_path / "runs/seed-1") == digest(tmp_path / "whole")


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"data": 3, "asked": {}}', "\udcff"])
def test_a_report_that_is_cut_off_is_named(
    train: Runner, run: Runner, data: Path, tmp_path: Path, content: str
) -> None:  # fmt: skip
    train("runs", *OPTIONS, "--epochs", 1, "--seeds", "1")
    report = tmp_path / "runs/seed-1/run.json"
    report.write_bytes(content.encode("utf-8", "surrogateescape"))
    results = [train("runs", *OPTIONS, "--epochs", 1, "--seeds", "1", "--resume")]
    if "}" not in content:
        results.append(run("analyze", report.parent, data, "--out", tmp_path / "analysis", "--device", "cpu"))
    for result in results:
        assert (result.code, result.err.count("\n")) == (2, 1)
        assert result.err.startswith(f"{report}: ")


def test_compare_takes_the_runs_that_the_summary_names(train: Runner, run: Runner, data: Path, tmp_path: Path) -> None:
    train("runs", *OPTIONS, "--seeds", "1,2")
    seeds, summary = [tmp_path / f"runs/seed-{number}" for number in (1, 2)], tmp_path / "runs/seeds.json"
    train("runs/seed-3", *OPTIONS, "--seed", 3)

    def compared() -> Result:
        return run(
            "compare", tmp_path / "runs", f"same={seeds[0]},{seeds[1]}", "--data", data, "--device", "cpu", "--json", "-"
        )  # fmt: skip

    systems = json.loads(compared().out)["systems"]
    assert systems["runs"]["f1"] == systems["same"]["f1"]
    for content, complaint in (
        ('{"seeds": [1, 4]}', f"{tmp_path / 'runs'}: seeds.json names seed-4, which is not there\n"),
        ("{}", f"{summary}: cannot be read: expected the list of seeds\n"),
        ("{", f"{summary}: cannot be read, it may be cut off: not JSON: "),
    ):
        summary.write_text(content)
        result = compared()
        assert (result.code, result.err.count("\n")) == (2, 1)
        assert result.err.startswith(complaint)


def test_no_seeds_are_no_plain_run(train: Runner, tmp_path: Path) -> None:
    result = train("run", *OPTIONS, "--seeds", "")
    assert (result.code, result.err) == (2, "--seeds '': expected whole numbers with commas between, as in 1,2,3\n")
    assert not (tmp_path / "run").exists()
