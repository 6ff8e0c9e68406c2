"""Models: batch invariance with the encoder's settings, and run folders. ``tests/contracts`` covers all recipes."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import FILLERS, STATIC, corpus, model, sentences
from torch import nn

from spanwise import Corpus, Sentence, SpanwiseError
from spanwise.core.types import Entity
from spanwise.models.model import Model
from spanwise.prediction.predictor import predict
from spanwise.recipes.catalog import configure
from spanwise.runtime.tensors import load_weights, state_tensors, write_tensors
from spanwise.testing.scoring import check_batch_invariance
from spanwise.testing.sentences import TEST_SENTENCES

RECIPES = (
    "biaffine", "bl-seqner", "bl-spanner", "efficient-global-pointer", "global-pointer", "locate-label", "seqner", "seqner-crf",
    "spanner",
)  # fmt: skip
ALL_WIDTHS = ("biaffine", "efficient-global-pointer", "global-pointer")


@pytest.mark.parametrize(("first", "recipe"), list(enumerate(["seqner", "seqner-crf", "spanner"])))
def test_batch_invariance_with_all_settings_of_the_encoder(tiny_bert: Path, first: int, recipe: str) -> None:
    """Each recipe is tested with a third of the settings, among them both kinds of context."""
    poolings = (("first", 1), ("max", 1), ("mean", 1), ("max", 3), ("mean", 3), ("first", 3))
    for context, (pooling, layers) in list(product(("sentence", "document"), poolings))[first::3]:
        values = {"context": context, "pooling": pooling, "layers": layers}
        check_batch_invariance(model(tiny_bert, recipe, [f"encoder.{key}={value}" for key, value in values.items()]))


@pytest.mark.parametrize("recipe", RECIPES)
def test_entities_are_predicted_in_every_window_of_a_long_text(tiny_bert: Path, recipe: str) -> None:
    # Untrained heads that score every width prefer wide spans; flat decoding would leave few other entities.
    built = model(tiny_bert, recipe, ["head.decoding=nested"] if recipe in ALL_WIDTHS else ())
    text = Sentence("text", tuple(random.Random(2).choices([*FILLERS, "oslo", "aspirin"], k=256)))
    (predicted,) = predict(built, [text])
    assert {entity.range.start // 64 for entity in predicted.entities} == {0, 1, 2, 3}
    assert list(predict(built, [text])) == [predicted]


# --- the run folder ---------------------------------------------------------------------------------------------------


@pytest.fixture
def run(tiny_bert: Path, tmp_path: Path) -> tuple[Model, Path]:
    built = model(tiny_bert, "spanner", ["encoder.pooling=mean", "head.representation=boundary"])
    built.save(tmp_path / "run")
    return built, tmp_path / "run"


def test_a_model_with_several_encoders(tiny_bert: Path, tmp_path: Path) -> None:
    torch.manual_seed(0)
    static = {"kind": "static", "word_size": 8, "char_hidden": 4, "layers": 0, "dropout": 0}
    parts = json.dumps([{"kind": "transformer", "name": str(tiny_bert)}, static])
    config = configure("spanner", encoder="static")
    config = config.model_copy(update={"encoder": {"kind": "concat", "parts": json.loads(parts), "hidden": 8}})
    built = Model.build(config, corpus()).eval()
    with torch.no_grad():
        built.head.classifier.weight.mul_(30)  # type: ignore[union-attr, operator]
    check_batch_invariance(built)
    built.save(tmp_path / "run")
    assert list(predict(Model.load(tmp_path / "run"), TEST_SENTENCES)) == list(predict(built, TEST_SENTENCES))


def test_the_folder_has_plain_readable_files(run: tuple[Model, Path]) -> None:
    mask = os.umask(0o022)
    try:
        run[0].save(run[1])
    finally:
        os.umask(mask)
    files = {path.name: path for path in run[1].rglob("*") if path.is_file()}
    assert {"config.yaml", "labels.json", "model.safetensors", "tokenizer.json", "config.json"} <= files.keys()
    for path in files.values():
        assert path.stat().st_mode & 0o777 == 0o644, path
        assert path.suffix in (".json", ".yaml", ".txt", ".safetensors")  # no pickles
    assert json.loads(files["labels.json"].read_text()) == {"entities": ["Drug", "Place"], "relations": []}


def test_the_original_encoder_is_not_needed(tiny_bert: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(tiny_bert, source)
    built = model(source)
    built.save(tmp_path / "run")
    shutil.rmtree(source)
    assert list(predict(Model.load(tmp_path / "run"), TEST_SENTENCES)) == list(predict(built, TEST_SENTENCES))


def _replace_weights(folder: Path) -> None:
    write_tensors({"encoder.x": torch.zeros(1)}, folder / "model.safetensors")


BROKEN: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no folder": (shutil.rmtree, "no such folder"),
    "no config.yaml": (lambda f: (f / "config.yaml").unlink(), r"no trained model here \(config.yaml missing\)"),
    "no labels.json": (lambda f: (f / "labels.json").unlink(), r"no trained model here \(labels.json missing\)"),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), r"no trained model here \(model.safetensors missing\)"),
    "no config.json": (lambda f: (f / "config.json").unlink(), "encoder .*cannot be loaded"),
    "no tokenizer": (
        lambda f: [p.unlink() for p in f.iterdir() if p.name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt")],
        "no tokenizer found",
    ),
    "empty config.yaml": (lambda f: (f / "config.yaml").write_text(""), "config.yaml: input should be"),
    "invalid config.yaml": (lambda f: (f / "config.yaml").write_text("a: [b"), "cannot be read"),
    "config.yaml without encoder": (
        lambda f: (f / "config.yaml").write_text("recipe: x\nhead: {kind: seqner}"),
        "config.yaml: encoder: field required",
    ),
    "unknown encoder": (
        lambda f: (f / "config.yaml").write_text("recipe: x\nencoder: {kind: statik}\nhead: {kind: seqner}"),
        "unknown kind of encoder 'statik' .did you mean 'static'",
    ),
    "invalid labels.json": (
        lambda f: (f / "labels.json").write_text("{"),
        "labels.json: not valid JSON .*; the file may be truncated",
    ),
    "list in labels.json": (lambda f: (f / "labels.json").write_text("[]"), "labels.json: expected a JSON object, found list"),
    "empty labels.json": (lambda f: (f / "labels.json").write_text("{}"), "entities: field required"),
    "truncated weights": (
        lambda f: (f / "model.safetensors").write_bytes((f / "model.safetensors").read_bytes()[:5000]),
        "model.safetensors: cannot be read",
    ),
    "empty weights": (lambda f: (f / "model.safetensors").write_bytes(b""), "model.safetensors: cannot be read"),
    "other weights": (_replace_weights, "the weights do not fit the model: Missing key"),
    "other labels": (
        lambda f: (f / "labels.json").write_text('{"entities": ["A"]}'),
        "the weights do not fit the model: size mismatch for head.classifier.weight",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_folder_is_refused_in_one_line(run: tuple[Model, Path], name: str) -> None:
    damage, message = BROKEN[name]
    damage(run[1])
    with pytest.raises(SpanwiseError, match=message) as caught:
        Model.load(run[1])
    assert "\n" not in str(caught.value)


def test_tied_weights_are_saved_and_loaded(tmp_path: Path) -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)
            self.second.weight = self.first.weight

    torch.manual_seed(0)
    saved, loaded = Tied(), Tied()
    write_tensors(state_tensors(saved), tmp_path / "tied.safetensors")
    load_weights(loaded, tmp_path / "tied.safetensors")
    assert torch.equal(loaded.second.weight, saved.first.weight)
    assert loaded.second.weight is loaded.first.weight


def test_data_without_entities_is_refused() -> None:
    bare = Corpus({"train": (Sentence("s", ("oslo",)),)})
    with pytest.raises(SpanwiseError, match="the training data has no entities"):
        Model.build(configure("spanner", encoder="static", overrides=STATIC), bare)


def test_labels_are_those_of_train_in_order() -> None:
    splits = {"train": sentences(20), "dev": (Sentence("d", ("x",), (Entity("Zoo", ((0, 1),)),)),)}
    built = Model.build(configure("seqner", encoder="static", overrides=STATIC), Corpus(splits))
    assert built.labels.entities == ("Drug", "Place")
