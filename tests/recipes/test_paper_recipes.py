"""Recipes with the settings of papers: their values, written down from the papers, and one training step each."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import corpus, with_relations

from spanwise.batching.batches import make_batch
from spanwise.config.settings import Config
from spanwise.encoders.transformer_settings import TransformerSettings
from spanwise.models.model import Model
from spanwise.recipes.catalog import configure, recipes

FOLDER = Path(__file__).parents[2] / "src" / "spanwise" / "recipes"
# Global Pointer, section 4.1: 30 epochs, batch size 32, learning rate 2e-5 for all layers, dropout 0.1.
POINTER = {
    "training.epochs": 30, "training.batch_size": 32, "training.encoder_rate": 2e-5, "training.head_rate": 2e-5,
    "training.schedule": "constant", "training.warmup": 0.0, "head.dropout": 0.1, "head.threshold": 0.5, "head.size": 64,
}  # fmt: skip
SPAN_POINTER = {
    **POINTER,
    "head.rotation": True,
    "head.loss": "imbalance",
    "head.unit": "subwords",
    "head.decoding": "overlapping",
}
# Locate and Label, Table 6 and section 3.3.
LOCATE = {
    "training.epochs": 35, "head.negatives": 5, "head.focus": 2.0, "head.positive_overlap": 0.7, "head.label_overlap": 1.0,
    "head.softness": 1.0, "head.filter_weight": 1.0, "head.regressor_weight": 0.1, "head.classifier_weight": 1.0,
    "head.dropout": 0.5, "encoder.hidden": 512, "encoder.parts.1.word_size": 100, "encoder.parts.1.pos_size": 50,
    "encoder.parts.1.char_hidden": 25, "encoder.parts.1.word_dropout": 0.0, "encoder.parts.1.freeze_words": True,
    "encoder.parts.0.layers": 4, "training.schedule": "linear", "head.decoding": "overlapping",
}  # fmt: skip
WINDOWS = [1, 2, 3, 4, 5, 6, 7, 9, 11, 13, 15]


def table_6(lr: float, windows: list[int], batch: int, u: float, k: float, delta: float) -> dict[str, Any]:
    rates = {"training.encoder_rate": lr, "training.head_rate": lr, "training.batch_size": batch}
    return {**LOCATE, **rates, "head.lengths": windows, "head.decay": u, "head.overlap": k, "head.threshold": delta}


# Bundling Learning, section 4.1.2 and Table 2 (NCBI).
BUNDLE = {
    "training.epochs": 20, "training.batch_size": 16, "training.encoder_rate": 5e-5, "training.head_rate": 5e-5,
    "training.warmup": 0.1, "training.weight_decay": 0.01, "training.schedule": "linear", "head.alpha": 0.1,
    "head.span.max_width": 7, "head.span.negatives": 100, "head.span.dropout": 0.1, "head.span.representation": "hybrid",
    "head.span.decoding": "flat", "head.sequence.dropout": 0.1, "head.sequence.tagging": "softmax",
    "head.sequence.constrained": False,
}  # fmt: skip
# Deep Span Representations, appendix C and Table 7 (GENIA).
DEEP = {
    "training.epochs": 30, "training.batch_size": 16, "training.encoder_rate": 4e-5, "training.head_rate": 2e-3,
    "training.warmup": 0.2, "training.clip": 5.0, "training.schedule": "linear", "head.smoothing": 0.1, "head.dropout": 0.4,
    "head.unit": "subwords", "encoder.context": "document", "head.smoothing_distance": 1, "head.hidden_dropout": 0.2,
}  # fmt: skip
# A Span-level Strategy for Nested NER, Table 1; the sizes are those of the author's program.
SNG = {
    "training.epochs": 600, "training.head_rate": 1e-3, "encoder.glove.dim": 300, "encoder.glove.optimizer": "published",
    "encoder.freeze_words": True, "encoder.glove.window": 15, "encoder.glove.x_max": 10, "encoder.glove.min_count": 1,
    "encoder.glove.iterations": 500, "head.task": "typing", "head.fragments": "separate", "head.hidden": 200,
    "head.dropout": 0.0, "training.schedule": "constant", "training.warmup": 0.0,
}  # fmt: skip

PAPERS: dict[str, dict[str, Any]] = {
    "global-pointer-paper": SPAN_POINTER,
    "efficient-global-pointer-paper": SPAN_POINTER,
    "gplinker": {**POINTER, "head.roles": True, "head.weight": 1.0, "head.entities.threshold": 0.5},
    "locate-label-paper-ace04": table_6(3e-5, WINDOWS, 8, 0.9, 0.6, 0.55),
    "locate-label-paper-ace05": table_6(3e-5, WINDOWS, 8, 0.8, 0.7, 0.5),
    "locate-label-paper-kbp17": table_6(5e-5, WINDOWS, 4, 0.9, 0.6, 0.5),
    "locate-label-paper-genia": table_6(5e-6, list(range(1, 11)), 6, 0.9, 0.7, 0.45),
    "bl-seqner-paper": {**BUNDLE, "head.branch": "sequence"},
    "bl-spanner-paper": {**BUNDLE, "head.branch": "span"},
    "deep-span-paper": {
        **DEEP, "head.max_width": 18, "head.aggregation": "max", "head.lstm": 200, "head.lstm_dropout": 0.5, "head.hidden": 300,
        "head.single_lstm": True, "head.share_weights": False,
    },
    "biaffine-paper": {**DEEP, "head.size": 150},
    "sng-paper": SNG,
}  # fmt: skip


def test_every_paper_recipe_is_listed() -> None:
    assert {name for name in recipes() if "-paper" in name} | {"gplinker"} == set(PAPERS)


def value_of(config: Config, path: str) -> Any:
    section, *names = path.split(".")
    value: Any = getattr(config, section) if section != "training" else config.training.model_dump()
    for name in names:
        value = value[int(name)] if isinstance(value, list) else value[name]
    return value


@pytest.mark.parametrize("recipe", PAPERS)
def test_settings_are_those_of_the_paper(recipe: str) -> None:
    config = configure(recipe, encoder=None if recipe == "sng-paper" else "somebody/some-model")
    assert {path: value_of(config, path) for path in PAPERS[recipe]} == PAPERS[recipe]


@pytest.mark.parametrize("recipe", ["bl-seqner-paper", "bl-spanner-paper"])
def test_words_are_the_maximum_of_their_subwords(recipe: str) -> None:
    """Bundling Learning, equation 3."""
    encoder = TransformerSettings(**configure(recipe, encoder="somebody/some-model").encoder)
    assert (encoder.pooling, encoder.layers, encoder.context) == ("max", 1, "sentence")


@pytest.mark.parametrize("recipe", sorted(set(PAPERS) - {"sng-paper", "locate-label-paper-ace05", "locate-label-paper-kbp17"}))
def test_a_training_step(recipe: str, tiny_bert: Path) -> None:
    overrides: tuple[str, ...] = ()
    if recipe.startswith("locate"):
        small = ("parts.0.layers=2", "parts.0.window=60", "parts.1.glove.iterations=1", "parts.1.pos_size=0", "hidden=8")
        overrides = tuple(f"encoder.{setting}" for setting in small)
    data = with_relations(corpus(8, 2, 2))
    torch.manual_seed(0)
    model = Model.build(configure(recipe, encoder=str(tiny_bert), overrides=overrides), data).train()
    train = data["train"]
    batch = make_batch(model.encoder, model.head, train, model.encoder.prepare(train), range(4), gold=True)
    model.losses(batch).mean.backward()
    gradients = [parameter.grad for parameter in model.head.parameters() if parameter.requires_grad]
    assert any(gradient is not None and bool(gradient.any()) for gradient in gradients)
    assert all(gradient is None or bool(gradient.isfinite().all()) for gradient in gradients)


@pytest.mark.parametrize("recipe", PAPERS)
def test_encoders_in_comments_can_be_passed(recipe: str) -> None:
    names = re.findall(r"--encoder (\S+?)[.,]?\s", (FOLDER / f"{recipe}.yaml").read_text(encoding="utf-8"))
    assert all(name in ("static", "minilm") or name.startswith("hf:") for name in names), names


def test_every_value_of_a_paper_recipe_has_a_source() -> None:
    for name in set(PAPERS) - {"sng-paper", "gplinker"}:
        lines = (FOLDER / f"{name}.yaml").read_text(encoding="utf-8").splitlines()
        values = [line.split("#")[0].split(":")[0].strip() for line in lines if ": " in line.split("#")[0] and "#" not in line]
        plain = {"title", "paper", "kind", "branch", "layers", "char_size", "dropout", "- kind", "schedule"}
        assert set(values) <= plain, (name, set(values) - plain)
