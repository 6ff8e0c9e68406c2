"""The collection of models: its list, and building one of them with a tiny corpus."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path

import models
import pytest
from tiny import corpus

from spanwise.encoders.pretrained import ALIASES
from spanwise.formats import write
from spanwise.integrations.package import check_licence, check_name, check_version
from spanwise.recipes.catalog import recipes


def test_the_list_is_valid() -> None:
    collection = models.read_collection()
    assert list(collection) == ["en-biomed", "en-diseases", "en-books", "de-news"]
    for name, entry in collection.items():
        assert (check_name(name), check_version(entry.version), check_licence(entry.licence)) == (
            name,
            entry.version,
            entry.licence,
        )
        assert entry.recipe in recipes()
        assert entry.encoder in ("static", *ALIASES)


def test_the_corpora_of_the_list_exist(shared_data: Path) -> None:
    for entry in models.read_collection().values():
        assert {path.stem for path in (shared_data / entry.corpus).glob("*.jsonl")} >= {"train", "dev", "test"}


def test_a_model_is_trained_once_and_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    pytest.importorskip("onnx", reason="onnx is not installed; run pip install 'spanwise[onnx]'")
    folder = tmp_path / "data" / "germeval14"
    folder.mkdir(parents=True)
    for split, sentences in corpus().splits.items():
        write(sentences, folder / f"{split}.jsonl")
    entry = replace(models.read_collection()["de-news"], recipe="spanner")
    monkeypatch.setattr(models, "read_collection", lambda: {"de-news": entry})
    arguments = [str(tmp_path / "data"), "--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "dist"), "--epochs", "1"]
    for _ in range(2):
        models.main([*arguments, "--device", "cpu"])
    output = capsys.readouterr()
    assert output.err.count("epoch 1:") == 1  # the second call only packs
    rows = [line.split() for line in output.out.splitlines() if line.startswith("de-news")]
    assert len(rows) == 2
    assert rows[0][3] == "float32"
    with zipfile.ZipFile(tmp_path / "dist" / "de_news-0.1.0-py3-none-any.whl") as archive:
        card = archive.read("spanwise_models/de_news/README.md").decode()
    assert entry.data in card
    assert entry.licence in card
    with pytest.raises(SystemExit, match=r"unknown model 'de-new' .did you mean 'de-news'"):
        models.main([*arguments[:1], "de-new"])


def test_the_documentation_shows_every_model() -> None:
    page = (Path(models.__file__).parents[1] / "docs" / "how-to" / "package-a-model.md").read_text(encoding="utf-8")
    rows = {cells[1].strip(" `"): cells for line in page.splitlines() if len(cells := line.split("|")) > 4}
    encoders = {"minilm": "MiniLM", "static": "static"}
    for name, entry in models.read_collection().items():
        assert rows[name][3].strip() == encoders[entry.encoder]
        if entry.epochs:
            assert f"`epochs: {entry.epochs}`" in page
