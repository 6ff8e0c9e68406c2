"""Recipes and settings: what is wrong is said in one line that helps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tiny import STATIC, corpus

from spanwise import SpanwiseError
from spanwise.config import Config, TrainingSettings, checked, configure, default_encoder, recipes
from spanwise.model import Model
from spanwise.training.run import settled


@pytest.mark.parametrize("recipe", sorted(recipes()))
@pytest.mark.parametrize("encoder", ["static", "tiny_bert"])
def test_every_recipe_builds(request: pytest.FixtureRequest, recipe: str, encoder: str) -> None:
    is_static = encoder == "static"
    config = configure(
        recipe, encoder=encoder if is_static else str(request.getfixturevalue(encoder)), overrides=STATIC if is_static else ()
    )
    built = Model.build(config, corpus())
    assert built.config.recipe == recipe
    assert built.config.title
    assert built.config.paper
    assert built.config.head.keys() > config.head.keys()  # with the defaults, and what the data decided


@pytest.mark.parametrize("recipe", sorted(recipes()))
def test_a_configuration_as_text_is_the_same_configuration(recipe: str) -> None:
    config = configure(recipe, encoder="static", settings={"patience": 3}, overrides=["training.encoder_rate=1e-5", *STATIC])
    again = checked(Config, yaml.safe_load(config.to_yaml()), "config.yaml")
    assert again == config
    assert again.training.encoder_rate == 1e-5


def test_the_three_recipes_of_the_engine_are_there() -> None:
    assert {"seqner", "seqner-crf", "spanner"} <= recipes().keys()


def wrong(**choices: Any) -> str:
    with pytest.raises(SpanwiseError) as caught:
        settled(**{"recipe": "spanner", "encoder": "static", **choices})
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_unknown_names_are_answered_with_the_nearest() -> None:
    assert "unknown recipe 'spaner' (did you mean 'spanner'?)" in wrong(recipe="spaner")
    assert "'representatoin' (did you mean 'representation'?)" in wrong(overrides=["head.representatoin=boundary"])
    assert "'training.epoch' (did you mean 'training.epochs'?)" in wrong(overrides=["training.epoch=3"])
    assert "'training.batchsize' (did you mean 'training.batch_size'?)" in wrong(settings={"batchsize": 3})
    assert "'hiden' (did you mean 'hidden'?)" in wrong(overrides=["encoder.hiden=3"])
    assert "unknown section 'heads' (did you mean 'head'?)" in wrong(overrides=["heads.representation=boundary"])
    assert "'poolling' (did you mean 'pooling'?)" in wrong(encoder="minilm", overrides=["encoder.poolling=max"])
    assert "unknown head 'spaner' (did you mean 'spanner'?)" in wrong(overrides=["head.kind=spaner"])
    assert "unknown kind of encoder 'statik' (did you mean 'static'?)" in wrong(overrides=["encoder.kind=statik"])


def test_values_that_cannot_be_are_named_with_what_was_expected() -> None:
    assert wrong(overrides=["training.epochs=0"]) == (
        "the configuration: training.epochs: input should be greater than or equal to 1, found 0"
    )
    assert "training.epochs: input should be a valid integer, unable to parse string as an integer, found 'many'" in wrong(
        overrides=["training.epochs=many"]
    )
    assert "head spanner: representation: input should be 'boundary', 'pooling' or 'hybrid', found 'all'" in wrong(
        overrides=["head.representation=all"]
    )
    assert "training.precision: input should be 'auto', 'fp32', 'bf16' or 'fp16', found 'fp8'" in wrong(
        overrides=["training.precision=fp8"]
    )
    assert "training.head_rate: input should be greater than or equal to 0, found -1" in wrong(settings={"head_rate": -1})
    assert "the static encoder: word_size, char_hidden and pos_size are all 0" in wrong(
        overrides=["encoder.word_size=0", "encoder.char_hidden=0"]
    )
    assert "the transformer encoder: name: field required" in wrong(overrides=["encoder.kind=transformer"])


def test_overrides_that_are_none() -> None:
    for override in ("head.representation", "representation=boundary", "head.=boundary", "=boundary", "head=boundary"):
        assert "expected section.key=value" in wrong(overrides=[override])
    assert "is not a value" in wrong(overrides=["head.representation=[boundary"])


def test_later_choices_win() -> None:
    config = configure("spanner", encoder="static", settings={"epochs": 3, "seed": None}, overrides=["training.epochs=4"])
    assert config.training.epochs == 4
    assert config.training.seed == TrainingSettings().seed
    twice = configure("spanner", encoder="static", overrides=["head.max_width=4", "head.max_width=6", "head.max_width=null"])
    assert twice.head["max_width"] is None


def test_numbers_as_people_write_them() -> None:
    settings = configure(
        "spanner", encoder="static", overrides=["training.head_rate=1e-3", "training.encoder_rate=2E-5", "training.clip=5"]
    ).training
    assert (settings.head_rate, settings.encoder_rate, settings.clip) == (1e-3, 2e-5, 5.0)


def test_the_encoder_a_user_names(tmp_path: Path) -> None:
    assert configure("spanner", encoder="static").encoder == {"kind": "static"}
    for name in ("minilm", str(tmp_path), "somebody/some-model"):
        assert configure("spanner", encoder=name).encoder == {"kind": "transformer", "name": name}


def test_without_a_name_the_encoder_needs_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spanwise.encoders.pretrained.ALIASES", {"minilm": ("no_such_package", "model")})
    assert default_encoder() == "static"
    assert configure("spanner").encoder == {"kind": "static"}
    monkeypatch.setattr("spanwise.encoders.pretrained.ALIASES", {"minilm": ("json", "model")})
    assert configure("spanner").encoder == {"kind": "transformer", "name": "minilm"}
