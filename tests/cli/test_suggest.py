"""``spanwise suggest``: inputs, skipped texts and outputs."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
import tiny
from cli_runner import Runner
from forked import forked_command

from spanwise.active_learning.simulate import Simulation
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Entity, Sentence
from spanwise.formats import read, write
from spanwise.prediction.load import load


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    folder = tmp_path / "pool"
    folder.mkdir()
    write(tiny.sentences(40, seed=5), folder / "pool.jsonl")
    return folder / "pool.jsonl"


def test_chosen_sentences_are_written_with_predictions(run: Runner, model: Path, pool: Path, tmp_path: Path) -> None:
    out = tmp_path / "next.jsonl"
    result = run("suggest", model, pool, "-n", 5, "--output", out)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(f"read 40 sentences\nwrote {out}: 5 sentences, ")
    chosen = list(read(out))
    notes = [(sentence.extra or {})["suggestion"] for sentence in chosen]
    assert [note["rank"] for note in notes] == [1, 2, 3, 4, 5]
    assert all(note["score"] > 0 for note in notes)
    by_id = {sentence.id: sentence for sentence in read(pool)}
    assert [note["document"] for note in notes] == [by_id[sentence.id].document for sentence in chosen]
    assert {sentence.document for sentence in chosen} == {None}
    plain = [Sentence(sentence.id, by_id[sentence.id].words) for sentence in chosen]
    assert [sentence.entities for sentence in chosen] == [sentence.entities for sentence in load(model, "cpu").predict(plain)]


def test_annotated_texts_are_skipped(run: Runner, model: Path, pool: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    assert run("suggest", model, pool, "-n", 30, "--output", first).code == 0
    result = run("suggest", model, pool, "-n", 30, "--annotated", first, "--output", second)
    lines = [
        "read 40 sentences, 30 skipped as annotated, repeated or empty",
        "fewer than 30 sentences are left to annotate; all of them were chosen",
    ]
    assert result.out.splitlines()[:2] == lines
    assert {s.id for s in read(first)}.isdisjoint(s.id for s in read(second))
    both = tmp_path / "both"
    both.mkdir()
    first.rename(both / "train.jsonl")
    second.rename(both / "dev.jsonl")
    result = run("suggest", model, pool, "--annotated", both, "--output", tmp_path / "3.jsonl")
    assert (result.code, result.err) == (2, "nothing to suggest: all 40 sentences of the pool are annotated already\n")
    assert not (tmp_path / "3.jsonl").exists()


@pytest.mark.parametrize(("strategy", "format"), [("uncertainty", "label_studio"), ("diversity", "brat"), ("random", "conll")])
def test_strategies_and_formats(run: Runner, model: Path, pool: Path, tmp_path: Path, strategy: str, format: str) -> None:
    out = tmp_path / {"label_studio": "tasks.json", "brat": "documents", "conll": "next.conll"}[format]
    result = run("suggest", model, pool, "-n", 4, "--strategy", strategy, "--to", format, "--output", out)
    assert result.code == 0, result.err
    assert len(list(read(out, format))) == 4
    if format == "label_studio":
        assert all(task["predictions"][0]["result"] for task in json.loads(out.read_text(encoding="utf-8")))
    if format == "brat":
        assert len(list(out.glob("**/*.txt"))) == 4  # sentences of one document are not joined


def test_raw_text_and_documents(run: Runner, model: Path, tmp_path: Path) -> None:
    texts, out = tmp_path / "texts", tmp_path / "next.jsonl"
    texts.mkdir()
    (texts / "a.txt").write_text("The oslo was seen. It rained in lima.\n", encoding="utf-8")
    (texts / "b.txt").write_text("A mite.\n", encoding="utf-8")
    result = run("suggest", model, texts, "--unit", "document", "-n", 1, "--output", out)
    assert (result.code, result.out.splitlines()[0]) == (0, "read 2 documents")
    assert [(sentence.document, sentence.position) for sentence in read(out)] == [("a", 0), ("a", 1)]


def test_wrong_options_are_refused_before_the_model_is_loaded(run: Runner, pool: Path, tmp_path: Path) -> None:
    out, missing = tmp_path / "out.jsonl", tmp_path / "no-model"
    (tmp_path / "letter").write_text("Dear all,\nno format.\n", encoding="utf-8")
    cases = [
        (("--strategy", "bset"), "unknown strategy 'bset'"),
        (("--unit", "word"), "unknown unit 'word'"),
        (("--prefer", "Drug=x"), "preferred type 'Drug=x': expected TYPE or TYPE=WEIGHT"),
        (("--strategy", "random", "--prefer", "Drug"), "the strategy random does not use a model's probabilities"),
        (("--annotated", tmp_path / "missing.jsonl"), f"{tmp_path / 'missing.jsonl'}: "),
        (("--annotated", tmp_path / "letter"), "set the format with --annotated-format (text, jsonl, "),
        (("--recipe", "grid"), "--recipe, --encoder, --epochs, --set, --limit and --repeats are for --simulate"),
        (("--simulate", pool.parent), "--simulate DATA trains its own models on DATA"),
    ]
    for options, message in cases:
        result = run("suggest", missing, pool, "--output", out, *options)
        assert (result.code, result.out) == (2, "")
        assert message in result.err
        assert result.err.count("\n") == 1
    for arguments in ((), ("suggest", missing), ("--output", out), (missing, "--output", out)):
        assert run("suggest", *arguments[1:] if arguments[:1] == ("suggest",) else arguments).code == 2
    assert not out.exists()


def test_an_interrupt_writes_nothing(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out" / "next.jsonl"
    out.parent.mkdir()
    line = b'{"tokens": ["oslo", "was", "seen"]}\n'
    with forked_command("suggest", model, "-", "--from", "jsonl", "--output", out) as command:
        for _ in range(100):  # more than a pipe holds: the command is reading when this is written
            command.stdin.write(line * 100)
        command.send_signal(signal.SIGINT)
        result = command.wait()
    assert result.code == 130
    assert "Traceback" not in result.err
    assert list(out.parent.iterdir()) == []


def test_simulation_writes_a_report(run: Runner, tmp_path: Path) -> None:
    data, out = tmp_path / "data", tmp_path / "curve"
    data.mkdir()
    for split, sentences in tiny.corpus(30).splits.items():
        write(sentences, data / f"{split}.jsonl")
    options = ["--recipe", "global-pointer", "--encoder", "static", "--epochs", 6, "--limit", 20, "--device", "cpu"]
    settings = [word for text in (*tiny.STATIC, "training.head_rate=0.03") for word in ("--set", text)]
    result = run("suggest", "--simulate", data, "-n", 10, *options, *settings, "--output", out)
    assert result.code == 0, result.err
    assert "seed 1, random: test F1 " in result.out
    assert result.out.endswith(f"wrote {out / 'report.html'}\n")
    rows = json.loads((out / "numbers.json").read_text(encoding="utf-8"))["sections"]["learning"]["tables"]["rounds"]
    assert {row["strategy"] for row in rows} == {"both", "random"}
    result = run("suggest", "--simulate", data, "--unit", "document", "--output", out)
    assert "--simulate counts sentences: omit --unit" in result.err
    result = run("suggest", "--simulate", data, "--output", data)
    assert (result.code, result.err.count("\n")) == (2, 1)
    result = run("suggest", "--simulate", data, *options, *settings, "--output", tmp_path / "new")
    message = "a simulation starts with 100 sentences; found only 30 training sentences; pass a smaller -n\n"
    assert (result.code, result.err) == (2, message), "the default of -n is 100"


def test_a_simulation_replaces_a_default_encoder_that_does_not_cover_the_text(
    run: Runner, tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spanwise.recipes.catalog.default_encoder", lambda: str(tiny_bert))
    simulated: list[Simulation] = []

    def stop(simulation: Simulation, *arguments: object, **options: object) -> None:
        simulated.append(simulation)
        raise SpanwiseError("stopped")

    monkeypatch.setattr("spanwise.active_learning.learning_curve.simulate_curves", stop)
    write([Sentence(str(n), tuple("奥斯陆是首都"), (Entity("Place", ((0, 3),)),)) for n in range(20)], tmp_path / "zh.jsonl")
    result = run("suggest", "--simulate", tmp_path / "zh.jsonl", "-n", 5, "--output", tmp_path / "curve")
    assert f"using the static encoder, because {tiny_bert} hardly knows the script or language of this data" in result.out
    assert simulated[0].config.encoder == {"kind": "static"}


def test_a_folder_that_is_not_empty_is_reported_before_any_work(run: Runner, pool: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a.txt").touch()
    result = run("suggest", tmp_path / "no-model", pool, "--output", tmp_path / "full", "--to", "brat")
    assert (result.code, result.err) == (2, f"{tmp_path / 'full'}: the folder is not empty; choose another folder\n")
