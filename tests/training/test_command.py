"""The command ``spanwise train``, and its errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import STATIC, corpus

import spanwise
from spanwise.cli import main


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for split, sentences in corpus().splits.items():
        spanwise.write(sentences, folder / f"{split}.jsonl")
    return folder


@pytest.fixture
def command(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*words: str, out: str = "run") -> tuple[int, str, str]:
        fixed = [word for setting in STATIC for word in ("--set", setting)]
        with pytest.raises(SystemExit) as caught:
            main(["train", str(data), "--out", str(tmp_path / out), "--encoder", "static", "--device", "cpu", *fixed, *words])
        output = capsys.readouterr()
        return int(caught.value.code or 0), output.out, output.err

    return run


def test_training_ends_with_scores_and_the_folder(command: Any, tmp_path: Path) -> None:
    code, out, err = command("--recipe", "seqner", "--epochs", "2", "--batch-size", "8", "--seed", "3")
    assert (code, err) == (0, "")
    report = json.loads((tmp_path / "run" / "run.json").read_text())
    assert report["seed"] == 3
    lines = out.splitlines()
    end = lines.index(f"run folder: {tmp_path / 'run'}")
    assert lines[end - 1].startswith("test: P ")
    assert lines[end - 2].startswith("dev: P ")
    assert "training seqner with the encoder static on data, 24 sentences, 2 types: 2 epochs, 6 steps" in out


def test_seeds_and_sweep(command: Any, tmp_path: Path) -> None:
    code, out, _ = command("--epochs", "1", "--seeds", "1,2", out="seeds")
    assert code == 0
    assert "over 2 seeds" in out
    assert json.loads((tmp_path / "seeds" / "seeds.json").read_text())["seeds"] == [1, 2]
    first = tmp_path / "seeds" / "seed-1"
    assert f"run folder: {first}\nnext: spanwise predict {first} FILE.txt" in out
    assert f"spanwise analyze {tmp_path / 'seeds'} " in out
    code, out, _ = command("--epochs", "1", "--sweep", "head.depth=0,1", out="sweep")
    assert code == 0
    assert "best on dev: head.depth=" in out
    grid = json.loads((tmp_path / "sweep" / "sweep.json").read_text())["grid"]
    assert len(grid) == 2
    best = tmp_path / "sweep" / grid[0]["folder"]
    assert f"run folder: {best}\nnext: spanwise predict {best} FILE.txt" in out
    assert f"spanwise analyze {best} " in out


def test_folds_end_with_their_folders(command: Any, data: Path, tmp_path: Path) -> None:
    for split in ("dev", "test"):
        (data / f"{split}.jsonl").unlink()
    ids = [sentence.id for sentence in corpus()["train"]]
    (tmp_path / "folds.json").write_text(json.dumps([{"fold": n, "test": ids[n::2]} for n in range(2)]))
    code, out, err = command("--epochs", "1", "--folds", str(tmp_path / "folds.json"), out="folds")
    assert (code, err) == (0, "")
    assert out.endswith(f"run folders: {tmp_path / 'folds' / 'fold-0'}, {tmp_path / 'folds' / 'fold-1'}\n")


ERRORS = {
    ("--recipe", "spaner"): "unknown recipe 'spaner' (did you mean 'spanner'?)",
    ("--set", "head.max_widht=3"): "unknown setting of head grid 'max_widht' (did you mean 'max_width'?)",
    ("--epochs", "0"): "invalid value for '--epochs'",
    ("--seeds", "1,x"): "--seeds 1,x: expected integers separated by commas",
    ("--seeds", "1,2", "--seed", "1"): "--seed and --seeds cannot be combined",
    ("--seeds", "1,2", "--sweep", "head.max_width=1,2"): "--sweep and --seeds cannot be combined",
    ("--sweep", "max_width=1,2"): "--sweep max_width=1,2: expected section.key=a,b,c",
    ("--device", "gpu"): "device 'gpu': expected cpu, cuda or auto",
    ("--track", "tensorbord"): "unknown tracker 'tensorbord' (did you mean 'tensorboard'?)",
    ("--init", "/no/such/folder"): "/no/such/folder: no such folder",
    ("--from", "conl"): "unknown format 'conl'",
}


@pytest.mark.parametrize("words", ERRORS, ids=" ".join)
def test_an_error_is_one_line_with_exit_code_2(command: Any, words: tuple[str, ...]) -> None:
    code, _, err = command(*words)
    assert code == 2
    assert len(err.splitlines()) == 1
    assert ERRORS[words] in err


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")
def test_cuda_without_a_gpu(command: Any, tmp_path: Path) -> None:
    code, _, err = command("--device", "cuda")
    assert code == 2
    assert err == "device 'cuda': no CUDA device is available; use cpu or auto\n"
    assert not (tmp_path / "run").exists()
