"""Typing models on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_runner import Runner
from tiny import STATIC, corpus

from spanwise import SpanwiseError
from spanwise.formats import write
from spanwise.prediction.load import load

SETTINGS = (*STATIC, "encoder.glove.iterations=2", "head.hidden=8", "training.head_rate=0.03")


def test_commands_with_a_typing_model(tmp_path: Path, run: Runner) -> None:
    data = corpus(60)
    (tmp_path / "data").mkdir()
    for split in data:
        write(data[split], tmp_path / "data" / f"{split}.jsonl")
    options = [part for setting in SETTINGS for part in ("--set", setting)]
    out = tmp_path / "run"
    done = run(
        "train",
        tmp_path / "data",
        "--recipe",
        "sng",
        "--task",
        "typing",
        "--out",
        out,
        "--epochs",
        4,
        "--batch-size",
        8,
        "--device",
        "cpu",
        *options,
    )
    assert done.code == 0, done.err
    assert "test: typing accuracy 100.00" in done.out
    assert "paper_f1 = 2a / (1 + a) = 100.00" in done.out

    scored = run("evaluate", out, tmp_path / "data", "--device", "cpu", "--json", tmp_path / "scores.json")
    assert scored.code == 0
    assert "typing accuracy 100.00" in scored.out
    written = json.loads((tmp_path / "scores.json").read_text())
    assert written == json.loads((out / "run.json").read_text())["scores"]["test"]

    predicted = run("predict", out, tmp_path / "data" / "test.jsonl", "--device", "cpu")
    assert predicted.code == 0
    records = [json.loads(line) for line in predicted.out.splitlines()]
    assert [{(e["type"], str(e["spans"])) for e in r["entities"]} for r in records] == [
        {(e.type, str([list(f) for f in e.fragments])) for e in s.entities} for s in data["test"]
    ]

    (tmp_path / "raw.txt").write_text("it rained near oslo", encoding="utf-8")
    rejected = run("predict", out, tmp_path / "raw.txt", "--device", "cpu")
    assert (rejected.code, rejected.out) == (2, "")
    assert "this model types given spans; expected sentences with entities" in rejected.err
    with pytest.raises(SpanwiseError, match="expected sentences with entities"):
        load(out, "cpu").predict("it rained near oslo")

    described = run("describe", out)
    assert described.code == 0
