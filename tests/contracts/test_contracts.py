"""Every recipe and every registered head keeps the contract of heads."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tiny import METHODS, corpus, model, with_relations

from spanwise.config.settings import iter_sections
from spanwise.heads import HEADS
from spanwise.models.model import Model
from spanwise.prediction.predictor import predict
from spanwise.recipes.catalog import recipes
from spanwise.runtime.tensors import state_tensors
from spanwise.testing import check_head
from spanwise.testing.scoring import check_batch_invariance, check_padding_invariance
from spanwise.testing.sentences import TEST_SENTENCES

NEED_TRANSFORMER = {"deep-span", "deep-span-pruned"}  # they copy the layers of the encoder


SMALL_PARTS = (  # of the tiny encoder and corpus, which have three layers and no tags
    "encoder.parts.0.layers=2", "encoder.parts.1.glove.iterations=2", "encoder.parts.1.pos_size=0", "encoder.hidden=8",
    "head.paper=[]",  # with global-soft-weight, the loss of a sentence depends on its batch
)  # fmt: skip


# Word vectors only: the corpus needs no context, and an LSTM takes most of the time of a training and of an export.
WORDS_ONLY = ("encoder.char_hidden=0", "encoder.layers=0")


def overrides(recipe: str) -> tuple[str, ...]:
    """Settings that make a recipe with a static encoder fast."""
    if recipe == "locate-label-paper-genia":
        return ("encoder.glove.iterations=2", "encoder.pos_size=0", "head.paper=[]")  # its word vectors are frozen
    encoder = recipes()[recipe].get("encoder") or {}
    return (*WORDS_ONLY, "encoder.glove.iterations=2") if "glove" in encoder else WORDS_ONLY


@pytest.mark.parametrize("recipe", METHODS)
def test_the_recipe_keeps_the_contract(recipe: str, tiny_bert: Path, tmp_path: Path) -> None:
    if recipe in NEED_TRANSFORMER:
        check_head(recipe, tmp_path, encoder=tiny_bert, overrides=["head.lstm=32", "head.lstm_dropout=0.1", "head.dropout=0.1"])
    else:
        check_head(recipe, tmp_path, overrides=overrides(recipe))


def test_every_registered_head_belongs_to_a_recipe() -> None:
    sections = [values for recipe in recipes().values() for _, values in iter_sections("head", recipe["head"])]
    assert {values["kind"] for values in sections} == set(HEADS)


@pytest.mark.parametrize("recipe", METHODS)
def test_batches_padding_and_saving_with_transformers(recipe: str, tiny_bert: Path, tiny_roberta: Path, tmp_path: Path) -> None:
    """Every second recipe is tested with a byte-level tokenizer: heads do not see the difference."""
    if recipes()[recipe].get("encoder", {}).get("kind") == "static":
        pytest.skip("the recipe has its own encoder")
    layers = SMALL_PARTS if recipe == "locate-label-paper-genia" else ()
    encoder = (tiny_bert, tiny_roberta)[list(METHODS).index(recipe) % 2]
    built = model(encoder, recipe, layers, data=with_relations(corpus()))
    check_batch_invariance(built)
    check_padding_invariance(built)
    built.save(tmp_path / "run")
    loaded = Model.load(tmp_path / "run")
    assert (loaded.config, loaded.labels, loaded.training) == (built.config, built.labels, False)
    tensors = state_tensors(built)
    assert state_tensors(loaded).keys() == tensors.keys()
    assert all(torch.equal(tensor, tensors[name]) for name, tensor in state_tensors(loaded).items())
    expected, actual = list(predict(built, TEST_SENTENCES)), list(predict(loaded, TEST_SENTENCES))
    assert actual == expected
    assert sum(len(sentence.entities) for sentence in expected) > 5
    assert [[e.score for e in s.entities] for s in actual] == [[e.score for e in s.entities] for s in expected]
