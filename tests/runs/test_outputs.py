"""Outputs never overwrite inputs or models. ``tests/cli/test_protected_outputs.py`` tries every command."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny import model

from spanwise.core.errors import SpanwiseError
from spanwise.runs.outputs import check_output


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    model("static").save(folder)
    return folder


def refused(target: Path, *inputs: Path) -> str:
    with pytest.raises(SpanwiseError) as caught:
        check_output(target, inputs)
    assert str(caught.value).startswith(f"{target}: the output would overwrite ")
    return str(caught.value)


def test_files_of_a_run_folder(run: Path) -> None:
    assert refused(run / "model.safetensors").endswith(f"a file of the run folder {run}; choose another output")
    assert refused(run).endswith("a run folder; choose another output")
    assert refused(run / "checkpoints" / "step-1" / "state.json")
    check_output(run / "mine.txt")
    check_output(run / "new" / "mine.txt")


def test_training_may_write_to_its_run_folder(run: Path) -> None:
    check_output(run, can_be_run=True)
    with pytest.raises(SpanwiseError, match="a file of the run folder"):
        check_output(run / "checkpoints", can_be_run=True)


def test_inputs(tmp_path: Path) -> None:
    for name in ("a.txt", "a.ann", "b.jsonl"):
        (tmp_path / name).write_text("")
    text, annotations, data = (tmp_path / name for name in ("a.txt", "a.ann", "b.jsonl"))
    assert refused(data, data).endswith("an input; choose another output")
    assert refused(annotations, text)
    assert refused(text, annotations)
    assert refused(data, tmp_path)
    assert refused(tmp_path, tmp_path)
    (tmp_path / "link.jsonl").symlink_to(data)
    assert refused(tmp_path / "link.jsonl", data)
    check_output(tmp_path / "new.jsonl", [tmp_path, data])
    check_output(data, [text])


def test_a_user_file_in_a_run_folder_is_no_input(run: Path) -> None:
    user_file = run / "mine.txt"
    user_file.write_text("")
    check_output(user_file, [run])
    user_file.unlink()


def test_the_files_that_a_run_folder_links_to(run: Path, tmp_path: Path) -> None:
    """The Hugging Face cache has links to files with other names."""
    blob = tmp_path / "blob"
    (run / "model.safetensors").rename(blob)
    (run / "model.safetensors").symlink_to(blob)
    try:
        assert refused(blob, run)
    finally:
        (run / "model.safetensors").unlink()
        blob.rename(run / "model.safetensors")


def test_devices_are_written_to(run: Path) -> None:
    check_output(Path("/dev/null"), [run])


def test_the_texts_of_a_table_are_inputs(tmp_path: Path) -> None:
    for name in ("a.csv", "d.txt", "texts.csv", "b.jsonl"):
        (tmp_path / name).write_text("x")
    for name in ("d.txt", "texts.csv", "a.csv"):
        with pytest.raises(SpanwiseError, match="would overwrite an input"):
            check_output(tmp_path / name, [tmp_path / "a.csv"])
    for name in ("b.jsonl", "new.txt"):
        check_output(tmp_path / name, [tmp_path / "a.csv"])
