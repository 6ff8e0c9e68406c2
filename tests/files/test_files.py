"""Streaming JSON, and outputs that appear whole or not at all."""

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
from spanwise.files.reading import json_records
from spanwise.files.writing import atomic_output

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(items=st.lists(JSON, max_size=8), indent=st.sampled_from([None, 1]), chunk=st.integers(1, 40), escape=st.booleans())
def test_arrays_are_read_in_pieces_of_any_size(
    tmp_path: Path, items: list[Any], indent: int | None, chunk: int, escape: bool
) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(items, indent=indent, ensure_ascii=escape), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_arrays, "CHUNK", chunk)
        assert [item for _, item in json_arrays.array_items(path)] == items


def test_lines_and_arrays_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    for text in ('[{"a": 1},\n {"a": 2}]', '{"a": 1}\n\n{"a": 2}\n', '\ufeff[{"a": 1},{"a": 2}\n]\n'):
        path.write_text(text, encoding="utf-8")
        assert [item for _, item in json_records(path)] == [{"a": 1}, {"a": 2}]
    path.write_text("[1, 2]\n[3]\n", encoding="utf-8")
    assert [item for _, item in json_records(path)] == [[1, 2], [3]]
    path.write_text("", encoding="utf-8")
    assert list(json_records(path)) == []


def test_records_know_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('[\n{"a":\n1},\n\n{"a": 2}\n]', encoding="utf-8")
    assert [line for line, _ in json_records(path)] == [2, 5]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('[{"a": 1},', "2: the JSON array does not end"),
        ('[\n{"a": 1}', "2: expected ',' or ']'"),
        ('[{"a": 1} {"a": 2}]', "1: expected ',' or ']'"),
        ('[{"a": 1},\n]', "2: not JSON"),
        ("[{'a': 1}]", "1: not JSON"),
        ('[{"a": "\\ud800"}]', "1: not JSON"),
        ('[{"a": 1}]\nmore', "2: something stands behind"),
        ("[" + "[" * 100_000, "1: not JSON: nested too deeply"),
    ],
)
def test_broken_arrays(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FormatError) as caught:
        list(json_records(path))
    assert complaint.removeprefix("1: ").removeprefix("2: ") in str(caught.value)


def test_a_long_broken_array_is_given_up_early(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('[{"a": 1}, oops' + '{"b": 2},' * 3_000_000, encoding="utf-8")
    with pytest.raises(FormatError, match="not JSON"):
        list(json_records(path))


def write_half_and_fail(path: Path) -> None:
    with atomic_output(path) as temporary:
        temporary.write_text("half")
        raise ZeroDivisionError


def test_a_file_is_replaced_only_when_all_went_well(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError):
        write_half_and_fail(path)
    assert path.read_text() == "old"
    with atomic_output(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("folder", [False, True])
def test_an_interrupt_leaves_nothing_however_early_it_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: bool
) -> None:  # fmt: skip
    make = os.mkdir

    def interrupted(path: str, *options: int) -> None:
        make(path, *options)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "mkdir", interrupted)
    with pytest.raises(KeyboardInterrupt), atomic_output(tmp_path / "out", folder=folder):
        pass
    assert not list(tmp_path.iterdir())


def test_a_folder_with_content_is_never_touched(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    with atomic_output(folder, folder=True) as temporary:
        (temporary / "a").write_text("x")
    with pytest.raises(SpanwiseError, match="is not empty"), atomic_output(folder, folder=True):
        pass
    assert [p.name for p in folder.iterdir()] == ["a"]
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_targets_of_the_wrong_kind_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    for path, folder, complaint in (
        (tmp_path / "nowhere" / "x", False, "no such folder"),
        (tmp_path / "folder", False, "a file was expected"),
        (tmp_path / "file", True, "a folder was expected"),
    ):
        with pytest.raises(SpanwiseError, match=complaint), atomic_output(path, folder=folder):
            pass


def test_a_link_stays_a_link_and_its_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "far" / "file")
    for text in ("first", "second"):  # the file is not there at first
        with atomic_output(tmp_path / "link") as temporary:
            temporary.write_text(text)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "far" / "file").read_text() == text


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
    with pytest.raises(SpanwiseError, match="a folder was expected"), atomic_output(pipe, folder=True):
        pass


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="this system has no /dev/full")
def test_a_full_device_is_an_error_that_names_it() -> None:
    with (
        pytest.raises(SpanwiseError, match="/dev/full: not written: No space left on device"),
        atomic_output(Path("/dev/full")) as f,
    ):
        f.write_text("x")
    assert Path("/dev/full").is_char_device()
