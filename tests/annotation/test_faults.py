"""Damaged inputs, rows that end a process, a full disk: nothing is lost, nothing is duplicated."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from annotating import DEADLY, KeywordPredictor, errors_of, rows_of, work_with_keywords

from spanwise.annotation.annotator import Annotator
from spanwise.annotation.crashes import StartNote
from spanwise.annotation.engine import Event, ModelSettings, Note, ShardDone, ShardFailed
from spanwise.annotation.job import JobFolder
from spanwise.annotation.pool import ProcessPool
from spanwise.annotation.run import annotate
from spanwise.annotation.shard_work import ShardWork
from spanwise.annotation.shards import Shard, plan_shards
from spanwise.annotation.sources import find_sources
from spanwise.files.disk import DiskFullError


def write_rows(path: Path, texts: list[Any]) -> None:
    path.parent.mkdir(exist_ok=True)
    lines = [json.dumps({"id": f"{path.stem}{n}", "text": text}) for n, text in enumerate(texts)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def run(model: Path, data: Path, out: Path, **options: Any) -> dict[str, Any]:
    return annotate(model, data, out, device="cpu", workers=1, **options).to_json()


def ids(folder: Path) -> list[str]:
    return [row["id"] for row in rows_of(folder)]


def test_a_damaged_file_fails_alone_and_is_annotated_after_its_repair(model: Path, tmp_path: Path) -> None:
    data, out = tmp_path / "data", tmp_path / "out"
    write_rows(data / "a.jsonl", ["Oslo"] * 3)
    compressed = gzip.compress((data / "a.jsonl").read_bytes() * 50)
    (data / "b.jsonl.gz").write_bytes(compressed[:-9])
    (data / "c.parquet").write_bytes(b"PAR1 no parquet PAR1")
    summary = run(model, data, out)
    assert (summary["rows"], summary["errors"], summary["shards"]) == (3, 0, 3)
    reasons = [shard["reason"] for shard in summary["failed_shards"]]
    assert ["b.jsonl.gz: cannot be read" in reasons[0], "c.parquet: cannot be read" in reasons[1]] == [True, True]
    assert ids(out) == ["a0", "a1", "a2"]
    (data / "b.jsonl.gz").write_bytes(compressed)
    (data / "c.parquet").unlink()
    summary = run(model, data, out)
    assert (summary["rows"], summary["finished_before"], summary["failed_shards"]) == (153, 1, [])


def test_a_damaged_first_file_does_not_refuse_the_job(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pa = pytest.importorskip("pyarrow")
    write_rows(tmp_path / "data" / "b.jsonl", ["Oslo"])
    (tmp_path / "data" / "a.parquet").write_bytes(b"PAR1 no parquet PAR1")

    def fail(*arguments: object) -> None:
        raise OSError("Invalid column metadata (corrupt file?)")

    monkeypatch.setattr(pa.parquet, "ParquetFile", fail)
    summary = run(model, tmp_path / "data", tmp_path / "out")
    assert (summary["rows"], len(summary["failed_shards"])) == (1, 1)


def test_rows_that_cannot_be_annotated_are_written_with_their_reason(model: Path, tmp_path: Path) -> None:
    write_rows(tmp_path / "data" / "a.jsonl", ["Oslo", None, "boom", 3, "Quito"])
    summary = run(model, tmp_path / "data", tmp_path / "out")
    assert (summary["rows"], summary["errors"]) == (2, 3)
    assert ids(tmp_path / "out") == ["a0", "a4"]
    errors = errors_of(tmp_path / "out")
    assert [error["row"]["id"] for error in errors] == ["a1", "a2", "a3"]
    assert errors[1]["reason"] == "out of memory"
    assert errors[1]["source"].endswith("a.jsonl")


def test_a_row_of_ten_megabytes(model: Path, tmp_path: Path) -> None:
    huge = "In Oslo.\n" + " " * 5_000_000 + "x" * 5_000_000 + "\nIn Quito."
    write_rows(tmp_path / "data" / "a.jsonl", ["Oslo", huge, "Oslo"])
    assert run(model, tmp_path / "data", tmp_path / "out", shard_size=1 << 20)["rows"] == 3
    row = rows_of(tmp_path / "out")[1]
    assert row["text"] == huge
    assert [huge[entity["start"] : entity["end"]] for entity in row["entities"]] == ["Oslo", "Quito"]


def test_a_full_disk_ends_the_job_and_the_next_command_finishes_it(
    model: Path, tmp_path: Path, keywords: KeywordPredictor
) -> None:
    resource = pytest.importorskip("resource", reason="this system has no limit on the size of files")
    data, out = tmp_path / "data", tmp_path / "out"
    write_rows(data / "a.jsonl", ["Oslo"] * 3)
    write_rows(data / "b.jsonl", ["Oslo"] * 300)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(DiskFullError, match="File too large"):
            run(model, data, out)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert ids(out) == ["a0", "a1", "a2"]
    keywords.sentences = 0
    assert run(model, data, out)["rows"] == 303
    assert keywords.sentences == 300
    assert len(set(ids(out))) == len(ids(out)) == 303


def test_a_kill_before_the_marker_duplicates_nothing(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_rows(tmp_path / "data" / "a.jsonl", ["Oslo", None])

    def killed(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(JobFolder, "finish", killed)
        with pytest.raises(KeyboardInterrupt):
            run(model, tmp_path / "data", tmp_path / "out")
    assert (ids(tmp_path / "out"), len(errors_of(tmp_path / "out"))) == (["a0"], 1)
    summary = run(model, tmp_path / "data", tmp_path / "out")
    assert (summary["rows"], summary["errors"]) == (1, 1)
    assert (ids(tmp_path / "out"), len(errors_of(tmp_path / "out"))) == (["a0"], 1)


def test_a_row_is_blamed_after_two_deaths_in_its_batch_and_two_at_the_row(tmp_path: Path) -> None:
    places, file = [0, 10, 20], tmp_path / "note.json"
    for _ in range(2):
        note = StartNote.read(file)
        assert not note.is_suspicious(places)
        note.start(0, 20)
    for _ in range(2):
        note = StartNote.read(file)
        assert note.is_suspicious(places)
        assert not note.blamed(places)
        note.start(0, 0)
        note.start(10, 10)
    assert list(StartNote.read(file).blamed(places)) == [1]
    assert not StartNote.read(file).is_suspicious([30, 40])


def test_an_interruption_is_no_death(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who interrupts the command twice at a slow row must not lose the row."""
    write_rows(tmp_path / "data" / "a.jsonl", ["Oslo"])

    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Annotator, "annotate", interrupted)
        for _ in range(3):
            with pytest.raises(KeyboardInterrupt):
                run(model, tmp_path / "data", tmp_path / "out")
    assert run(model, tmp_path / "data", tmp_path / "out")["rows"] == 1


@pytest.fixture
def pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[list[Shard], list[Event]]]:
    """Annotate with a process whose predictor is killed by a word of the text."""
    import multiprocessing

    # Without torch, which the predictor does not need, processes start faster.
    monkeypatch.setattr("spanwise.annotation.pool.worker_context", lambda model: multiprocessing.get_context("forkserver"))
    monkeypatch.setattr(ProcessPool, "target", lambda self: work_with_keywords)

    def annotate_rows(**texts: list[str]) -> tuple[list[Shard], list[Event]]:
        for name, rows in texts.items():
            write_rows(tmp_path / "data" / f"{name}.jsonl", rows)
        shards = plan_shards(find_sources(str(tmp_path / "data")), 1 << 20)
        events: list[Event] = []
        work = ShardWork(JobFolder(tmp_path / "out", ".jsonl"), "jsonl")
        ProcessPool(work, ModelSettings("keywords"), workers=1).run(shards, events.append)
        return shards, events

    return annotate_rows


def test_a_worker_that_dies_is_replaced_and_its_row_reported(pool: Any, tmp_path: Path) -> None:
    # Three earlier deaths: two in the batch, and one at the row.
    note = tmp_path / "out" / "_started" / "b-00000.json"
    note.parent.mkdir(parents=True)
    deadly = len('{"id": "b0", "text": "Oslo"}\n')
    note.write_text(json.dumps({"rows": [deadly, deadly], "deaths": [[0, 2 * deadly, 2]]}))
    shards, events = pool(a=["Oslo"] * 3, b=["Oslo", f"Row {DEADLY} row", "Quito"], c=["Quito"])
    done = {event.shard.name: event.result for event in events if isinstance(event, ShardDone)}
    assert {name: (result.rows, result.errors) for name, result in done.items()} == {
        "a-00000": (3, 0), "b-00000": (2, 1), "c-00000": (1, 0),
    }  # fmt: skip
    assert not [event for event in events if isinstance(event, ShardFailed)]
    (text,) = [event.text for event in events if isinstance(event, Note)]
    assert "was ended by signal 9 (SIGKILL)" in text
    assert f"b.jsonl, bytes {deadly} to {deadly};" in text
    assert ids(tmp_path / "out") == ["a0", "a1", "a2", "b0", "b2", "c0"]
    (error,) = errors_of(tmp_path / "out")
    assert (error["row"]["id"], error["reason"]) == ("b1", "the process died while it annotated this row")
    # The same output as that of one process without the row.
    work = ShardWork(JobFolder(tmp_path / "alone", ".jsonl"), "jsonl")
    (tmp_path / "alone").mkdir()
    for shard in shards:
        if shard.name != "b-00000":
            work.annotate(shard, Annotator(KeywordPredictor()))
            alone, shared = (folder / f"{shard.name}.jsonl" for folder in (tmp_path / "alone", tmp_path / "out"))
            assert alone.read_bytes() == shared.read_bytes()
