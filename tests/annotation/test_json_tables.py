"""JSON rows as parquet: every value is written unchanged, or its row fails with a reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from annotating import errors_of

from spanwise.annotation.run import annotate

pq = pytest.importorskip("pyarrow.parquet")


def write_parquet(model: Path, folder: Path, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Annotate JSON rows into parquet, and read the result without predictions."""
    folder.mkdir(exist_ok=True)
    (folder / "in.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    annotate(model, folder / "in.jsonl", folder / "out", device="cpu", workers=1, format="parquet")
    return [
        {name: value for name, value in row.items() if name != "entities"} for row in pq.read_table(folder / "out").to_pylist()
    ]


@pytest.mark.parametrize(
    ("first", "later"),
    [(1, 2.5), (1, True), (0.5, True), (["a"], "ab"), ({"a": 1}, {"a": 1, "b": 2}), ([{"a": 1}], [{"b": 2}]), (None, "x"), (1, 2**70)],
)  # fmt: skip
def test_a_later_value_of_another_type_is_not_changed_to_fit(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: object, later: object
) -> None:
    monkeypatch.setattr("spanwise.annotation.writing.SCHEMA_BATCHES", 1)
    monkeypatch.setattr("spanwise.annotation.reading.ROWS", 1)
    rows = write_parquet(model, tmp_path, [{"text": "Oslo", "a": first}, {"text": "x", "a": later}, {"text": "y", "a": first}])
    assert rows == [{"text": "Oslo", "a": first}, {"text": "y", "a": first}]
    (error,) = errors_of(tmp_path / "out")
    assert (error["row"]["a"], "does not fit the parquet columns" in error["reason"]) == (later, True)


@pytest.mark.parametrize(("first", "later"), [(0.5, 1), ([1], []), ({"a": 1}, {}), ({"a": [0.5]}, {"a": [1]}), ("x", None)])
def test_a_later_value_that_fits_is_written(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: object, later: object
) -> None:
    monkeypatch.setattr("spanwise.annotation.writing.SCHEMA_BATCHES", 1)
    monkeypatch.setattr("spanwise.annotation.reading.ROWS", 1)
    rows = write_parquet(model, tmp_path, [{"text": "Oslo", "a": first}, {"text": "x", "a": later}])
    assert [row["a"] for row in rows] == [first, {"a": None} if later == {} else later]


def test_columns_that_parquet_does_not_have_hold_json(model: Path, tmp_path: Path) -> None:
    rows = write_parquet(model, tmp_path, [{"text": "x", "a": {}, "b": [{}], "c": {"d": {}}}])
    assert rows == [{"text": "x", "a": "{}", "b": "[{}]", "c": '{"d": {}}'}]


@pytest.mark.parametrize(
    ("first", "later"), [(0.5, True), ([0.5], [None, False]), ({"n": 0.5, "is": True}, {"n": True, "is": False})]
)
def test_booleans_among_numbers_are_not_changed_to_numbers(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: object, later: object
) -> None:
    values = [first, None, later]
    rows = write_parquet(model, tmp_path / "first", [{"text": "x", "a": value} for value in values])
    assert [row["a"] and json.loads(row["a"]) for row in rows] == values  # of several types, so the column holds JSON
    monkeypatch.setattr("spanwise.annotation.writing.SCHEMA_BATCHES", 1)
    monkeypatch.setattr("spanwise.annotation.reading.ROWS", 3)
    rows = write_parquet(model, tmp_path / "later", [{"text": "x", "a": value} for value in (first, first, first, *values)])
    assert [row["a"] for row in rows] == [*[first] * 4, None]
    (error,) = errors_of(tmp_path / "later" / "out")
    assert error["row"]["a"] == later


def test_a_column_whose_name_is_not_unicode_fails_alone(model: Path, tmp_path: Path) -> None:
    assert write_parquet(model, tmp_path, [{"text": "Oslo", "\ud800": 1}, {"text": "x"}]) == [{"text": "x"}]
    (error,) = errors_of(tmp_path / "out")
    assert error["row"] == {"text": "Oslo", "\ud800": 1}
