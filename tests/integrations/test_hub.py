"""Push models to the hub and load them, without a network."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import pytest
import tiny
import yaml
from huggingface_hub import ModelCard, hub_mixin

import spanwise
from spanwise import SpanwiseError
from spanwise.core.percentages import percent
from spanwise.export.torch_folder import export
from spanwise.integrations.hub import HubModel
from spanwise.prediction.load import load
from spanwise.runtime import hub


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "tagger"
    tiny.fit(out, recipe="bl-seqner", epochs=4)
    return out


def test_saved_and_loaded(run: Path, tmp_path: Path) -> None:
    HubModel(run).save_pretrained(tmp_path / "model")
    names = {path.name for path in (tmp_path / "model").iterdir()}
    assert {"config.yaml", "labels.json", "model.safetensors", "run.json", "README.md"} <= names
    assert not {"metrics.jsonl", "checkpoints"} & names
    loaded = HubModel.from_pretrained(tmp_path / "model")
    some = tiny.sentences(20)
    assert loaded.load("cpu").predict(some) == load(run, "cpu").predict(some)
    assert sum(len(sentence.entities) for sentence in loaded.load("cpu").predict(some)) > 5
    for path in (tmp_path / "model").iterdir():  # no file reveals the local path
        assert str(run.parent).encode() not in path.read_bytes()


def test_configuration_of_a_transformer(tiny_bert: Path, tmp_path: Path) -> None:
    tiny.model(tiny_bert, "seqner").save(tmp_path / "run")
    HubModel(tmp_path / "run").save_pretrained(tmp_path / "model")
    assert json.loads((tmp_path / "model" / "config.json").read_text())["model_type"] == "bert"
    some = tiny.sentences(5)
    assert HubModel.from_pretrained(tmp_path / "model").load("cpu").predict(some) == load(tmp_path / "run", "cpu").predict(some)


def test_card_of_a_run(run: Path, tmp_path: Path) -> None:
    HubModel(run, data="Tiny Town", licence="cc-by-4.0").save_pretrained(tmp_path / "model")
    text = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    header = yaml.safe_load(text.split("---\n")[1])
    assert header["license"] == "cc-by-4.0"
    assert header["library_name"] == "spanwise"
    assert "bl-seqner" in header["tags"]
    scores = json.loads((run / "run.json").read_text())["scores"]
    (dev, test) = header["model-index"][0]["results"]
    assert (dev["dataset"]["split"], test["dataset"]["split"]) == ("dev", "test")
    for split, result in (("dev", dev), ("test", test)):
        assert {m["type"]: m["value"] for m in result["metrics"]} == {
            name: round(scores[split]["micro"][name], 4) for name in ("f1", "precision", "recall")
        }
    for part in (
        "Entities: `Drug`, `Place`.",
        "recipe `bl-seqner`",
        "Tiny Town, train 60 sentences",
        "- Encoder: static",
        "cc-by-4.0",
    ):
        assert part in text
    assert f"| dev | {percent(scores['dev']['micro']['f1'])} |" in text
    assert "Relations" not in text


def test_card_of_a_model_that_types_given_spans(tmp_path: Path) -> None:
    run = tiny.fit(tmp_path / "run", recipe="sng", task="typing", epochs=1)
    card = str(HubModel(tmp_path / "run").generate_model_card())
    accuracy = run.scores["dev"]["typing"]["accuracy"]
    assert f"| split | accuracy |\n|---|---|\n| dev | {percent(accuracy)} |" in card
    assert "The accuracy of the types of given entities." in card
    metrics = yaml.safe_load(card.split("---\n")[1])["model-index"][0]["results"][0]["metrics"]
    assert metrics == [{"type": "accuracy", "value": round(accuracy, 4), "name": "accuracy"}]
    # The usage runs: the sentences have spans, and the model predicts their types.
    code = card.split("```python\n")[1].split("```")[0].replace('"run"', f'"{tmp_path / "run"}"')
    exec(code, {})


def test_card_names_all_parts_of_the_encoder(tiny_bert: Path, tmp_path: Path) -> None:
    tiny.model(tiny_bert, "spanwise").save(tmp_path / "run")
    assert f"- Encoder: {tiny_bert} + static\n" in str(HubModel(tmp_path / "run").generate_model_card())


def test_card_without_report(tmp_path: Path) -> None:
    tiny.model("static", "seqner").save(tmp_path / "run")
    card = str(HubModel(tmp_path / "run").generate_model_card())
    assert "Not specified. The licences" in card
    assert "## Scores" not in card
    assert isinstance(ModelCard(card), ModelCard)


@pytest.mark.parametrize("graphs", [False, True])
def test_card_of_an_exported_model(run: Path, tmp_path: Path, graphs: bool) -> None:
    if graphs:
        pytest.importorskip("onnxruntime")
        from spanwise.export.onnx import export_onnx

        export_onnx(run, tmp_path / "exported")
    else:
        export(run, tmp_path / "exported")
    HubModel(tmp_path / "exported").save_pretrained(tmp_path / "model")
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    assert "trained with the recipe `bl-seqner` of Spanwise.\n" in card
    assert "## Training\n\n- Encoder: static\n- Seed: 1\n\n## Licence" in card, "no unknown facts"
    assert "bl-seqner" in yaml.safe_load(card.split("---\n")[1])["tags"]


def test_card_needs_a_model(tmp_path: Path) -> None:
    with pytest.raises(SpanwiseError, match="missing: no trained model here"):
        HubModel(tmp_path / "missing").generate_model_card()


class FakeApi:
    """Records what is pushed."""

    folder: Path
    options: dict[str, Any]

    def __init__(self, token: str | None = None) -> None:
        assert token in (None, "secret")

    def create_repo(self, repo_id: str, **options: Any) -> Any:
        FakeApi.options = {"repo_id": repo_id, **options}
        return SimpleNamespace(repo_id=repo_id)

    def upload_folder(self, *, repo_id: str, folder_path: Any, **options: Any) -> str:
        shutil.copytree(folder_path, FakeApi.folder)
        FakeApi.options |= options
        return f"commit in {repo_id}"


def test_push_and_download(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    FakeApi.folder = tmp_path / "hub"
    monkeypatch.setattr(hub_mixin, "HfApi", FakeApi)
    assert HubModel(run).push_to_hub("town/tagger", private=True, token="secret") == "commit in town/tagger"
    assert (FakeApi.options["repo_id"], FakeApi.options["private"]) == ("town/tagger", True)
    card = (FakeApi.folder / "README.md").read_text(encoding="utf-8")
    assert card.count("town/tagger") >= 2
    assert 'spanwise.load("hf:town/tagger")' in card

    def download(name: str, **options: Any) -> str:
        assert name == "town/tagger"
        return str(FakeApi.folder)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    monkeypatch.setattr(hub, "is_hub_reachable", lambda: True)
    some = tiny.sentences(10)
    assert spanwise.load("hf:town/tagger", "cpu").predict(some) == load(run, "cpu").predict(some)


def test_unknown_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "is_hub_reachable", lambda: False)
    with pytest.raises(SpanwiseError, match="hf:unknown/model: no such model on the Hugging Face hub"):
        load("hf:unknown/model")
