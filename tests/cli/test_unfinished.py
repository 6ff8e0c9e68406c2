"""Interrupted trainings: their folders, and how they resume."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cli_runner import Result, Runner
from tiny import PLACES, STATIC, corpus, digest

from spanwise import Entity, load
from spanwise.core.errors import SpanwiseWarning
from spanwise.core.types import Corpus
from spanwise.formats import read, write
from spanwise.integrations.hub import HubModel
from spanwise.training.steps import TrainingSteps

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
    """Raise a KeyboardInterrupt in a step, counted from 1."""
    backward, calls = TrainingSteps._backward, []

    def failing(self: TrainingSteps, packed: Any) -> Any:
        calls.append(1)
        if len(calls) == step:
            raise KeyboardInterrupt
        return backward(self, packed)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TrainingSteps, "_backward", failing)
        yield


@pytest.fixture
def train(run: Runner, data: Path, tmp_path: Path) -> Runner:
    def call(out: str, *words: object, data: Path = data) -> Result:
        return run("train", data, "--out", tmp_path / out, "--device", "cpu", *words)

    return call


def test_weights_exist_after_the_first_epoch(train: Runner, run: Runner, data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with interrupted(EPOCH):
        result = train("run", *OPTIONS, "--set", "training.checkpoint_steps=1")
    assert (result.code, result.err) == (130, "spanwise: interrupted; add --resume to the command to continue\n")
    assert not (folder / "model.safetensors").exists()
    for command in (("predict", folder, data / "dev.jsonl"), ("evaluate", folder, data), ("describe", folder)):
        result = run(*command)
        assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
        assert result.err.startswith(
            f"{folder}: no trained model yet: training has not finished its first epoch; continue it with"
        )
    assert train("run", "--resume").code == 0
    train("whole", *OPTIONS, "--set", "training.checkpoint_steps=1")
    assert digest(folder) == digest(tmp_path / "whole")
    (folder / "model.safetensors").unlink()  # of a finished training
    assert run("describe", folder).err == f"{folder}: no trained model here (model.safetensors missing)\n"


@pytest.mark.parametrize("seeds", [(), ("--seeds", "1,2")])
def test_a_resumed_training_reads_the_data_in_the_same_format(
    train: Runner, data: Path, tmp_path: Path, seeds: tuple[str, ...]
) -> None:
    """Also with an encoding, and if another format would be detected."""
    sentences = [sentence for split in ("train", "dev") for sentence in read(data / f"{split}.jsonl")]
    rows = [[f"{word}é O {'B-Place' if word in PLACES else 'O'}" for word in sentence.words] for sentence in sentences]
    file = tmp_path / "letters.conll"
    file.write_text("\n\n".join("\n".join(lines) for lines in rows), encoding="latin-1")
    words = (*OPTIONS, "--from", "conll:labels=2", "--encoding", "latin-1", *seeds)
    with interrupted(EPOCH + 3):
        assert train("run", *words, data=file).code == 130
    result = train("run", "--resume", data=file)
    assert (result.code, result.err) == (0, "")
    assert seeds or "--gold-format conll:labels=2 --encoding latin-1" in result.out
    train("whole", *words, data=file)
    for name in ("seed-1", "seed-2") if seeds else (".",):
        assert digest(tmp_path / "run" / name) == digest(tmp_path / "whole" / name)


@pytest.mark.usefixtures("without_figures")
def test_note_on_unfinished_training(
    train: Runner, run: Runner, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    uvicorn = pytest.importorskip("uvicorn")
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: None)
    folder, gold = tmp_path / "run", data / "test.jsonl"
    note = f"note: {folder}: training is unfinished; using its best epoch so far\n"
    with interrupted(EPOCH + 1):
        train("run", *OPTIONS)
    commands: list[tuple[object, ...]] = [
        ("predict", folder, gold, "--device", "cpu"), ("evaluate", folder, data, "--device", "cpu"), ("describe", folder),
        ("compare", folder, gold, "--gold", gold, "--device", "cpu"), ("serve", folder, "--port", 0, "--device", "cpu"),
        ("analyze", folder, data, "--out", tmp_path / "analysis", "--device", "cpu"), ("train", data, "--init", folder,
         "--out", tmp_path / "next", "--device", "cpu", *OPTIONS), ("export", folder, "--out", tmp_path / "exported"),
        ("export", folder, "--onnx", "--out", tmp_path / "graphs"),
    ]  # fmt: skip
    for command in commands:
        result = run(*command)
        assert (result.code, re.sub(r"predicted .*\n$", "", result.err)) == (0, note), command[0]
    assert run("evaluate", tmp_path / "exported", data, "--device", "cpu").err == ""
    train("run", "--resume")
    assert [re.sub(r"predicted .*\n$", "", run(*command).err) for command in commands[:4]] == [""] * 4


def test_warning_and_card_of_unfinished_training(train: Runner, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with interrupted(EPOCH + 1):
        train("run", *OPTIONS)
    for use in (lambda: load(folder, "cpu"), lambda: HubModel(folder).save_pretrained(tmp_path / "hub")):
        with pytest.warns(SpanwiseWarning, match="run: training is unfinished; using its best epoch so far"):
            use()
    card = (tmp_path / "hub" / "README.md").read_text(encoding="utf-8")
    assert (
        "trained with the recipe `seqner` of Spanwise. The training is unfinished; these are the weights of the best epoch so far."
        in card
    )
    train("run", "--resume")
    assert "unfinished" not in str(HubModel(folder).generate_model_card())


@pytest.mark.parametrize("step", [1, EPOCH + 2])  # before and after the first checkpoint
def test_resume_uses_the_recorded_settings(train: Runner, tmp_path: Path, step: int) -> None:
    train("whole", *OPTIONS, "--seed", 4)
    with interrupted(step):
        train("run", *OPTIONS, "--seed", 4)
    for words, names in (
        (("--epochs", 3), "training.epochs"), (("--set", "encoder.hidden=8"), "encoder.hidden"),
        (("--recipe", "seqner", "--seed", 5), "training.seed"),
    ):  # fmt: skip
        result = train("run", *words, "--resume")
        complaint = f"{tmp_path / 'run'}: cannot resume with changed settings: {names}\n"
        assert (result.code, result.err) == (2, complaint)
    assert "changed settings: head.kind, " in train("run", *OPTIONS, "--recipe", "spanner", "--resume").err
    assert "changed settings: encoder." in train("run", "--encoder", "minilm", "--resume").err
    result = train("run", "--encoder", "static", "--epochs", 2, "--resume")
    assert (result.code, result.err) == (0, "")
    assert digest(tmp_path / "run") == digest(tmp_path / "whole")
    requested = [json.loads((tmp_path / name / "run.json").read_text())["requested"] for name in ("run", "whole")]
    assert requested[0] == requested[1]
    assert {path.name for path in (tmp_path / "run").iterdir()} == {path.name for path in (tmp_path / "whole").iterdir()}


def test_resume_remembers_init(train: Runner, tmp_path: Path) -> None:
    train("first", *OPTIONS)
    start = (*OPTIONS, "--seed", 3, "--init", tmp_path / "first")
    train("whole", *start)
    with interrupted(1):
        train("run", *start)
    assert "initialised from" in train("run", "--resume").out
    assert digest(tmp_path / "run") == digest(tmp_path / "whole")


def test_changed_data_is_reported_before_derived_settings(train: Runner, tmp_path: Path) -> None:
    plain = corpus()
    first, *rest = plain["train"]
    apart = replace(first, entities=(Entity("Place", ((0, 1), (2, 3))),))
    other = saved(Corpus({**plain.splits, "train": (apart, *rest)}), tmp_path / "other")
    options = (*OPTIONS, "--recipe", "spanner")
    with interrupted(EPOCH + 1):
        train("run", *options)
    for words in (options, ()):
        result = train("run", *words, "--resume", data=other)
        complaint = f"{tmp_path / 'run'}: cannot resume: the train data has changed since the run was started\n"
        assert (result.code, result.err) == (2, complaint)


def test_nothing_to_resume(train: Runner, tmp_path: Path) -> None:
    for words in ((), ("--seeds", "1"), ("--sweep", "head.tagging=softmax")):
        out = f"new{len(words)}{''.join(words)[:4]}"
        result = train(out, *OPTIONS, *words, "--resume")
        assert result.code == 0
        assert f"nothing to resume in {tmp_path / out}: training from the start\n" in result.out


def test_early_failure_leaves_no_folder(train: Runner, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    bare = {
        split: tuple(replace(sentence, entities=()) for sentence in sentences) for split, sentences in corpus().splits.items()
    }
    unannotated = saved(Corpus(bare), tmp_path / "unannotated")
    before = sorted(tmp_path.iterdir())
    for out in ("new", "far/away/run", "there"):
        for words in ((), ("--seeds", "1,2")):
            assert train(out, *OPTIONS, *words, "--init", tmp_path / "none").code == 2
            assert train(out, *OPTIONS, *words, data=unannotated).err.startswith("the training data has no entities")
    assert sorted(tmp_path.iterdir()) == before
    assert not list((tmp_path / "there").iterdir())


# --- several runs ------------------------------------------------------------------------------------------------------


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


SEVERAL = {"seeds": ("--seeds", "1"), "sweep": ("--sweep", "head.tagging=softmax,crf")}
TWO = {**SEVERAL, "seeds": ("--seeds", "1,2"), "folds": ("--folds", "FOLDS")}
NAMES = {"seeds": ("seed-1", "seed-2"), "sweep": ("head.tagging=softmax", "head.tagging=crf"), "folds": ("fold-0", "fold-1")}


@pytest.fixture
def two(data: Path, tmp_path: Path) -> Callable[[str], tuple[str, ...]]:
    """Options for two runs of a kind."""
    folds = [{"fold": k, "test": [one.id for one in read(data / "test.jsonl")][k::2]} for k in range(2)]
    (tmp_path / "folds.json").write_text(json.dumps(folds))
    return lambda kind: tuple(word.replace("FOLDS", str(tmp_path / "folds.json")) for word in TWO[kind])


@pytest.mark.parametrize("kind", SEVERAL)
def test_several_runs_need_an_empty_folder(train: Runner, tmp_path: Path, kind: str) -> None:
    options = ("--epochs", "1", *(word for word in OPTIONS if word not in ("--epochs", "2")))
    train("single", *options)
    with interrupted(2):
        train("unfinished", *options)
    (other,) = (name for name in SEVERAL if name != kind)
    train("same", *options, *SEVERAL[kind])
    train("other", *options, *SEVERAL[other])
    with interrupted(EPOCH + 1 if other == "sweep" else 2):
        train("part", *options, *SEVERAL[other])
    assert not (tmp_path / "part" / f"{other}.json").exists()
    for out, complaint in (
        ("single", "contains a finished run (run.json exists); "),
        ("unfinished", "contains an unfinished single run; choose another folder"),
        ("other", f"contains runs of --{other} ("), ("part", f"contains runs of --{other} ("),
        ("same", f"contains finished runs ({kind}.json exists); pass --resume to add runs, or choose another folder"),
    ):  # fmt: skip
        before = contents(tmp_path / out)
        for resume in ((), ("--resume",)) if out != "same" else ((),):
            result = train(out, *options, *SEVERAL[kind], *resume)
            assert (result.code, result.err.count("\n")) == (2, 1)
            assert result.err.startswith(f"{tmp_path / out}: {complaint}")
        assert contents(tmp_path / out) == before


@pytest.mark.parametrize("step", [1, 4 * EPOCH])  # in the first run and in the second
@pytest.mark.parametrize("kind", TWO)
def test_several_runs_resume_with_the_recorded_settings(
    train: Runner, two: Callable[[str], tuple[str, ...]], tmp_path: Path, kind: str, step: int
) -> None:
    train("whole", *OPTIONS, *two(kind))
    with interrupted(step):
        result = train("runs", *OPTIONS, *two(kind))
    assert result.err == "spanwise: interrupted; add --resume to the command to continue\n"
    first, second = (tmp_path / "runs" / name for name in NAMES[kind])
    assert (first / "run.json").exists() == second.exists() == (step > 1)
    before = contents(tmp_path / "runs")
    for words, names in (
        (("--epochs", 3), "training.epochs\n"), ((*two(kind), "--set", "encoder.hidden=8"), "encoder.hidden\n"),
        ((*OPTIONS, "--recipe", "seqner-crf"), "recipe, title\n"),
    ):  # fmt: skip
        result = train("runs", *words, "--resume")
        assert (result.code, result.err.count("\n")) == (2, 1)
        assert result.err.startswith(f"{first}: cannot resume with changed settings: ")
        assert result.err.endswith(names)
    assert contents(tmp_path / "runs") == before
    assert train("runs", *OPTIONS, *two(kind)).err == (
        f"{tmp_path / 'runs'}: contains an unfinished run; pass --resume to continue it, or choose another folder\n"
    )
    result = train("runs", "--resume")
    assert (result.code, result.err) == (0, "")
    assert [f"== {run.name}\n" in result.out for run in (first, second)] == [step == 1, True]
    for run in (first, second):
        assert digest(run) == digest(tmp_path / "whole" / run.name)
    assert (tmp_path / "runs" / f"{kind}.json").read_bytes() == (tmp_path / "whole" / f"{kind}.json").read_bytes()


def test_additional_seeds_use_the_recorded_settings(train: Runner, tmp_path: Path) -> None:
    train("runs", *OPTIONS, "--seeds", "1,2")
    before = contents(tmp_path / "runs")
    for words, complaint in (
        (
            ("--seeds", "2,3"),
            f"{tmp_path / 'runs'}: cannot resume without seed-1; request it too, or remove the folder\n",
        ),
        (("--seed", 1), f"{tmp_path / 'runs'} holds runs of several seeds; omit --seed\n"),
        (("--seed", 1, "--seeds", "1,2"), "--seed and --seeds cannot be combined\n"),
    ):
        result = train("runs", *words, "--resume")
        assert (result.code, result.err) == (2, complaint)
    assert contents(tmp_path / "runs") == before
    with interrupted(1):
        train("runs", "--seeds", "1,2,3", "--resume")
    result = train("runs", "--resume")
    assert (result.code, result.err) == (0, "")
    assert "== seed-1" not in result.out
    train("whole", *OPTIONS, "--seed", 3)
    assert digest(tmp_path / "runs/seed-3") == digest(tmp_path / "whole")
    assert json.loads((tmp_path / "runs/seeds.json").read_text())["seeds"] == [1, 2, 3]


def test_several_runs_remember_init(train: Runner, tmp_path: Path) -> None:
    train("first", *OPTIONS)
    start = (*OPTIONS, "--seeds", "3,4", "--init", tmp_path / "first")
    train("whole", *start)
    with interrupted(1):
        train("runs", *start)
    before = contents(tmp_path / "runs")
    result = train("runs", "--resume", "--init", tmp_path / "whole/seed-3")
    assert (result.code, result.err) == (
        2, f"{tmp_path / 'runs'}: cannot resume with --init {tmp_path / 'whole/seed-3'}: the run was started with --init {tmp_path / 'first'}\n"
    )  # fmt: skip
    assert contents(tmp_path / "runs") == before
    train("runs", "--resume")
    assert [digest(tmp_path / f"runs/seed-{k}") for k in (3, 4)] == [digest(tmp_path / f"whole/seed-{k}") for k in (3, 4)]


def test_recorded_paths_are_absolute(
    train: Runner, two: Callable[[str], tuple[str, ...]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train("first", *OPTIONS)
    monkeypatch.chdir(tmp_path)
    _, folds = two("folds")
    with interrupted(1):
        train("runs", *OPTIONS, "--folds", Path(folds).relative_to(tmp_path), "--init", "first")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    result = train("runs", "--resume")
    assert (result.code, result.err) == (0, "")
    assert result.out.count(f"initialised from {tmp_path / 'first'}") == 2


def test_missing_runs_can_be_omitted(train: Runner, tmp_path: Path) -> None:
    with interrupted(4 * EPOCH):  # in the second
        train("runs", *OPTIONS, "--seeds", "1,2,3")
    result = train("runs", "--seeds", "1,2", "--resume")
    assert (result.code, result.err) == (0, "")
    shutil.rmtree(tmp_path / "runs/seed-2")
    assert train("runs", "--seeds", 1, "--resume").code == 0
    assert json.loads((tmp_path / "runs/seeds.json").read_text())["seeds"] == [1]


def test_rejected_settings_are_not_recorded(train: Runner, tmp_path: Path) -> None:
    train("runs", *OPTIONS, "--seeds", "1,2")
    before = contents(tmp_path / "runs")
    for words in (("--seeds", "1,2,3", "--init", tmp_path / "none"), ("--seeds", "1,2,3", "--set", "encoder.vectors=none.txt")):
        assert train("runs", *words, "--resume").code == 2
        assert contents(tmp_path / "runs") == before
    train("same/seed-1", *OPTIONS, "--seed", 1)
    before = contents(tmp_path / "same")
    assert train("same", *OPTIONS, "--seeds", "1,2", "--set", "head.tagging=crf").code == 2
    assert contents(tmp_path / "same") == before
    assert train("same", *OPTIONS, "--seeds", "1,2", "--resume").code == 0


def test_runs_are_scored_on_the_same_test_data(train: Runner, data: Path, tmp_path: Path) -> None:
    train("runs", *OPTIONS, "--seeds", "1")
    lines = (data / "test.jsonl").read_text().splitlines(keepends=True)
    (data / "test.jsonl").write_text("".join(lines[:3]))
    result = train("runs", "--seeds", "1,2", "--resume")
    message = f"{tmp_path / 'runs/seed-1'}: cannot resume: the test data has changed since the run was scored\n"
    assert (result.code, result.err) == (2, message)


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"seeds": 1, "runs": [], "config": {}}'])
def test_truncated_record_of_several_runs(train: Runner, tmp_path: Path, content: str) -> None:
    with interrupted(1):
        train("runs", *OPTIONS, "--seeds", "1,2")
    (tmp_path / "runs/runs.json").write_text(content)
    result = train("runs", "--resume")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert result.err.startswith(f"{tmp_path / 'runs/runs.json'}: ")


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"data": 3, "requested": {}}', "\udcff"])
def test_truncated_report(
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


def test_compare_reads_the_runs_of_the_summary(train: Runner, run: Runner, data: Path, tmp_path: Path) -> None:
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
        ('{"seeds": [1, 4]}', f"{tmp_path / 'runs'}: seeds.json lists seed-4, which does not exist\n"),
        ("{}", f"{summary}: expected a list of seeds\n"),
        ("{", f"{summary}: not valid JSON ("),
    ):
        summary.write_text(content)
        result = compared()
        assert (result.code, result.err.count("\n")) == (2, 1)
        assert result.err.startswith(complaint)


def test_empty_seeds(train: Runner, tmp_path: Path) -> None:
    result = train("run", *OPTIONS, "--seeds", "")
    assert (result.code, result.err) == (2, "--seeds '': expected integers separated by commas, as in 1,2,3\n")
    assert not (tmp_path / "run").exists()
