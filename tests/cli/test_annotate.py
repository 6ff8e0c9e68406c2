"""``spanwise annotate``: the whole command with a small model, in one process and in several."""

from __future__ import annotations

import gzip
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import tiny
from annotating import errors_of, rows_of
from cli_runner import Runner

from spanwise.annotation.engine import Event, ModelSettings, ShardDone
from spanwise.annotation.gpu_pool import GpuPool
from spanwise.annotation.job import JobFolder
from spanwise.annotation.shard_work import ShardWork
from spanwise.annotation.shards import plan_shards
from spanwise.annotation.sources import find_sources
from spanwise.cli.annotation_progress import AnnotationProgress


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    for name in ("a", "b"):
        texts = [" ".join(sentence.words) for sentence in tiny.sentences(30)]
        rows = [json.dumps({"id": f"{name}{n}", "text": text}) + "\n" for n, text in enumerate(texts)]
        (folder / f"{name}.jsonl").write_text("".join(rows), encoding="utf-8")
    return folder


def test_several_processes_write_the_same_files_as_one(run: Runner, model: Path, data: Path, tmp_path: Path) -> None:
    summary = tmp_path / "summary.json"
    result = run("annotate", model, data, tmp_path / "one", "--workers", 1, "--device", "cpu", "--json", summary)
    assert (result.code, result.err) == (0, "")
    assert f"wrote {tmp_path / 'one'}: 60 rows" in result.out
    counts = json.loads(summary.read_text())
    assert (counts["rows"], counts["errors"], counts["shards"]) == (60, 0, 2)
    assert counts["entities"] > 10
    result = run("annotate", model, data, tmp_path / "two", "--workers", 2, "--threads", 2, "--device", "cpu")
    assert (result.code, result.err) == (0, "")
    for name in ("a-00000.jsonl", "b-00000.jsonl"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert len(rows_of(tmp_path / "two")) == 60
    # One process runs the network, as on a GPU; batches are larger, so that scores differ in the last digit.
    work = ShardWork(JobFolder(tmp_path / "three", ".jsonl"), "jsonl")
    events: list[Event] = []
    shards = plan_shards(find_sources(str(data)), 1 << 20)
    GpuPool(work, ModelSettings(str(model)), workers=1).run(shards, events.append)
    assert sum(isinstance(event, ShardDone) for event in events) == 2
    for one, three in zip(rows_of(tmp_path / "one"), rows_of(tmp_path / "three"), strict=True):
        assert [rounded(entity) for entity in one["entities"]] == [rounded(entity) for entity in three["entities"]]


def rounded(entity: dict[str, Any]) -> dict[str, Any]:
    return {**entity, "score": round(entity["score"], 4)}


def test_failed_rows_give_exit_code_1(run: Runner, model: Path, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"text": "oslo"}\n{"text": null}\n{\n', encoding="utf-8")
    out = tmp_path / "out"
    result = run("annotate", model, tmp_path / "in.jsonl", out, "--device", "cpu")
    assert result.code == 1
    assert f"2 rows failed; the reasons are in {out / '_errors'}" in result.err
    assert [error["reason"][:14] for error in errors_of(out)] == ["the text is nu", "not valid JSON"]
    result = run("annotate", model, tmp_path / "in.jsonl", out, "--device", "cpu")
    assert (result.code, "finished shards: 1 of 1; resuming" in result.err) == (1, True)
    result = run("annotate", model, tmp_path / "in.jsonl", out, "--device", "cpu", "--threshold", "0.9")
    assert (result.code, result.err.count("\n")) == (2, 1)


def test_progress_shows_rates_and_remaining_time(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x\n" * 1000)
    (tmp_path / "b.txt").write_text("x\n" * 1000)
    shards = plan_shards(find_sources(str(tmp_path)), 10_000)
    now = 0.0
    with AnnotationProgress(clock=lambda: now) as progress:
        progress.start(shards, [])
        now = 100.0
        progress.advance(1000, 5000)
        progress.finish_shard(shards[0], 1000)
        assert progress.text == "1 of 2 shards, 1,000 rows, 10 rows/s, 50 words/s, 0:01:40 left"
        now = 190.0
        progress.advance(900, 4500)  # of the second shard
        assert progress.text == "1 of 2 shards, 1,900 rows, 10 rows/s, 50 words/s, 0:00:10 left"


def test_the_bar_shows_the_same_remaining_time_as_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text("x\n" * 1000)
    shards = plan_shards(find_sources(str(tmp_path)), 10_000)
    now = 0.0
    with AnnotationProgress(clock=lambda: now) as progress:
        progress.start(shards, [])
        now, progress.rows, progress.words = 100.0, 1000, 5000
        progress.finish_shard(shards[0], 1000)
        assert progress.text == "1 of 2 shards, 1,000 rows, 10 rows/s, 50 words/s, 0:01:40 left"
    line = re.sub(r"\x1b\[\d+m", "", terminal.getvalue())  # without colours
    assert "━ 1/2 1,000 rows, 10 rows/s, 50 words/s, 0:01:40 left" in line


def test_an_interrupted_command_says_how_to_continue(
    run: Runner, model: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("spanwise.annotation.run.annotate", interrupt)
    result = run("annotate", model, data, tmp_path / "out")
    assert (result.code, result.err) == (130, "spanwise: interrupted; run the same command again to continue\n")


def test_a_note_says_that_compressed_files_are_not_split(run: Runner, model: Path, data: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl.gz").write_bytes(gzip.compress((data / "a.jsonl").read_bytes()))
    result = run("annotate", model, tmp_path / "in", tmp_path / "out", "--device", "cpu", "--shard-size", 1024)
    note = "note: the shard size does not apply to 1 compressed input file: each is one shard\n"
    assert (result.code, result.err) == (0, note)
    assert run("annotate", model, data, tmp_path / "plain", "--device", "cpu", "--shard-size", 1024).err == ""


def test_a_shard_size_in_megabytes_is_refused(run: Runner, model: Path, data: Path, tmp_path: Path) -> None:
    """Shards of 32 bytes would be thousands of files, most of them empty."""
    result = run("annotate", model, data, tmp_path / "out", "--shard-size", 32)
    assert (result.code, "greater than or equal to 1024" in result.err) == (2, True)
    assert not (tmp_path / "out").exists()
