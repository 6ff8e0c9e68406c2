"""The commands that ``kill.py`` kills: how each is set up, and when its output is whole."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import accelerate  # noqa: F401  # imported before the processes are forked
import torch._dynamo  # noqa: F401

import spanwise
import spanwise.encoders.static
import spanwise.heads.seqner
import spanwise.heads.spanner
import spanwise.training.folds
import spanwise.training.sweep
import spanwise.training.vectors
from spanwise.runs.folder import RunFolder

if TYPE_CHECKING:
    from kill import Trial

SMALL = ("encoder.word_size=8", "encoder.char_hidden=0", "encoder.hidden=8", "training.checkpoint_steps=2")
TRAIN = (
    "--recipe", "seqner", "--encoder", "static", "--epochs", "2", "--batch-size", "8", "--device", "cpu",
    *(word for setting in SMALL for word in ("--set", setting)),
)  # fmt: skip


def prepare(work: Path, names: Sequence[str]) -> None:
    """Write the data and, in separate processes, the outputs that the commands need or replace."""
    from kill import start

    (work / "data").mkdir()
    for split, sentences in spanwise.bundled_corpus().splits.items():
        spanwise.write(islice(sentences, 24), work / "data" / f"{split}.jsonl")
    spanwise.write(islice(spanwise.bundled_corpus()["dev"], 3), work / "old.jsonl")
    commands = [["train", str(work / "data"), "--out", str(work / "model"), *TRAIN]]
    if "vectors" in names:  # compile once, before processes are forked
        from spanwise.vectors.glove import GloveSettings, learn_vectors

        learn_vectors([["a", "b", "c"]] * 2, GloveSettings(dim=8, iterations=1))
    if "export-onnx" in names:  # imported before the processes are forked
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401

        from spanwise.export.onnx import export_onnx  # noqa: F401
    if "analyze" in names or "analyze-figures" in names:
        from spanwise.analysis.figures import style  # noqa: F401

        _analyze().render_figures = _render_figures
        old, test = str(work / "old.jsonl"), str(work / "data" / "test.jsonl")
        commands += [
            ["predict", str(work / "model"), test, "--output", str(work / "pred.jsonl")],
            ["analyze", "--pred", old, "--gold", old, "--out", str(work / "old-analysis")],
        ]
    for arguments in commands:
        command = start(arguments, work)
        if command.wait() != 0:
            raise SystemExit(command.log.read_text())


def _analyze() -> Any:
    from spanwise.analysis import analyze

    return analyze


def _render_figures(sections: Sequence[Any]) -> dict[str, Any]:
    """Stand-ins for the figures, which take seconds to draw: the same files with other content."""
    from spanwise.analysis.writing import RenderedFigure, file_name

    names = [file_name(section, name) for section in sections for name in section.figures]
    return {name: RenderedFigure(name.encode(), b"<svg></svg>") for name in names}


def contents(folder: Path) -> dict[str, bytes | None]:
    """All files below a folder, hidden ones included."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


class Scenario:
    """A command with one output, by default a file that is replaced."""

    name = ""
    output = "out.jsonl"

    def set_up(self, work: Path, out: Path) -> None:
        """Write the old output, if there is one."""

    def arguments(self, work: Path, *, again: bool = False) -> list[str]:
        """The words of the command; ``again`` after a kill."""
        raise NotImplementedError

    def result(self, out: Path) -> Any:
        """What must not depend on kills."""
        return contents(out) if out.is_dir() else out.read_bytes()

    def check_killed(self, trial: Trial) -> str | None:
        """The problem of the output after a kill; None if it is the old or the new one."""
        if not trial.out.exists():
            return None if trial.old is None else "the old output is missing"
        return None if self.result(trial.out) in (trial.old, trial.new) else "neither the old nor the new output"

    def is_complete(self, out: Path) -> bool:
        """Whether the command finished before the kill and would refuse to run again."""
        return False

    def clean(self, trial: Trial) -> None:
        """Let another command write to the same folder, if the command was not repeated."""


class Convert(Scenario):
    name = "convert"

    def set_up(self, work: Path, out: Path) -> None:
        shutil.copy(work.parent / "old.jsonl", out)

    def arguments(self, work: Path, *, again: bool = False) -> list[str]:
        return ["convert", str(work.parent / "data" / "test.jsonl"), str(work / "place" / self.output)]


class Predict(Convert):
    name = "predict"

    def arguments(self, work: Path, *, again: bool = False) -> list[str]:
        source = work.parent / "data" / "test.jsonl"
        return ["predict", str(work.parent / "model"), str(source), "--output", str(work / "place" / self.output)]


class Suggest(Convert):
    name = "suggest"

    def arguments(self, work: Path, *, again: bool = False) -> list[str]:
        source = work.parent / "data" / "test.jsonl"
        output = str(work / "place" / self.output)
        return ["suggest", str(work.parent / "model"), str(source), "-n", "10", "--output", output]


class Package(Convert):
    """Replaces a wheel. Torch format, because the export to ONNX is another scenario."""

    name = "package"
    output = "en_tiny-1-py3-none-any.whl"

    def arguments(self, work: Path, *, again: bool = False) -> list[str]:
        options = ("--name", "en-tiny", "--version", "1", "--format", "torch", "--out", str(work / "place"))
        return ["package", str(work.parent / "model"), *options]


class NewFolder(Scenario):
    """A command that writes a new folder and refuses one with content."""

    output = "out"

    def is_complete(self, out: Path) -> bool:
        return out.exists()

    def clean(self, trial: Trial) -> None:
        spanwise.write([], trial.out.parent / "other.jsonl")
        (trial.out.parent / "other.jsonl").unlink()


class ConvertFolder(NewFolder):
    name = "convert-folder"

    def arguments(self, work: Path, *, again: bool = False) -> list[str]:
        return ["convert", str(work.parent / "data"), str(work / "place" / self.output), "--to", "conll", "--lossy"]


class Export(NewFolder):
    name = "export"

    def arguments(self, work: Path, *, again: bool = False) -> list[str]:
        return ["export", str(work.parent / "model"), "--out", str(work / "place" / self.output)]


class ExportOnnx(NewFolder):
    """Writes graphs, and compares the predictions of both models before the folder gets its name."""

    name = "export-onnx"

    def arguments(self, work: Path, *, again: bool = False) -> list[str]:
        data = str(work.parent / "data")
        return ["export", str(work.parent / "model"), "--onnx", "--data", data, "--out", str(work / "place" / self.output)]


class VectorsTrain(NewFolder):
    name = "vectors"

    def arguments(self, work: Path, *, again: bool = False) -> list[str]:
        options = ("--dim", "8", "--iterations", "2", "--threads", "1")
        return ["vectors", "train", str(work.parent / "data"), "--out", str(work / "place" / self.output), *options]

    def result(self, out: Path) -> Any:
        files = contents(out)
        record = json.loads(files.pop("training.json") or b"")
        del record["seconds"]
        return files, record


class Analyze(Scenario):
    """Replaces a folder. Between its two renames the old and the new analysis are in the work folder."""

    name = "analyze"
    output = "report"

    def set_up(self, work: Path, out: Path) -> None:
        _analyze().render_figures = self.render_figures
        shutil.copytree(work.parent / "old-analysis", out)

    def render_figures(self, sections: Sequence[Any]) -> dict[str, Any]:
        return _render_figures(sections)

    def arguments(self, work: Path, *, again: bool = False) -> list[str]:
        gold = work.parent / "data" / "test.jsonl"
        prediction = work.parent / "pred.jsonl"
        return ["analyze", "--pred", str(prediction), "--gold", str(gold), "--out", str(work / "place" / self.output)]

    def check_killed(self, trial: Trial) -> str | None:
        if not trial.out.exists():  # any next command that writes here completes the replacement
            spanwise.write([], trial.out.parent / "other.jsonl")
            (trial.out.parent / "other.jsonl").unlink()
        return super().check_killed(trial)


class AnalyzeFigures(Analyze):
    """The same with real figures, which take seconds to draw."""

    name = "analyze-figures"

    def render_figures(self, sections: Sequence[Any]) -> dict[str, Any]:
        from spanwise.analysis.writing import render_figures

        return render_figures(sections)


class Train(Scenario):
    """A training into a new folder, resumed after the kill."""

    name = "train"
    output = "run"
    options: tuple[str, ...] = ()

    def arguments(self, work: Path, *, again: bool = False) -> list[str]:
        out = str(work / "place" / self.output)
        return ["train", str(work.parent / "data"), "--out", out, *TRAIN, *self.options, *(["--resume"] if again else [])]

    def result(self, out: Path) -> Any:
        return _run_result(out)

    def check_killed(self, trial: Trial) -> str | None:
        """A report exists only next to complete weights."""
        return None if not RunFolder(trial.out).is_finished or self.result(trial.out) == trial.new else "a damaged run"

    def is_complete(self, out: Path) -> bool:
        return RunFolder(out).is_finished

    def clean(self, trial: Trial) -> None:
        """Remove what a kill after the end left: ``--resume`` refuses a finished run, and cleans it up."""
        if trial.names() != trial.listing:
            from kill import start

            start(self.arguments(trial.work, again=True), trial.work).wait()


class Seeds(Train):
    name = "seeds"
    output = "runs"
    options = ("--seeds", "1,2")

    def result(self, out: Path) -> Any:
        return _run_result(out / "seed-1"), _run_result(out / "seed-2"), json.loads((out / "seeds.json").read_text())

    def check_killed(self, trial: Trial) -> str | None:
        return None

    def is_complete(self, out: Path) -> bool:
        return False


def _run_result(out: Path) -> Any:
    """Weights, metrics without times, and scores."""
    metrics = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    for row in metrics:
        del row["seconds"], row["dev_seconds"]
    encoder = (out / "static_encoder.json").read_bytes()
    return (out / "model.safetensors").read_bytes(), encoder, metrics, json.loads((out / "run.json").read_text())["scores"]


_COMMANDS = (
    Train, Seeds, Convert, ConvertFolder, Predict, Suggest, Analyze, AnalyzeFigures, Export, ExportOnnx, Package, VectorsTrain,
)  # fmt: skip
SCENARIOS: dict[str, Scenario] = {command.name: command() for command in _COMMANDS}
