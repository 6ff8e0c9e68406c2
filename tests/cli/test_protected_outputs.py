"""No output option of any command overwrites an input, a model, or the state of a training.

The commands and their parameters are read from the Typer app: a new parameter for a path must be added
to ``INPUTS`` or ``OUTPUTS`` here.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_runner import Runner
from tiny import STATIC, corpus, fit, quiet
from typer.main import get_command

from spanwise.cli import app
from spanwise.formats import write
from spanwise.models.model import Model
from spanwise.recipes.catalog import configure
from spanwise.recipes.resolve import Choices
from spanwise.training.loop import Trainer
from spanwise.training.run import RunOptions
from spanwise.training.seeds import train_seeds

PATH_WORDS = ("FILE", "FOLDER", "DIR", "RUN", "OUT", "IN", "PATH", "MODEL", "DATA", "CORPUS", "SYSTEM", "VECTORS", "POOL")
INPUTS = {
    ("train", "data"), ("train", "folds"), ("train", "init"), ("distill", "data"), ("distill", "init"), ("distill", "unlabelled"),
    ("evaluate", "model"), ("evaluate", "data"), ("evaluate", "pred"), ("evaluate", "gold"), ("evaluate", "train"),
    ("compare", "systems"), ("compare", "gold"), ("compare", "data"), ("compare", "train"),
    ("analyze", "model"), ("analyze", "data"), ("analyze", "pred"), ("analyze", "gold"), ("analyze", "train"),
    ("analyze", "against"), ("predict", "model"), ("predict", "sources"), ("serve", "model"), ("serve", "learn_data"), ("label-studio config", "data"), ("export", "model"),
    ("annotate", "model"), ("audit", "data"), ("audit", "apply"), ("export", "data"), ("export", "dev"), ("package", "model"), ("package", "data"), ("package", "dev"), ("convert", "source"), ("describe", "data"), ("vectors train", "corpora"),
    ("suggest", "model"), ("suggest", "pool"), ("suggest", "annotated"), ("suggest", "simulate"),
    ("vectors similar", "source"), ("vectors analogies", "source"), ("vectors convert", "source"),
}  # fmt: skip
# The arguments of a command without those of the output; {names} are files of the fixture ``files``.
OUTPUTS: dict[tuple[str, str], tuple[str, ...]] = {
    ("train", "out"): ("train", "{data}", "--init", "{run}", "--folds", "{folds}", "--out"),
    ("distill", "out"): (
        "distill",
        "{run}",
        "{data}",
        "--encoder",
        "static",
        "--init",
        "{run}",
        "--unlabelled",
        "{text}",
        "--out",
    ),
    ("evaluate", "json_file"): ("evaluate", "{run}", "{data}", "--train", "{gold}", "--json"),
    ("compare", "json_file"): ("compare", "{run}", "{pred}", "--gold", "{gold}", "--json"),
    ("analyze", "out"): ("analyze", "{run}", "{data}", "--train", "{gold}", "--against", "{pred}", "--out"),
    ("predict", "output"): ("predict", "{run}", "{text}", "{gold}", "--to", "jsonl", "--output"),
    ("annotate", "output"): ("annotate", "{run}", "{gold}"),
    ("annotate", "json_file"): ("annotate", "{run}", "{gold}", "{shards}", "--json"),
    ("audit", "out"): ("audit", "{data}", "--out"),
    ("export", "out"): ("export", "{run}", "--onnx", "--data", "{data}", "--out"),
    ("package", "out"): ("package", "{run}", "--name", "n", "--version", "1", "--data", "{data}", "--out"),
    ("suggest", "output"): ("suggest", "{run}", "{text}", "{gold}", "--annotated", "{data}", "--to", "jsonl", "--output"),
    ("serve", "learn_folder"): ("serve", "{run}", "--label-studio", "--learn", "--learn-data", "{data}", "--learn-folder"),
    ("label-studio config", "output"): ("label-studio", "config", "{data}", "--output"),
    ("convert", "target"): ("convert", "{gold}", "--to", "jsonl"),
    ("describe", "json_file"): ("describe", "{data}", "--json"),
    ("demo", "out"): ("demo", "--out"),
    ("vectors train", "out"): ("vectors", "train", "{data}", "{gold}", "--out"),
    ("vectors convert", "target"): ("vectors", "convert", "{vectors}"),
}


def path_parameters() -> Iterator[tuple[str, str]]:
    """All parameters of the app that take a path, by command and name."""

    def leaves(command: Any, name: str) -> Iterator[tuple[str, Any]]:
        if hasattr(command, "commands"):
            for child_name, child in command.commands.items():
                yield from leaves(child, f"{name} {child_name}".strip())
        else:
            yield name, command

    for name, command in leaves(get_command(app), ""):
        annotations = {key: str(value.annotation) for key, value in inspect.signature(command.callback).parameters.items()}
        for parameter in command.params:
            words = (parameter.metavar or "").replace("_", "|").replace("[", "|").replace("]", "|").replace(",", "|").split("|")
            if "Path" in annotations.get(parameter.name, "") or any(word in PATH_WORDS for word in words):
                yield name, parameter.name


def test_every_path_parameter_is_an_input_or_an_output() -> None:
    assert sorted(path_parameters()) == sorted([*INPUTS, *OUTPUTS])


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, tiny_bert: Path) -> dict[str, Path]:
    """Inputs, and folders of models in every state."""
    root = tmp_path_factory.mktemp("files")
    names = ("data", "run", "unfinished", "group", "concat", "onnx")
    made = {name: root / name for name in names} | {
        "gold": root / "gold.jsonl", "pred": root / "pred.jsonl", "folds": root / "my_folds.json", "text": root / "text.txt",
        "annotations": root / "text.ann", "vectors": root / "vectors.txt", "shards": root / "shards",
    }  # fmt: skip
    for name in ("data", "shards"):
        made[name].mkdir()
    for split, sentences in corpus().splits.items():
        write(sentences, made["data"] / f"{split}.jsonl")
    for name in ("gold", "pred"):
        write(corpus()["test"], made[name])
    made["folds"].write_text(json.dumps([{"fold": 0, "test": ["s0"]}]))
    made["text"].write_text("the oslo was seen\n")
    made["annotations"].write_text("T1\tPlace 4 8\toslo\n")
    made["vectors"].write_text("oslo 1 2 3\nlima 3 2 1\n")
    fit(made["run"], corpus(), epochs=1)
    interrupt_training(made["unfinished"])
    choices = Choices("seqner", "static", overrides=STATIC, settings={"epochs": 1})
    train_seeds(corpus(), made["group"], [1], choices, RunOptions("cpu", log=quiet))
    save_concat(made["concat"], tiny_bert)
    export_to_onnx(made["run"], made["onnx"])
    return made


def interrupt_training(folder: Path) -> None:
    """Stop a training in its second epoch: weights, a checkpoint, and the record for --resume are there."""
    with pytest.MonkeyPatch.context() as patch:
        train_epoch = Trainer._train_epoch

        def failing(self: Trainer, *arguments: Any) -> Any:
            if self.epoch == 1:
                raise KeyboardInterrupt
            return train_epoch(self, *arguments)

        patch.setattr(Trainer, "_train_epoch", failing)
        with pytest.raises(KeyboardInterrupt):
            fit(folder, corpus(), epochs=2)
    assert (folder / "checkpoints").is_dir()


def save_concat(folder: Path, tiny_bert: Path) -> None:
    """Save a model of two encoders, whose files are in folders inside the run folder."""
    parts = [{"kind": "transformer", "name": str(tiny_bert)}, {"kind": "static", "word_size": 8, "layers": 0}]
    config = configure("seqner", encoder="static")
    config = config.model_copy(update={"encoder": {"kind": "concat", "parts": parts, "hidden": 8}})
    Model.build(config, corpus()).save(folder)


def export_to_onnx(run: Path, folder: Path) -> None:
    pytest.importorskip("onnxruntime")
    from spanwise.export.onnx import export_onnx

    export_onnx(run, folder)


def contents(folder: Path) -> dict[str, str]:
    """The hashes of all files in a folder, and the targets of its links."""
    return {
        str(path.relative_to(folder)): str(path.readlink())
        if path.is_symlink()
        else hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture(scope="module")
def assert_refused(files: dict[str, Path]) -> Callable[..., None]:
    """Check that commands refuse targets in one line, load no model, and change no file."""
    root = files["run"].parent

    def check(run: Runner, arguments: tuple[str, ...], targets: list[Path]) -> None:
        before = contents(root)
        words = [word.format(**files) for word in arguments]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Model, "load", lambda folder: pytest.fail("a model was loaded before the output was checked"))
            patch.setattr(Trainer, "train", lambda self: pytest.fail("a training was started"))
            for target in targets:
                result = run(*words, target)
                assert (result.code, result.out, result.err.count("\n")) == (2, "", 1), (target, result.out, result.err)
                assert result.err.startswith(str(target)), result.err
        assert contents(root) == before

    return check


@pytest.mark.parametrize("output", OUTPUTS, ids=" ".join)
def test_files_of_models_are_protected(
    run: Runner, files: dict[str, Path], assert_refused: Callable[..., None], output: tuple[str, str]
) -> None:
    folders = [files[name] for name in ("run", "unfinished", "group", "concat", "onnx")]
    targets = [path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()]
    assert {path.name for path in targets} >= {
        "config.yaml", "labels.json", "model.safetensors", "run.json", "metrics.jsonl", "resume.json", "state.json",
        "optimizer.safetensors", "runs.json", "seeds.json", "static_encoder.json", "tokenizer.json", "onnx.json", "encoder.onnx",
        "head.onnx",
    }  # fmt: skip
    assert_refused(run, OUTPUTS[output], targets)


@pytest.mark.parametrize("output", OUTPUTS, ids=" ".join)
def test_links_and_folders_of_models_are_protected(
    run: Runner, files: dict[str, Path], assert_refused: Callable[..., None], output: tuple[str, str], tmp_path: Path
) -> None:
    link, linked_folder = tmp_path / "link.jsonl", tmp_path / "linked"
    link.symlink_to(files["unfinished"] / "model.safetensors")
    linked_folder.symlink_to(files["unfinished"])
    targets = [
        link, linked_folder / "config.yaml", files["data"] / ".." / "run" / "labels.json", files["unfinished"] / "checkpoints",
        files["concat"] / "part-0", files["run"], files["unfinished"], files["group"], files["onnx"],
    ]  # fmt: skip
    assert_refused(run, OUTPUTS[output], targets)


@pytest.mark.parametrize("output", OUTPUTS, ids=" ".join)
def test_inputs_are_protected(
    run: Runner, files: dict[str, Path], assert_refused: Callable[..., None], output: tuple[str, str], tmp_path: Path
) -> None:
    words = OUTPUTS[output]
    names = [name for name in files if f"{{{name}}}" in words]
    targets = [files[name] for name in names]
    if "data" in names:
        targets += sorted(files["data"].iterdir())
    if "text" in names:
        targets.append(files["annotations"])
    for name in names:
        link = tmp_path / f"link-{files[name].name}"
        link.symlink_to(files[name])
        targets.append(link)
    assert_refused(run, words, targets)


def test_a_users_own_file_in_a_run_folder_can_be_replaced(run: Runner, files: dict[str, Path]) -> None:
    user_file = files["run"] / "mine.txt"
    user_file.write_text("old")
    try:
        result = run("evaluate", "--pred", files["pred"], "--gold", files["gold"], "--json", user_file)
        assert (result.code, result.err) == (0, "")
        assert json.loads(user_file.read_text())["micro"]["f1"] == 1
    finally:
        user_file.unlink()
