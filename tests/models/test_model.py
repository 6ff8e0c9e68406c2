"""A model: the same in any batch, and whole in its folder."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny import FILLERS, STATIC, corpus, model, sentences
from torch import nn

from spanwise import Corpus, Sentence, SpanwiseError
from spanwise.batching.batches import make_batch
from spanwise.core.types import Entity
from spanwise.models.model import Model
from spanwise.prediction.predictor import predict
from spanwise.recipes.catalog import configure
from spanwise.runtime.tensors import fill, weights, write_tensors

LONG = Sentence("long", tuple(random.Random(1).choices([*FILLERS, "zebra"], k=120)), (Entity("Place", ((100, 101),)),))
MIXED = (*sentences(8), Sentence("empty", ()), LONG, Sentence("wide", ("oslo",) * 9, (Entity("Place", ((0, 9),)),)))
RECIPES = (
    "biaffine", "bl-seqner", "bl-spanner", "efficient-global-pointer", "global-pointer", "locate-label", "seqner", "seqner-crf",
    "spanner",
)  # fmt: skip
ALL_WIDTHS = ("biaffine", "efficient-global-pointer", "global-pointer")


@torch.no_grad()
def seen(built: Model, prepared: list[Any], numbers: list[int]) -> list[tuple[torch.Tensor, float, float, Any]]:
    """Of each sentence of a batch: the word states, the loss and its count, and the entities."""
    full = make_batch(built.encoder, built.head, MIXED, prepared, np.array(numbers), gold=True)
    states, losses = built.encoder(full.inputs), built.losses(full)
    spans = built.score(make_batch(built.encoder, built.head, MIXED, prepared, np.array(numbers)))
    found = [one.entities for one in built.head.read(spans, len(numbers))]
    return [
        (states.words[row, : len(MIXED[n].words)], float(losses.sums[row]), float(losses.counts[row]), found[row])
        for row, n in enumerate(numbers)
    ]


def check_batches(built: Model) -> None:
    prepared = built.encoder.prepare(MIXED)
    alone = [seen(built, prepared, [n])[0] for n in range(len(MIXED))]
    assert sum(len(found) for *_, found in alone) > 5
    assert sum(loss for _, loss, _, _ in alone) > 1
    for size in (2, 4, len(MIXED)):
        order = random.Random(size).sample(range(len(MIXED)), len(MIXED))
        for batch in (order[at : at + size] for at in range(0, len(order), size)):
            for n, (states, loss, count, found) in zip(batch, seen(built, prepared, batch), strict=True):
                expected = alone[n]
                torch.testing.assert_close(states, expected[0], atol=1e-5, rtol=0)
                assert loss / max(count, 1) == pytest.approx(expected[1] / max(count, 1), abs=1e-5, rel=1e-6)
                assert count == expected[2]
                assert found == expected[3]
                assert [e.score for e in found] == pytest.approx([e.score for e in expected[3]], abs=1e-5)


@pytest.mark.parametrize("recipe", ["seqner", "seqner-crf", "spanner"])
@pytest.mark.parametrize("context", ["sentence", "document"])
@pytest.mark.parametrize(("pooling", "layers"), [("first", 1), ("max", 1), ("mean", 1), ("max", 3), ("mean", 3), ("first", 3)])
def test_a_sentence_is_the_same_alone_and_in_any_batch(
    tiny_bert: Path, recipe: str, context: str, pooling: str, layers: int
) -> None:
    values = {"context": context, "pooling": pooling, "layers": layers}
    check_batches(model(tiny_bert, recipe, [f"encoder.{key}={value}" for key, value in values.items()]))


@pytest.mark.parametrize("recipe", RECIPES)
def test_so_it_is_for_every_recipe_and_other_encoders(tiny_bert: Path, tiny_roberta: Path, recipe: str) -> None:
    for encoder in ("static", tiny_bert, tiny_roberta):
        check_batches(model(encoder, recipe))


@pytest.mark.parametrize("recipe", RECIPES)
def test_entities_are_found_in_every_window_of_a_long_text(tiny_bert: Path, recipe: str) -> None:
    # Heads that judge every width have wide spans in mind while they know nothing; flat decoding would leave little beside them.
    built = model(tiny_bert, recipe, ["head.decoding=nested"] if recipe in ALL_WIDTHS else ())
    text = Sentence("text", tuple(random.Random(2).choices([*FILLERS, "oslo", "aspirin"], k=256)))
    (found,) = predict(built, [text])
    assert {entity.range.start // 64 for entity in found.entities} == {0, 1, 2, 3}
    assert list(predict(built, [text])) == [found]


# --- the run folder ---------------------------------------------------------------------------------------------------


@pytest.fixture
def run(tiny_bert: Path, tmp_path: Path) -> tuple[Model, Path]:
    built = model(tiny_bert, "spanner", ["encoder.pooling=mean", "head.representation=boundary"])
    built.save(tmp_path / "run")
    return built, tmp_path / "run"


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("encoder", ["static", "tiny_bert"])
def test_a_saved_model_comes_back_the_same(request: pytest.FixtureRequest, tmp_path: Path, encoder: str, recipe: str) -> None:
    built = model(encoder if encoder == "static" else request.getfixturevalue(encoder), recipe)
    built.save(tmp_path / "run")
    again = Model.load(tmp_path / "run")
    assert again.config == built.config
    assert again.labels == built.labels
    assert not again.training
    assert {name: value.tolist() for name, value in weights(again).items()} == {
        name: value.tolist() for name, value in weights(built).items()
    }
    ours, theirs = list(predict(built, MIXED)), list(predict(again, MIXED))
    assert ours == theirs
    assert [[e.score for e in s.entities] for s in ours] == [[e.score for e in s.entities] for s in theirs]


def test_encoders_side_by_side_come_back_too(tiny_bert: Path, tmp_path: Path) -> None:
    torch.manual_seed(0)
    static = {"kind": "static", "word_size": 8, "char_hidden": 4, "layers": 0, "dropout": 0}
    parts = json.dumps([{"kind": "transformer", "name": str(tiny_bert)}, static])
    config = configure("spanner", encoder="static")
    config = config.model_copy(update={"encoder": {"kind": "concat", "parts": json.loads(parts), "hidden": 8}})
    built = Model.build(config, corpus()).eval()
    with torch.no_grad():
        built.head.classifier.weight.mul_(30)  # type: ignore[union-attr, operator]
    check_batches(built)
    built.save(tmp_path / "run")
    assert list(predict(Model.load(tmp_path / "run"), MIXED)) == list(predict(built, MIXED))


def test_the_folder_holds_plain_files_that_anyone_may_read(run: tuple[Model, Path]) -> None:
    mask = os.umask(0o022)
    try:
        run[0].save(run[1])
    finally:
        os.umask(mask)
    files = {path.name: path for path in run[1].rglob("*") if path.is_file()}
    assert {"config.yaml", "labels.json", "model.safetensors", "tokenizer.json", "config.json"} <= files.keys()
    for path in files.values():
        assert path.stat().st_mode & 0o777 == 0o644, path
        assert path.suffix in (".json", ".yaml", ".txt", ".safetensors")  # nothing is pickled
    assert json.loads(files["labels.json"].read_text()) == {"entities": ["Drug", "Place"], "relations": []}


def test_the_encoder_it_came_from_is_not_needed(tiny_bert: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(tiny_bert, source)
    built = model(source)
    built.save(tmp_path / "run")
    shutil.rmtree(source)
    assert list(predict(Model.load(tmp_path / "run"), MIXED)) == list(predict(built, MIXED))


def _other_weights(folder: Path) -> None:
    write_tensors({"encoder.x": torch.zeros(1)}, folder / "model.safetensors")


BROKEN: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no folder": (shutil.rmtree, "no trained model here"),
    "no config.yaml": (lambda f: (f / "config.yaml").unlink(), r"no trained model here \(config.yaml missing\)"),
    "no labels.json": (lambda f: (f / "labels.json").unlink(), r"no trained model here \(labels.json missing\)"),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), r"no trained model here \(model.safetensors missing\)"),
    "no config.json": (lambda f: (f / "config.json").unlink(), "encoder .*cannot be loaded"),
    "no tokenizer": (
        lambda f: [p.unlink() for p in f.iterdir() if p.name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt")],
        "no files of a tokenizer",
    ),
    "config.yaml is empty": (lambda f: (f / "config.yaml").write_text(""), "config.yaml: input should be"),
    "config.yaml is no YAML": (lambda f: (f / "config.yaml").write_text("a: [b"), "cannot be read"),
    "config.yaml without encoder": (
        lambda f: (f / "config.yaml").write_text("recipe: x\nhead: {kind: seqner}"),
        "config.yaml: encoder: field required",
    ),
    "unknown encoder": (
        lambda f: (f / "config.yaml").write_text("recipe: x\nencoder: {kind: statik}\nhead: {kind: seqner}"),
        "unknown kind of encoder 'statik' .did you mean 'static'",
    ),
    "labels.json is no JSON": (lambda f: (f / "labels.json").write_text("{"), "cannot be read"),
    "labels.json is a list": (lambda f: (f / "labels.json").write_text("[]"), "cannot be read"),
    "labels.json says nothing": (lambda f: (f / "labels.json").write_text("{}"), "cannot be read"),
    "cut weights": (
        lambda f: (f / "model.safetensors").write_bytes((f / "model.safetensors").read_bytes()[:5000]),
        "model.safetensors: cannot be read",
    ),
    "empty weights": (lambda f: (f / "model.safetensors").write_bytes(b""), "model.safetensors: cannot be read"),
    "other weights": (_other_weights, "the weights do not fit the model: Missing key"),
    "other labels": (
        lambda f: (f / "labels.json").write_text('{"entities": ["A"]}'),
        "the weights do not fit the model: size mismatch for head.classifier.weight",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_folder_that_is_not_whole_is_refused_in_one_line(run: tuple[Model, Path], name: str) -> None:
    breaking, message = BROKEN[name]
    breaking(run[1])
    with pytest.raises(SpanwiseError, match=message) as caught:
        Model.load(run[1])
    assert "\n" not in str(caught.value)


def test_tied_weights_are_saved_and_come_back(tmp_path: Path) -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.other = nn.Linear(3, 3), nn.Linear(3, 3)
            self.other.weight = self.one.weight

    torch.manual_seed(0)
    first, second = Tied(), Tied()
    write_tensors(weights(first), tmp_path / "tied.safetensors")
    fill(second, tmp_path / "tied.safetensors")
    assert torch.equal(second.other.weight, first.one.weight)
    assert second.other.weight is second.one.weight


def test_data_without_entities_is_refused() -> None:
    bare = Corpus({"train": (Sentence("s", ("oslo",)),)})
    with pytest.raises(SpanwiseError, match="the training data has no entities"):
        Model.build(configure("spanner", encoder="static", overrides=STATIC), bare)


def test_labels_come_from_train_alone_and_in_order() -> None:
    splits = {"train": sentences(20), "dev": (Sentence("d", ("x",), (Entity("Zoo", ((0, 1),)),)),)}
    built = Model.build(configure("seqner", encoder="static", overrides=STATIC), Corpus(splits))
    assert built.labels.entities == ("Drug", "Place")
