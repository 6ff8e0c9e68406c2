"""Scores of a model on the file that it was trained on."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from spanwise.core.errors import SpanwiseError, SpanwiseWarning
from spanwise.corpora.splits import ensure_dev_split, read_corpus
from spanwise.data import bundled_corpus
from spanwise.formats import Ledger, write
from spanwise.prediction.load import load
from spanwise.prediction.scoring import predict_split, score_model
from spanwise.prediction.systems import parse_systems, system_predictions
from spanwise.prediction.threshold_search import find_threshold
from spanwise.testing.encoders import STATIC
from spanwise.training.run import train


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the file ``mine.jsonl``, a model that was trained on it, and the file ``other.jsonl``."""
    folder = tmp_path_factory.mktemp("trained")
    sentences = [*bundled_corpus()["train"]]
    write(sentences[:20], folder / "mine.jsonl")
    write(sentences[20:30], folder / "other.jsonl")
    train(
        folder / "mine.jsonl", folder / "run", recipe="global-pointer", encoder="static", epochs=1, overrides=STATIC, device="cpu",
        log=lambda line: None,
    )  # fmt: skip
    return folder


def test_dev_of_a_training_file_is_the_part_that_was_held_out(folder: Path) -> None:
    model, corpus = load(folder / "run"), ensure_dev_split(read_corpus(folder / "mine.jsonl"))[0]
    result = predict_split(model, folder / "mine.jsonl", split="dev")
    assert len(result.gold) == 2
    assert result.gold == corpus["dev"]
    assert [sentence.id for sentence in result.predicted] == [sentence.id for sentence in corpus["dev"]]
    assert result.train == corpus["train"]
    assert result.notes == ()
    assert find_threshold(model, folder / "mine.jsonl").calibration is not None
    assert find_threshold(model, folder / "mine.jsonl").data == "dev"


@pytest.mark.parametrize("names", [("train",), ("train", "test")])
def test_dev_is_held_out_of_a_train_split(folder: Path, tmp_path: Path, names: tuple[str, ...]) -> None:
    """Training on a file named train, or on a folder without dev, holds out the same sentences."""
    data = tmp_path / "data"
    data.mkdir()
    for name, source in zip(names, ("mine", "other"), strict=False):
        shutil.copy(folder / f"{source}.jsonl", data / f"{name}.jsonl")
    path = data if len(names) > 1 else data / "train.jsonl"
    model, held_out = load(folder / "run"), ensure_dev_split(read_corpus(folder / "mine.jsonl"))[0]["dev"]
    result = predict_split(model, path, split="dev")
    assert result.gold == held_out
    assert [sentence.id for sentence in result.predicted] == [sentence.id for sentence in held_out]
    assert find_threshold(model, path).data == "dev"
    assert ("trained on this data" in str(score_model(model, path).notes)) == (len(names) == 1)
    assert "trained on this data" in str(score_model(model, path, split="train").notes)


def test_another_train_split_has_no_dev(folder: Path, tmp_path: Path) -> None:
    for name in ("train", "test"):
        shutil.copy(folder / "other.jsonl", tmp_path / f"{name}.jsonl")
    model = load(folder / "run")
    with pytest.raises(SpanwiseError, match="no dev split; found train, test"):
        predict_split(model, tmp_path, split="dev")
    with pytest.raises(SpanwiseError, match="--find-threshold needs a dev split; found train"):
        find_threshold(model, tmp_path / "train.jsonl")


def test_scores_of_training_data_are_noted(folder: Path) -> None:
    model = load(folder / "run")
    evaluation = score_model(model, folder / "mine.jsonl")
    assert "trained on this data, so the scores are too high; pass --split dev for the 2 sentences" in evaluation.notes[-1]
    assert len(predict_split(model, folder / "mine.jsonl").gold) == 20


def test_a_comparison_on_training_data_warns(folder: Path) -> None:
    (system,), options = parse_systems([str(folder / "run")]), {"format": None, "data_format": None, "ledger": Ledger()}
    gold = read_corpus(folder / "mine.jsonl")["all"]
    with pytest.warns(SpanwiseWarning, match="run: trained on this data, so its scores are too high"):
        list(system_predictions(system, gold, folder / "mine.jsonl", "all", device="cpu", **options))  # type: ignore[arg-type]


@pytest.mark.parametrize("split", ["dev", "test"])
def test_any_other_file_is_scored_whole(folder: Path, split: str) -> None:
    result = predict_split(load(folder / "run"), folder / "other.jsonl", split=split)
    assert (len(result.gold), result.notes) == (10, ())


def test_a_model_without_a_valid_report_scores_files_whole(folder: Path, tmp_path: Path) -> None:
    model = load(folder / "run")
    for text in ("[]", "{", '{"data": {"train": 1}}'):
        (tmp_path / "run.json").write_text(text)
        model.folder = tmp_path
        assert len(predict_split(model, folder / "mine.jsonl", split="dev").gold) == 20


def test_held_out_documents_that_are_split_differently_without_annotations(tmp_path: Path) -> None:
    """In brat, an entity joins two sentences or cuts a word: without annotations, the text has other sentences."""
    data = tmp_path / "data"
    data.mkdir()
    for number in range(10):
        (data / f"d{number}.txt").write_text("They left Oslo. Lima and Rome came later. It rained in Cairo.\n")
        (data / f"d{number}.ann").write_text("T1\tPlace 10 20\tOslo. Lima\nT2\tPlace 25 27\tRo\nT3\tPlace 55 60\tCairo\n")
    train(data, tmp_path / "run", recipe="global-pointer", encoder="static", epochs=1, overrides=STATIC, device="cpu", log=len)
    model = load(tmp_path / "run")
    result = predict_split(model, data, split="dev")
    assert (len(result.gold), len(result.predicted)) == (2, 3)
    assert {sentence.document for sentence in result.predicted} == {sentence.document for sentence in result.gold}
    assert score_model(model, data, split="dev").entities.micro.support == 3
