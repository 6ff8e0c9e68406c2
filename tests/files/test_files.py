"""Streaming JSON and atomic outputs."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spanwise import FormatError, SpanwiseError
from spanwise.files import json_arrays
from spanwise.files.reading import read_json_records
from spanwise.files.writing import atomic_output

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=5),
    lambda values: (
        st.lists(values, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=3), values, max_size=3)
    ),
    max_leaves=8,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)
@given(items=st.lists(JSON, max_size=8), indent=st.sampled_from([None, 1]), chunk=st.integers(1, 40), escape=st.booleans())
def test_arrays_are_read_in_chunks_of_any_size(
    tmp_path: Path, items: list[Any], indent: int | None, chunk: int, escape: bool
) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(items, indent=indent, ensure_ascii=escape), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_arrays, "CHUNK", chunk)
        assert [item for _, item in json_arrays.read_array_items(path)] == items


def test_json_lines_and_arrays_are_distinguished(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    for text in ('[{"a": 1},\n {"a": 2}]', '{"a": 1}\n\n{"a": 2}\n', '\ufeff[{"a": 1},{"a": 2}\n]\n'):
        path.write_text(text, encoding="utf-8")
        assert [item for _, item in read_json_records(path)] == [{"a": 1}, {"a": 2}]
    path.write_text("[1, 2]\n[3]\n", encoding="utf-8")
    assert [item for _, item in read_json_records(path)] == [[1, 2], [3]]
    path.write_text("", encoding="utf-8")
    assert list(read_json_records(path)) == []


def test_records_have_line_numbers(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('[\n{"a":\n1},\n\n{"a": 2}\n]', encoding="utf-8")
    assert [line for line, _ in read_json_records(path)] == [2, 5]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"a": 1},', "2: the JSON array does not end"),
        ('[\n{"a": 1}', "2: expected ',' or ']'"),
        ('[{"a": 1} {"a": 2}]', "1: expected ',' or ']'"),
        ('[{"a": 1},\n]', "2: not JSON"),
        ("[{'a': 1}]", "1: not JSON"),
        ('[{"a": "\\ud800"}]', "1: not JSON"),
        ('[{"a": 1}]\nmore', "2: unexpected text after"),
        ("[" + "[" * 100_000, "1: not JSON: nested too deeply"),
    ],
)
def test_invalid_arrays(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FormatError) as caught:
        list(read_json_records(path))
    assert message.removeprefix("1: ").removeprefix("2: ") in str(caught.value)


def test_a_long_invalid_array_fails_early(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('[{"a": 1}, oops' + '{"b": 2},' * 3_000_000, encoding="utf-8")
    with pytest.raises(FormatError, match="not JSON"):
        list(read_json_records(path))


def write_and_fail(path: Path) -> None:
    with atomic_output(path) as temporary:
        temporary.write_text("half")
        raise ZeroDivisionError


def test_a_file_is_replaced_only_on_success(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError):
        write_and_fail(path)
    assert path.read_text() == "old"
    with atomic_output(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("folder", [False, True])
def test_an_early_interrupt_leaves_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: bool
) -> None:  # fmt: skip
    mkdir = os.mkdir

    def interrupted(path: str, *options: int) -> None:
        mkdir(path, *options)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "mkdir", interrupted)
    with pytest.raises(KeyboardInterrupt), atomic_output(tmp_path / "out", is_folder=folder):
        pass
    assert not list(tmp_path.iterdir())


def test_a_folder_with_content_is_not_changed(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    with atomic_output(folder, is_folder=True) as temporary:
        (temporary / "a").write_text("x")
    with pytest.raises(SpanwiseError, match="the folder is not empty"), atomic_output(folder, is_folder=True):
        pass
    assert [p.name for p in folder.iterdir()] == ["a"]
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_invalid_targets_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    for path, folder, message in (
        (tmp_path / "nowhere" / "x", False, "no such folder"),
        (tmp_path / "folder", False, "expected a file, found a folder"),
        (tmp_path / "file", True, "expected a folder, found a file"),
    ):
        with pytest.raises(SpanwiseError, match=message), atomic_output(path, is_folder=folder):
            pass


def test_a_symlink_is_kept_and_its_file_replaced(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "target" / "file")
    for text in ("first", "second"):  # the file does not exist at first
        with atomic_output(tmp_path / "link") as temporary:
            temporary.write_text(text)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "target" / "file").read_text() == text


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as pool:
        received = pool.submit(pipe.read_text)
        with atomic_output(pipe) as temporary:
            temporary.write_text("through")
        assert received.result() == "through"
    assert pipe.is_fifo()
    with pytest.raises(SpanwiseError, match="expected a folder, found a file"), atomic_output(pipe, is_folder=True):
        pass


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="this system has no /dev/full")
def test_a_full_device_is_reported_by_name() -> None:
    with (
        pytest.raises(SpanwiseError, match="/dev/full: not written: No space left on device"),
        atomic_output(Path("/dev/full")) as f,
    ):
        f.write_text("x")
    assert Path("/dev/full").is_char_device()
