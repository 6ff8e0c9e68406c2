"""Outputs after power cuts, kills and full disks: synced, recoverable, without leftovers."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spanwise import SpanwiseError
from spanwise.files.disk import temporary_copy
from spanwise.files.encodings import recoded_copy
from spanwise.files.writing import atomic_files, atomic_output

KILLED = """
import os, signal, sys
from pathlib import Path
from spanwise.files.writing import atomic_output
target, name, number = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
calls, function = [], getattr(os, name)
def replacement(*arguments, **options):
    calls.append(1)
    if len(calls) == number:
        os.kill(os.getpid(), signal.SIGKILL)
    return function(*arguments, **options)
setattr(os, name, replacement)
with atomic_output(target, is_folder=sys.argv[4] == "folder", may_replace=lambda folder: True) as temporary:
    (temporary / "a" if sys.argv[4] == "folder" else temporary).write_text("new")
"""


def write_file(path: Path, text: str = "new") -> None:
    with atomic_output(path) as temporary:
        temporary.write_text(text)


def write_folder(path: Path, text: str = "new") -> None:
    with atomic_output(path, is_folder=True, may_replace=lambda folder: True) as temporary:
        (temporary / "a").write_text(text)


def kill_at(target: Path, name: str, number: int, kind: str = "file") -> None:
    """Write ``target`` in a process that is killed at a call of a function of ``os``."""
    command = [sys.executable, "-c", KILLED, str(target), name, str(number), kind]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL


@pytest.fixture
def operations(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The fsyncs and renames of the test, in order, with the names of the files."""
    done: list[tuple[str, str]] = []
    fsync, replace = os.fsync, os.replace

    def record_fsync(handle: int) -> None:
        kind = "sync folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "sync file"
        done.append((kind, Path(f"/proc/self/fd/{handle}").readlink().name))
        fsync(handle)

    def record_replace(source: Any, target: Any, **options: Any) -> None:
        done.append(("rename", Path(target).name))
        replace(source, target, **options)

    monkeypatch.setattr(os, "fsync", record_fsync)
    monkeypatch.setattr(os, "replace", record_replace)
    return done


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc/self/fd")
def test_a_file_is_synced_before_and_its_folder_after_the_rename(tmp_path: Path, operations: list[tuple[str, str]]) -> None:
    write_file(tmp_path / "out.txt")
    assert operations == [("sync file", "out.txt"), ("rename", "out.txt"), ("sync folder", tmp_path.name)]


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc/self/fd")
def test_all_files_of_a_folder_are_synced_before_it_is_replaced(tmp_path: Path, operations: list[tuple[str, str]]) -> None:
    write_folder(tmp_path / "out", "old")
    operations.clear()
    write_folder(tmp_path / "out")
    renames = [number for number, (kind, _) in enumerate(operations) if kind == "rename"]
    assert {("sync file", "a"), ("sync folder", "out")} <= set(operations[: renames[0]])
    assert ("sync folder", tmp_path.name) in operations[renames[-1] :]


@pytest.mark.parametrize(("name", "number"), [("replace", 1), ("replace", 2)])
def test_a_folder_killed_while_it_is_replaced_is_recovered_by_the_next_command(tmp_path: Path, name: str, number: int) -> None:
    out = tmp_path / "out"
    write_folder(out, "old")
    kill_at(out, name, number, "folder")
    write_file(tmp_path / "other.txt")  # any output in the same folder
    assert (out / "a").read_text() in ("old", "new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.txt", "out"]


@pytest.mark.parametrize(("name", "number"), [("mkdir", 1), ("fsync", 1), ("replace", 1), ("fsync", 2)])
def test_leftovers_of_a_killed_process_are_removed_by_the_next_command(tmp_path: Path, name: str, number: int) -> None:
    (tmp_path / "out.txt").write_text("old")
    kill_at(tmp_path / "out.txt", name, number)
    assert (tmp_path / "out.txt").read_text() == ("new" if (name, number) == ("fsync", 2) else "old")
    write_file(tmp_path / "out.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["out.txt"]


def test_leftovers_of_a_live_process_and_folders_of_the_user_stay(tmp_path: Path) -> None:
    (tmp_path / ".out.txt.abcdefgh").mkdir()
    (tmp_path / ".out.txt.abcdefgh" / "notes").write_text("mine")
    with atomic_output(tmp_path / "out.txt") as temporary:
        temporary.write_text("slow")
        write_file(tmp_path / "out.txt", "fast")
        assert temporary.read_text() == "slow"
    assert (tmp_path / "out.txt").read_text() == "slow"
    assert sorted(path.name for path in tmp_path.iterdir()) == [".out.txt.abcdefgh", "out.txt"]


def write_to_full_disk(path: Path, code: int) -> None:
    with atomic_output(path) as temporary:
        temporary.write_text("half")
        raise OSError(code, os.strerror(code), str(temporary))


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EFBIG, errno.EDQUOT])
def test_a_full_disk_is_one_line_and_the_old_file_stays(tmp_path: Path, code: int) -> None:
    path = tmp_path / "out.txt"
    path.write_text("old")
    with pytest.raises(SpanwiseError) as caught:
        write_to_full_disk(path, code)
    assert str(caught.value) == f"{path}: not written: {os.strerror(code)}; free some space and try again"
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["out.txt"]


def test_a_full_disk_is_recognised_in_errors_of_other_libraries(tmp_path: Path) -> None:
    problem = 'Error while serializing: I/O error: Os { code: 28, kind: StorageFull, message: "No space left on device" }'
    for error in (RuntimeError(problem), Exception("No space left on device (os error 28)")):
        with pytest.raises(SpanwiseError, match="not written: No space left on device"), atomic_output(tmp_path / "out"):
            raise error
    with pytest.raises(RuntimeError, match="other"), atomic_output(tmp_path / "out"):
        raise RuntimeError("other")


@pytest.mark.parametrize("is_pipe", [True, False])
def test_a_full_disk_of_temporary_files_is_named(is_pipe: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    source, temporary = tmp_path / "source.conll", tmp_path / "temporary"
    for folder in (temporary, tmp_path / "out"):
        folder.mkdir()
    source.write_text("Oslo\tB-Place\n")
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    monkeypatch.setattr("shutil.copyfileobj", fail)
    monkeypatch.setattr("spanwise.files.encodings._recode", fail)
    copy = temporary_copy(source.open("rb"), "stdin") if is_pipe else recoded_copy(source, "latin-1")
    problem = f"{temporary}/spanwise-.*: not written: No space left on device .TMPDIR sets the folder of temporary files"
    with pytest.raises(SpanwiseError, match=problem), atomic_output(tmp_path / "out" / "file"), copy:
        pass


def save_half(folder: Path) -> None:
    with atomic_files(folder) as temporary:
        (temporary / "a").write_text("new")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_several_files_are_replaced_only_after_all_are_complete(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    (folder / "part-0").mkdir(parents=True)
    for name in ("a", "part-0/b", "other"):
        (folder / name).write_text("old")
    with pytest.raises(SpanwiseError, match="not written: No space left on device"):
        save_half(folder)
    assert {path.read_text() for path in folder.rglob("*") if path.is_file()} == {"old"}
    with atomic_files(folder) as temporary:
        (temporary / "part-0").mkdir()
        (temporary / "a").write_text("new")
        (temporary / "part-0" / "b").write_text("new")
    assert [(folder / name).read_text() for name in ("a", "part-0/b", "other")] == ["new", "new", "old"]
    assert sorted(path.name for path in folder.iterdir()) == ["a", "other", "part-0"]
