"""Data on standard output."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from cli_runner import Runner

from spanwise.cli import main
from spanwise.core.types import Entity, Sentence
from spanwise.formats import write
from spanwise.prediction.outputs import print_predictions

TOKYO = Sentence("a", ("東京",), (Entity("地名", ((0, 1),)),))


def ascii_output(monkeypatch: pytest.MonkeyPatch) -> io.BytesIO:
    """Replace standard output by that of the locale C; Windows has similar ones."""
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii", errors="replace"))
    return written


@pytest.mark.parametrize("arguments", [("label-studio", "config"), ("describe", "--json", "-")])
def test_data_is_utf_8_in_every_locale(arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write([TOKYO], tmp_path / "data.jsonl")
    output = ascii_output(monkeypatch)
    with pytest.raises(SystemExit):
        main([*arguments, str(tmp_path / "data.jsonl")])
    assert "地名" in output.getvalue().decode()


def test_printed_predictions_are_utf_8_in_every_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    output = ascii_output(monkeypatch)
    print_predictions([TOKYO])
    sys.stdout.flush()
    assert "東京" in output.getvalue().decode()


def test_a_dash_is_standard_output(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages go to standard error, and no file has the name ``-``."""
    monkeypatch.chdir(tmp_path)
    write([TOKYO], tmp_path / "data.jsonl")
    for target in ("-", "/dev/stdout"):
        result = run("convert", "data.jsonl", target, "--to", "jsonl")
        assert (result.code, result.out) == (0, (tmp_path / "data.jsonl").read_text(encoding="utf-8"))
        assert "wrote /dev/stdout" in result.err
    assert not Path("-").exists()
    assert "cannot infer the output format" in run("convert", "data.jsonl", "-").err


def test_predictions_on_standard_output_have_no_messages_in_between(run: Runner, model: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("in Oslo")
    for command, *options in (("predict", "--to", "jsonl"), ("suggest", "--to", "jsonl"), ("predict",), ("suggest",)):
        result = run(command, model, tmp_path / "a.txt", "--output", "-", *options)
        assert [json.loads(line)["tokens"] for line in result.out.splitlines()] == [["in", "Oslo"]]
        assert "wrote /dev/stdout: 1 sentence," in result.err


def test_a_file_that_standard_output_is_appended_to_keeps_its_content(tmp_path: Path) -> None:
    write([TOKYO], tmp_path / "data.jsonl")
    record = (tmp_path / "data.jsonl").read_bytes()
    command = [sys.executable, "-m", "spanwise", "convert", "data.jsonl", "/dev/stdout", "--to", "jsonl"]
    with (tmp_path / "all.jsonl").open("ab") as target:
        for _ in range(2):
            subprocess.run(command, cwd=tmp_path, stdout=target, check=True)
    assert (tmp_path / "all.jsonl").read_bytes() == record * 2
