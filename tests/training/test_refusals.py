"""Errors before training, and folders that a training does not touch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import corpus, fit

import spanwise
from spanwise import Corpus, Entity, Sentence, SpanwiseError
from spanwise.export.torch_folder import export


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    fit(folder, epochs=2)
    return folder


def refused(*arguments: Any, **options: Any) -> str:
    with pytest.raises(SpanwiseError) as caught:
        fit(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_finished_run_is_not_changed(run: Path) -> None:
    before = {path: path.read_bytes() for path in run.iterdir()}
    assert "contains a finished run (run.json exists); choose another folder" in refused(run)
    assert "contains a finished run (run.json exists); there is nothing to resume" in refused(run, resume=True)
    assert {path: path.read_bytes() for path in run.iterdir()} == before


def test_a_single_value_is_not_a_sequence_of_letters(run: Path, tmp_path: Path) -> None:
    """A name or path is accepted where several are expected."""
    out = tmp_path / "new"
    with pytest.raises(SpanwiseError, match="unknown setting of head seqner 'widht'"):
        spanwise.train(corpus(), out, recipe="seqner", encoder="static", overrides="head.widht=1")
    with pytest.raises(SpanwiseError, match="unknown tracker 'tensorbord'"):
        spanwise.train(corpus(), out, recipe="seqner", encoder="static", trackers="tensorbord")
    for missing in ("nowhere", Path("nowhere")):
        with pytest.raises(SpanwiseError, match="nowhere: no such folder"):
            spanwise.distill(missing, corpus(), out)
        with pytest.raises(SpanwiseError, match="nowhere: no such file or folder"):
            spanwise.distill(run, corpus(), out, unlabelled=missing)


def test_a_folder_with_other_files_is_not_changed(tmp_path: Path) -> None:
    for name in (".git", "src"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("x")
    for resume in (False, True):
        assert "not empty and not a run folder" in refused(tmp_path, resume=resume)
    (tmp_path / "file").write_text("x")
    assert "expected a run folder, found a file" in refused(tmp_path / "file")
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == [
        ".git", ".git/file", "file", "src", "src/file",
    ]  # fmt: skip


def test_an_exported_model_is_not_changed(run: Path, tmp_path: Path) -> None:
    export(run, tmp_path / "exported")
    before = {path: path.read_bytes() for path in (tmp_path / "exported").iterdir()}
    for resume in (False, True):
        message = "contains a model without training files; choose another folder"
        assert message in refused(tmp_path / "exported", resume=resume)
    assert {path: path.read_bytes() for path in (tmp_path / "exported").iterdir()} == before


def test_wrong_settings_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert "unknown recipe" in refused(out, recipe="seqnar")
    assert "training.epochs" in refused(out, epochs=0)
    assert "unknown setting of head seqner 'tagger' (did you mean 'tagging'?)" in refused(out, overrides=["head.tagger=crf"])
    assert "unknown setting of the static encoder 'wordsize'" in refused(out, overrides=["encoder.wordsize=3"])
    assert not out.exists()


def test_data_without_entities_or_sentences(tmp_path: Path) -> None:
    bare = (Sentence("s1", ("oslo",)), Sentence("s2", ("lima",)))
    assert "no entities" in refused(tmp_path / "a", Corpus({"train": bare, "dev": bare}))
    assert "the training data has no sentences" in refused(tmp_path / "b", Corpus({"train": (), "dev": bare}))
    assert "no train split; found dev, test" in refused(tmp_path / "c", Corpus({"dev": bare, "test": bare}))


def test_one_sentence_is_enough_to_train_on(tmp_path: Path) -> None:
    lines: list[str] = []
    only = Corpus({"train": (Sentence("s1", ("oslo", "was"), (Entity("Place", ((0, 1),)),)),)})
    done = fit(tmp_path / "run", only, epochs=2, log=lines.append)
    assert done.scores["dev"]["sentences"] == 0
    assert any("dev has no entities" in line for line in lines)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")
def test_cuda_without_a_gpu(tmp_path: Path) -> None:
    for device, message in (("cuda", "no CUDA device is available"), ("gpu", "expected cpu, cuda or auto")):
        with pytest.raises(SpanwiseError, match=message):
            spanwise.train(corpus(), tmp_path / "run", encoder="static", device=device)
    assert not (tmp_path / "run").exists()
