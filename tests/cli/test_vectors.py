"""``spanwise vectors``."""

from __future__ import annotations

import signal
import tempfile
from pathlib import Path

import numpy as np
import pytest
from cli_runner import Runner
from forked import forked_command
from tiny import model

from spanwise.data import FOLDER
from spanwise.vectors import Vectors, read_vectors, write_vectors


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    """Six words in two dimensions; the second separates kings from queens."""
    words = ("king", "queen", "man", "woman", "Tumour", "tumours")
    table = np.array([[3, 1], [3, -1], [0.1, 1], [0.1, -1], [-1, 0], [-1, 0.1]], np.float32)
    write_vectors(Vectors(words, table), tmp_path / "v.txt")
    return tmp_path / "v.txt"


def test_help(run: Runner) -> None:
    for arguments in (["vectors"], ["vectors", "--help"]):
        result = run(*arguments)
        assert result.code == 0
        for command in ("train", "similar", "analogies", "convert"):
            assert command in result.out
    assert "--x-max" in run("vectors", "train", "--help").out


def test_train_and_similar(run: Runner, tmp_path: Path) -> None:
    pytest.importorskip("numba")
    out = tmp_path / "v"
    options = ["--dim", 8, "--window", 4, "--x-max", 5, "--min-count", 2, "--iterations", 3, "--threads", 1, "--seed", 4]
    result = run("vectors", "train", FOLDER, "--out", out, *options)
    assert result.code == 0, result.err
    assert "iteration 3: loss" in result.out
    assert result.out.endswith(f"wrote {out}\n")
    assert read_vectors(out).size == 8
    similar = run("vectors", "similar", out, "the", "--count", 3)
    assert len(similar.out.splitlines()) == 3
    second = run("vectors", "train", FOLDER, "--out", out)
    assert second.code == 2
    assert second.err == f"{out}: the folder is not empty; choose another folder\n"


def test_vectors_are_not_data(run: Runner, vectors: Path, tmp_path: Path) -> None:
    folder = tmp_path / "v"
    write_vectors(read_vectors(vectors), folder)
    (folder / "training.json").write_text('{"settings": {}}')  # written by training; the name resembles a train split
    model("static").save(tmp_path / "run")
    for command in (
        ["describe", folder],
        ["describe", folder, "--json", tmp_path / "d.json"],
        ["convert", folder, tmp_path / "x.jsonl"],
        ["evaluate", tmp_path / "run", folder],
        ["predict", tmp_path / "run", folder],
        ["train", folder, "--recipe", "seqner", "--encoder", "static", "--out", tmp_path / "new"],
        ["vectors", "train", folder, "--out", tmp_path / "new"],
    ):
        result = run(*command)
        message = f"{folder}: expected text, found a folder of word vectors; query it with spanwise vectors similar\n"
        assert (result.code, result.out, result.err) == (2, "", message), command


def test_similar_and_analogies(run: Runner, vectors: Path) -> None:
    assert run("vectors", "similar", vectors, "king", "--count", 2).out == "0.8000  queen\n0.4091  man\n"
    first = run("vectors", "analogies", vectors, "man", "king", "woman").out.splitlines()[0]
    assert first.endswith("  queen")


def test_convert(run: Runner, vectors: Path, tmp_path: Path) -> None:
    source = vectors
    for name in ("a.vec", "a.bin", "a"):
        result = run("vectors", "convert", source, tmp_path / name)
        assert result.out == f"wrote {tmp_path / name} (6 words, 2 dimensions)\n"
        source = tmp_path / name
    assert read_vectors(source).words == read_vectors(vectors).words


@pytest.mark.parametrize(
    ("source", "target"),
    [("v.txt", "v.txt"), ("v.txt", "n/../v.txt"), ("v.txt", "link.txt"), ("link.txt", "v.txt"), ("n", "n"), ("n", "n/n.txt"),
     ("n/n.npy", "n/n.txt"), ("n/n.npy", "words.txt")],
)  # fmt: skip
def test_convert_never_overwrites_its_input(
    run: Runner, monkeypatch: pytest.MonkeyPatch, vectors: Path, source: str, target: str
) -> None:
    monkeypatch.chdir(vectors.parent)
    Path("n").mkdir()
    np.save("n/n.npy", np.ones((2, 3), np.float32))
    Path("n/n.txt").write_text("one\ntwo\n")
    Path("link.txt").symlink_to("v.txt")
    Path("words.txt").symlink_to("n/n.txt")
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    result = run("vectors", "convert", source, target)
    message = f"{Path(target)}: the output would overwrite an input; choose another output\n"
    assert (result.code, result.out, result.err) == (2, "", message)
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["similar", "V", "tumor"], "no vector for 'tumor' among 6 words; did you mean tumours, Tumour?"),
        (["similar", "V", "TUMOUR"], "no vector for 'TUMOUR' among 6 words; did you mean Tumour?"),
        (["similar", "V", "水"], "no vector for '水' among 6 words\n"),
        (["analogies", "V", "man", "king", "wman"], "no vector for 'wman' among 6 words; did you mean woman, man?"),
        (["similar", "missing.txt", "x"], "missing.txt: no such file or folder of word vectors"),
        (["convert", "V", "out.kv"], "out.kv: unknown extension"),
        (["train", "missing", "--out", "x"], "missing: no such file or folder"),
        (["train", "EMPTY", "--out", "x"], "the text has no words"),
        (["train", "V", "--out", "x", "--unit", "letters"], "unknown unit 'letters'; known: characters, words"),
        (["train", "V", "--out", "x", "--dim", "0"], "spanwise vectors train: invalid value for '--dim'"),
        (["train", "V"], "spanwise vectors train: missing option '--out'"),
    ],
)
def test_errors_are_one_line(
    run: Runner, monkeypatch: pytest.MonkeyPatch, vectors: Path, arguments: list[str], line: str
) -> None:
    monkeypatch.chdir(vectors.parent)
    Path("empty.txt").write_text("\n")
    before = sorted(Path().iterdir())
    names = {"V": str(vectors), "EMPTY": "empty.txt"}
    result = run("vectors", *(names.get(argument, argument) for argument in arguments))
    assert result.code == 2
    assert result.err.startswith(line)
    assert result.err.count("\n") == 1
    assert sorted(Path().iterdir()) == before


def test_interrupt_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr(tempfile, "tempdir", None)
    options = ("--out", tmp_path / "v", "--dim", 50, "--iterations", 100_000)
    with forked_command("vectors", "train", FOLDER, *options) as command:
        command.wait_until(lambda: "\niteration 2" in command.out)
        command.send_signal(signal.SIGINT)
        result = command.wait()
    assert result.code == 130
    assert "Traceback" not in result.err
    assert [path.name for path in tmp_path.rglob("*")] == ["scratch"]
