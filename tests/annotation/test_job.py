"""Annotation of files: the output, and the effect of a second command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest
from annotating import KeywordPredictor, errors_of, model_folder, rows_of

from spanwise.annotation.job import SETTINGS, JobFolder
from spanwise.annotation.run import annotate
from spanwise.core.errors import SpanwiseError


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("a", "b"):
        rows = [{"id": f"{name}{n}", "text": f"Row {n} in Oslo.", "tags": [n]} for n in range(20)]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder


def run(model: Path, data: Path, out: Path, **options: Any) -> dict[str, Any]:
    return annotate(model, data, out, device="cpu", workers=1, **{"shard_size": 400, **options}).to_json()


def test_all_columns_are_kept_and_rows_stay_in_order(model: Path, data: Path, tmp_path: Path) -> None:
    summary = run(model, data, tmp_path / "out")
    assert (summary["rows"], summary["errors"], summary["entities"], summary["words"]) == (40, 0, 40, 200)
    assert summary["shards"] > 3
    rows = rows_of(tmp_path / "out")
    assert [row["id"] for row in rows] == [f"{name}{n}" for name in "ab" for n in range(20)]
    assert rows[3]["tags"] == [3]
    assert rows[3]["entities"] == [
        {"type": "Place", "text": "Oslo", "score": 0.5, "start": 9, "end": 13, "fragments": [{"start": 9, "end": 13}]}
    ]
    assert "relations" not in rows[3]


def test_a_second_command_repeats_nothing(model: Path, data: Path, tmp_path: Path, keywords: KeywordPredictor) -> None:
    out = tmp_path / "out"
    first = run(model, data, out)
    assert keywords.sentences == 40
    files = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    second = run(model, data, out, shard_size=None)  # the size of the first command
    assert keywords.sentences == 40
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == files
    assert (second["finished_before"], second["rows"]) == (first["shards"], first["rows"])
    # A shard without its marker, as after a kill, is annotated again; its rows are not duplicated.
    next((out / "_done").rglob("a-00001.json")).unlink()
    run(model, data, out)
    assert 40 < keywords.sentences < 60
    assert [row["id"] for row in rows_of(out)] == [f"{name}{n}" for name in "ab" for n in range(20)]
    # A new file is added to the same output.
    (data / "c.jsonl").write_text('{"text": "Quito"}\n', encoding="utf-8")
    assert run(model, data, out)["rows"] == 41


def test_other_settings_are_refused(model: Path, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(model, data, out)
    other = model_folder(tmp_path / "other", "other")
    for changes, problem in (
        ({"threshold": 0.5}, "was annotated with another threshold (0.0, now 0.5)"),
        ({"text_column": "id"}, "another text column (text, now id)"),
        ({"shard_size": 500}, "another shard size (400, now 500)"),
        ({"format": "parquet"}, "another format (jsonl, now parquet)"),
        ({"model": other}, "another model"),
    ):
        with pytest.raises(SpanwiseError) as refusal:
            run(changes.pop("model", model), data, out, **changes)  # type: ignore[arg-type]
        assert problem in str(refusal.value)
        assert "\n" not in str(refusal.value)


def test_a_command_that_wrote_nothing_can_be_repeated_with_other_settings(
    model: Path, data: Path, tmp_path: Path, keywords: KeywordPredictor
) -> None:  # fmt: skip
    keywords.needs_spans = True
    with pytest.raises(SpanwiseError, match="this model types given spans"):
        run(model, data, tmp_path / "out")
    keywords.needs_spans = False
    assert run(model, data, tmp_path / "out", threshold=0.4)["rows"] == 40


def test_a_changed_or_missing_input_is_refused(model: Path, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(model, data, out)
    (data / "b.jsonl").write_text('{"text": "new"}\n', encoding="utf-8")
    with pytest.raises(SpanwiseError, match=r"has changed since it was annotated|is not part of this input"):
        run(model, data, out)
    (data / "b.jsonl").unlink()
    with pytest.raises(SpanwiseError, match="has the shard b-00000, which is not part of this input"):
        run(model, data, out)


def test_outputs_that_would_do_harm_are_refused(model: Path, data: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes").touch()
    with pytest.raises(SpanwiseError, match="the folder is not empty"):
        run(model, data, tmp_path / "full")
    with pytest.raises(SpanwiseError, match="contains the input"):
        run(model, data, data)
    with JobFolder(tmp_path / "out", ".jsonl").lock(), pytest.raises(SpanwiseError, match="is annotating into this folder"):
        run(model, data, tmp_path / "out")


def test_an_output_inside_the_input_folder_can_be_resumed(model: Path, data: Path, keywords: KeywordPredictor) -> None:
    first = run(model, data, data / "out")
    next((data / "out" / "_done").rglob("a-00001.json")).unlink()
    assert run(model, data, data / "out") == {**first, "finished_before": first["shards"] - 1, "seconds": ANY}
    assert len(rows_of(data / "out")) == 40
    with pytest.raises(SpanwiseError, match="contains the input"):
        run(model, data / "out", data / "out")


def test_a_glob_that_matches_the_output_can_be_resumed(model: Path, data: Path, keywords: KeywordPredictor) -> None:
    """The names of shards are relative to the folder of the inputs, whether or not there are outputs."""
    pattern, out = data.parent / "**" / "*.jsonl", data.parent / "out"
    first = run(model, pattern, out)
    assert run(model, pattern, out) == {**first, "finished_before": first["shards"], "seconds": ANY}


def test_a_kill_while_the_settings_are_written_does_not_block_the_folder(model: Path, data: Path, tmp_path: Path) -> None:
    leftover = tmp_path / "out" / f".{SETTINGS}.abcd1234"
    leftover.mkdir(parents=True)
    (leftover / SETTINGS).write_text('{"mod')
    assert run(model, data, tmp_path / "out")["rows"] == 40
    assert not leftover.exists()


def test_wrong_options_are_refused(model: Path, data: Path, tmp_path: Path) -> None:
    for changes, problem in (
        ({"text_column": "body"}, "no column 'body'; pass --text-column with one of id, text, tags"),
        ({"format": "csv"}, "unknown output format 'csv'"),
        ({"precision": "int8"}, "unknown precision 'int8'"),
        ({"precision": "half"}, "precision half: needs a GPU"),
    ):
        with pytest.raises(SpanwiseError, match=problem):
            run(model, data, tmp_path / "out", **changes)
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("indent", [None, 2])
def test_a_json_array_is_refused(model: Path, tmp_path: Path, indent: int | None) -> None:
    (tmp_path / "in.json").write_text(json.dumps([{"text": "Oslo"}, {"text": "Quito"}], indent=indent), encoding="utf-8")
    with pytest.raises(SpanwiseError, match=r"in.json: is a JSON array; expected JSON lines"):
        run(model, tmp_path / "in.json", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_parquet_keeps_the_types_of_columns(model: Path, tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table(
        {"n": pa.array([1, 2, 3], pa.uint8()), "text": ["Oslo", None, "x"], "when": pa.array([0, 1, 2], pa.date32()),
         "kind": pa.array(["a", "b", "a"]).dictionary_encode(), "pairs": pa.array([[("k", 1)]] * 3, pa.map_(pa.string(), pa.int8())),
         "view": pa.array(["a", "b", "c"], pa.string_view())}
    ).replace_schema_metadata({"key": "value"})  # fmt: skip
    pq.write_table(table, tmp_path / "in.parquet")
    summary = run(model, tmp_path / "in.parquet", tmp_path / "out")
    assert (summary["rows"], summary["errors"]) == (2, 1)
    result = pq.read_table(tmp_path / "out")
    assert result.drop_columns("entities").schema.equals(table.schema)
    assert result.schema.metadata == {b"key": b"value"}
    assert result.drop_columns("entities").to_pylist() == [table.to_pylist()[index] for index in (0, 2)]
    assert [len(entities) for entities in result.column("entities").to_pylist()] == [1, 0]
    (error,) = errors_of(tmp_path / "out")
    assert (error["place"], error["row"]["n"]) == (1, 2)
    assert error["reason"].startswith("the text is null")


def test_json_rows_as_parquet(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns of several types hold JSON; a row that does not fit the inferred schema fails."""
    pq = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr("spanwise.annotation.writing.SCHEMA_BATCHES", 2)
    monkeypatch.setattr("spanwise.annotation.reading.ROWS", 2)
    rows = [{"text": "Oslo", "a": 1}, {"text": "x", "a": "one"}, {"text": "x", "b": {"c": 1}}, {"text": "x", "a": 2.5},
            {"text": "x", "b": {"c": 2}}, {"text": "x", "d": 1}, {"text": "\ud800"}]  # fmt: skip
    (tmp_path / "in.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    summary = run(model, tmp_path / "in.jsonl", tmp_path / "out", format="parquet", shard_size=10_000)
    assert (summary["rows"], summary["errors"], summary["failed_shards"]) == (5, 2, [])
    result = pq.read_table(tmp_path / "out").to_pylist()
    assert [row["a"] for row in result] == ["1", '"one"', None, "2.5", None]
    assert list(result[0]) == ["text", "a", "b", "entities"]
    assert [row["b"] for row in result][2] == {"c": 1}
    assert [error["row"].get("d") for error in errors_of(tmp_path / "out")] == [1, None]


def test_rows_with_times_that_python_does_not_have(model: Path, tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    times = {
        "nanoseconds": pa.array([1, 1], pa.timestamp("ns")), "far": pa.array([2**50, 2**50], pa.timestamp("ms", "UTC")),
        "nested": pa.array([[{"at": 1}], [{"at": 1}]], pa.list_(pa.struct([("at", pa.time64("ns"))]))),
        "duration": pa.array([3, 3], pa.duration("ns")),
        "map": pa.array([[("a", 1)], [("a", 1000), ("b", 1)]], pa.map_(pa.string(), pa.time64("ns"))),
    }  # fmt: skip
    table = pa.table({"text": ["Oslo", None], **times})
    pq.write_table(table, tmp_path / "in.parquet")
    for format in ("parquet", "jsonl"):
        summary = run(model, tmp_path / "in.parquet", tmp_path / format, format=format)
        assert (summary["rows"], summary["errors"], summary["failed_shards"]) == (1, 1, [])
        (error,) = errors_of(tmp_path / format)
        assert error["row"]["nanoseconds"] == "1970-01-01 00:00:00.000000001"
        assert error["row"]["nested"] == [{"at": "00:00:00.000000001"}]
        assert error["row"]["map"] == [["a", "00:00:00.000001"], ["b", "00:00:00.000000001"]]  # pairs, as without such times
        assert (type(error["row"]["far"]), error["row"]["duration"]) == (str, "3")
    assert pq.read_table(tmp_path / "parquet").drop_columns("entities").equals(table.slice(0, 1))
    (row,) = rows_of(tmp_path / "jsonl")
    assert row["nanoseconds"] == "1970-01-01 00:00:00.000000001"


def test_shards_without_rows_do_not_hide_the_columns_of_others(model: Path, tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    (tmp_path / "tables").mkdir()
    full = pa.table({"n": [1], "text": ["Oslo"]})
    pq.write_table(full.slice(0, 0), tmp_path / "tables" / "a.parquet")
    pq.write_table(full, tmp_path / "tables" / "b.parquet")
    (tmp_path / "lines").mkdir()
    (tmp_path / "lines" / "a.jsonl").touch()
    (tmp_path / "lines" / "b.jsonl").write_text('{"n": 1, "text": "Oslo"}\n', encoding="utf-8")
    (tmp_path / "lines" / "c.jsonl").write_text('{"n": 1, "text": null}\n', encoding="utf-8")
    for name, errors in (("tables", 0), ("lines", 1)):
        for finished in (0, 2 + errors):
            summary = run(model, tmp_path / name, tmp_path / "out" / name, format="parquet")
            assert (summary["rows"], summary["errors"], summary["finished_before"]) == (1, errors, finished)
        assert pq.read_table(tmp_path / "out" / name).drop_columns("entities").equals(full)
