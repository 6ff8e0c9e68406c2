"""Recipes, settings and their errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tiny import METHODS, STATIC, corpus, with_relations

from spanwise import SpanwiseError
from spanwise.config.settings import Config, TrainingSettings, iter_sections
from spanwise.config.validation import validate_settings
from spanwise.heads import head_settings
from spanwise.models.model import Model
from spanwise.recipes.catalog import configure, default_encoder, recipes
from spanwise.recipes.resolve import resolve_config

# The recipe reads four layers and tags; the tiny BERT has three layers, and its corpus no tags.
SHALLOW = ("encoder.parts.0.layers=2", "encoder.hidden=8", "encoder.parts.1.pos_size=0", "encoder.parts.1.glove.iterations=2")


@pytest.mark.parametrize("recipe", METHODS)
@pytest.mark.parametrize("encoder", ["static", "tiny_bert"])
def test_every_recipe_builds(request: pytest.FixtureRequest, recipe: str, encoder: str) -> None:
    is_static = encoder == "static"
    overrides = STATIC if is_static else SHALLOW if recipe == "locate-label-paper-genia" else ()
    if is_static and recipe == "locate-label-paper-genia":
        overrides = (*overrides, "encoder.pos_size=0", "encoder.glove.iterations=2")
    config = configure(recipe, encoder=encoder if is_static else str(request.getfixturevalue(encoder)), overrides=overrides)
    if is_static and recipe.startswith("deep-span"):  # which need the layers of a transformer
        with pytest.raises(SpanwiseError, match="use the recipe shallow-span"):
            Model.build(config, corpus())
        return
    built = Model.build(config, with_relations(corpus()))
    assert built.config.recipe == recipe
    assert built.config.title
    assert built.config.paper
    resolved, requested = (
        {key for _, section in iter_sections("head", c.head) for key in section} for c in (built.config, config)
    )
    assert resolved > requested  # with defaults and settings from the data
    assert "auto" not in str(built.config.head)


@pytest.mark.parametrize("recipe", sorted(recipes()))
def test_a_configuration_survives_yaml(recipe: str) -> None:
    config = configure(recipe, encoder="static", settings={"patience": 3}, overrides=["training.encoder_rate=1e-5", *STATIC])
    again = validate_settings(Config, yaml.safe_load(config.to_yaml()), "config.yaml")
    assert again == config
    assert again.training.encoder_rate == 1e-5


def test_the_basic_recipes_exist() -> None:
    assert {"seqner", "seqner-crf", "spanner"} <= recipes().keys()


def error_of(**choices: Any) -> str:
    with pytest.raises(SpanwiseError) as caught:
        resolve_config(**{"recipe": "spanner", "encoder": "static", **choices})
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_errors_suggest_the_nearest_name() -> None:
    assert "unknown recipe 'spaner' (did you mean 'spanner'?)" in error_of(recipe="spaner")
    assert "'representatoin' (did you mean 'representation'?)" in error_of(overrides=["head.representatoin=boundary"])
    assert "'training.epoch' (did you mean 'training.epochs'?)" in error_of(overrides=["training.epoch=3"])
    assert "'training.batchsize' (did you mean 'training.batch_size'?)" in error_of(settings={"batchsize": 3})
    assert "'hiden' (did you mean 'hidden'?)" in error_of(overrides=["encoder.hiden=3"])
    assert "unknown section 'heads' (did you mean 'head'?)" in error_of(overrides=["heads.representation=boundary"])
    assert "'poolling' (did you mean 'pooling'?)" in error_of(encoder="minilm", overrides=["encoder.poolling=max"])
    assert "unknown head 'spaner' (did you mean 'spanner'?)" in error_of(overrides=["head.kind=spaner"])
    assert "unknown kind of encoder 'statik' (did you mean 'static'?)" in error_of(overrides=["encoder.kind=statik"])


@pytest.mark.parametrize("recipe", ["spanwise", "biaffine", "locate-label-paper-ace04"])
def test_the_static_encoder_can_be_chosen_as_a_setting(recipe: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spanwise.recipes.catalog.default_encoder", lambda: "minilm")
    chosen = resolve_config(recipe, encoder="static", overrides=["encoder.hidden=20"])
    assert resolve_config(recipe, overrides=["encoder.kind=static", "encoder.hidden=20"]) == chosen


def test_errors_of_values_state_the_expected_value() -> None:
    assert error_of(overrides=["training.epochs=0"]) == (
        "the configuration: training.epochs: input should be greater than or equal to 1, found 0"
    )
    assert "training.epochs: input should be a valid integer, unable to parse string as an integer, found 'many'" in error_of(
        overrides=["training.epochs=many"]
    )
    assert "head spanner: representation: input should be 'boundary', 'pooling' or 'hybrid', found 'all'" in error_of(
        overrides=["head.representation=all"]
    )
    assert "training.precision: input should be 'auto', 'fp32', 'bf16' or 'fp16', found 'fp8'" in error_of(
        overrides=["training.precision=fp8"]
    )
    assert "training.head_rate: input should be greater than or equal to 0, found -1" in error_of(settings={"head_rate": -1})
    assert "the static encoder: word_size, char_hidden and pos_size are all 0" in error_of(
        overrides=["encoder.word_size=0", "encoder.char_hidden=0"]
    )
    assert "the transformer encoder: name: field required" in error_of(overrides=["encoder.kind=transformer"])


def test_overrides_without_section_key_or_value() -> None:
    for override in ("head.representation", "representation=boundary", "head.=boundary", "=boundary", "head=boundary"):
        assert "expected section.key=value" in error_of(overrides=[override])
    assert "is not valid YAML" in error_of(overrides=["head.representation=[boundary"])


def test_overrides_in_nested_sections() -> None:
    config = configure(
        "bl-spanner", encoder="static",
        overrides=["head.span.representation=boundary", "head.sequence.tagging=crf", "head.span.kind=spanner", "head.alpha=0.3"],
    )  # fmt: skip
    assert config.head == {
        "kind": "bundle", "alpha": 0.3, "branch": "span", "sequence": {"kind": "seqner", "tagging": "crf"},
        "span": {"kind": "spanner", "representation": "boundary"},
    }  # fmt: skip
    made = configure("seqner", encoder="static", overrides=["head.kind=bundle", "head.one.two.three=4"])
    assert made.head["one"] == {"two": {"three": 4}}


def test_overrides_with_a_wrong_path() -> None:
    assert error_of(overrides=["head.representation.size=3"]) == (
        "--set head.representation.size=3: head.representation is 'hybrid' and has no settings"
    )
    deep = error_of(recipe="bl-spanner", overrides=["head.span.kind.x.y=3"])
    assert deep == "--set head.span.kind.x.y=3: head.span.kind is 'spanner' and has no settings"
    assert "unknown setting of head spanner 'span'; known: decoding, " in error_of(
        overrides=["head.span.representation=boundary"]
    )
    assert "training.epochs: input should be a valid integer, found {'most': 3}" in error_of(
        overrides=["training.epochs.most=3"]
    )
    parts = ["encoder.kind=concat", "encoder.parts=[{kind: static}]"]
    for override in ("encoder.parts.1=3", "encoder.parts.static=3", "encoder.parts.-1.hidden=3"):
        assert "encoder.parts is [{'kind': 'static'}] and has no settings" in error_of(overrides=[*parts, override])
    assert "parts.0: input should be a valid dictionary, found 3" in error_of(overrides=[*parts, "encoder.parts.0=3"])
    for override in ("head..x=1", "head.span.=1", "head.span."):
        assert "expected section.key=value" in error_of(recipe="bl-spanner", overrides=[override])


def test_errors_in_a_branch_name_the_section() -> None:
    def bundled(*overrides: str) -> str:
        return error_of(recipe="bl-spanner", overrides=overrides)

    assert "unknown setting of head.span spanner 'representatoin' (did you mean 'representation'?)" in bundled(
        "head.span.representatoin=boundary"
    )
    assert "unknown setting of head.sequence seqner 'taging' (did you mean 'tagging'?)" in bundled("head.sequence.taging=crf")
    assert "head.sequence seqner: tagging: input should be 'softmax' or 'crf', found 'hmm'" in bundled(
        "head.sequence.tagging=hmm"
    )
    assert "unknown setting of head bundle 'spam' (did you mean 'span'?)" in bundled("head.spam.representation=boundary")
    assert "unknown head.span 'biafine' (did you mean 'biaffine'?)" in bundled("head.span.kind=biafine")
    assert bundled("head.span={dropout: 0}").startswith("head.span: kind is missing; known: biaffine, ")
    assert "head bundle: span: input should be a valid dictionary, found 'spanner'" in bundled("head.span=spanner")
    assert bundled("head.span.kind=seqner") == "head.span: expected a span head, found seqner, a sequence head"
    assert bundled("head.sequence.kind=biaffine") == "head.sequence: expected a sequence head, found biaffine, a span head"
    assert bundled("head.span.kind=bundle") == "head.span: expected a span head, found bundle, a joint head"
    assert "head bundle: alpha: input should be less than or equal to 1, found 1.5" in bundled("head.alpha=1.5")
    assert "head bundle: branch: input should be 'sequence' or 'span', found 'both'" in bundled("head.branch=both")
    assert bundled("head.alpha=1") == "head: alpha 1 gives no weight to the span branch, which predicts"
    assert bundled("head.alpha=0", "head.branch=sequence").startswith("head: alpha 0 gives no weight to the sequence branch")


def test_overrides_replace_settings() -> None:
    config = configure("spanner", encoder="static", settings={"epochs": 3, "seed": None}, overrides=["training.epochs=4"])
    assert config.training.epochs == 4
    assert config.training.seed == TrainingSettings().seed
    twice = configure("spanner", encoder="static", overrides=["head.max_width=4", "head.max_width=6", "head.max_width=null"])
    assert twice.head["max_width"] is None


def test_numbers_in_scientific_notation() -> None:
    settings = configure(
        "spanner", encoder="static", overrides=["training.head_rate=1e-3", "training.encoder_rate=2E-5", "training.clip=5"]
    ).training
    assert (settings.head_rate, settings.encoder_rate, settings.clip) == (1e-3, 2e-5, 5.0)


def test_encoders_by_name(tmp_path: Path) -> None:
    assert configure("spanner", encoder="static").encoder == {"kind": "static"}
    for name in ("minilm", str(tmp_path), "somebody/some-model"):
        assert configure("spanner", encoder=name).encoder == {"kind": "transformer", "name": name}


def test_a_setting_of_one_of_concatenated_encoders_needs_no_path() -> None:
    settings = ["encoder.context=document", "encoder.char_size=7", "encoder.hidden=3", "encoder.glove.window=5"]
    encoder = configure("spanwise", encoder="minilm", overrides=settings).encoder
    assert [encoder["parts"][0]["context"], encoder["parts"][1]["char_size"], encoder["hidden"]] == ["document", 7, 3]
    assert encoder["parts"][1]["glove"] == {"window": 5}
    assert "context" not in encoder
    named = configure("spanwise", encoder="minilm", overrides=["encoder.name=somebody/some-model"]).encoder
    assert named["parts"][0]["name"] == "somebody/some-model"


def test_a_setting_that_no_or_several_concatenated_encoders_have_is_refused() -> None:
    error = error_of(recipe="spanwise", encoder="minilm", overrides=["encoder.contxt=document"])
    assert "unknown setting of the concat encoder 'contxt' (did you mean 'context'?); known: char_hidden, " in error
    assert ", context, dropout, " in error
    twice = ["encoder.parts=[{kind: transformer, name: a}, {kind: transformer, name: b}]", "encoder.window=64"]
    error = error_of(recipe="spanwise", encoder="minilm", overrides=twice)
    assert "--set encoder.window: several encoders have this setting; choose one of encoder.parts.0.window, " in error
    assert error.endswith("encoder.parts.1.window")


def test_a_setting_of_a_head_inside_another_needs_no_path() -> None:
    head = configure("bl-spanner", encoder="static", overrides=["head.max_width=9", "head.alpha=0.3"]).head
    assert [head["span"]["max_width"], head["alpha"]] == [9, 0.3]
    assert configure("spanwise", encoder="static", overrides=["head.wrong=5"]).head["relations"]["wrong"] == 5
    error = error_of(recipe="bl-spanner", overrides=["head.dropout=0.3"])
    assert error.endswith("choose one of head.sequence.dropout, head.span.dropout")
    assert "'max_wdith' (did you mean 'max_width'?)" in error_of(recipe="bl-spanner", overrides=["head.max_wdith=9"])
    assert configure("bl-spanner", encoder="static", overrides=["head.kind=spanner"]).head["kind"] == "spanner"


def test_a_named_encoder_replaces_the_transformer_of_a_concatenation(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = recipes()["locate-label-paper-genia"]["encoder"]
    transformer, static = whole["parts"]
    named = configure("locate-label-paper-genia", encoder="somebody/some-model").encoder
    assert named == {**whole, "parts": [{**transformer, "name": "somebody/some-model"}, static]}
    changed = configure("locate-label-paper-genia", encoder="minilm", overrides=["encoder.parts.1.pos_size=7"]).encoder
    assert changed == {**whole, "parts": [{**transformer, "name": "minilm"}, {**static, "pos_size": 7}]}
    assert recipes()["locate-label-paper-genia"]["encoder"] == whole
    # Without the transformer, one part remains, with the same BiLSTM.
    assert configure("locate-label-paper-genia", encoder="static").encoder == {
        **static,
        "layers": 1,
        "hidden": 512,
        "dropout": 0.0,
    }
    monkeypatch.setattr("spanwise.encoders.pretrained.ALIASES", {"minilm": ("json", "model")})
    assert configure("locate-label-paper-genia").encoder["parts"][0] == {**transformer, "name": "minilm"}


def test_the_default_encoder_needs_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spanwise.encoders.pretrained.ALIASES", {"minilm": ("no_such_package", "model")})
    assert default_encoder() == "static"
    assert configure("spanner").encoder == {"kind": "static"}
    monkeypatch.setattr("spanwise.encoders.pretrained.ALIASES", {"minilm": ("json", "model")})
    assert configure("spanner").encoder == {"kind": "transformer", "name": "minilm"}


def test_the_guide_to_training_names_every_recipe() -> None:
    page = (Path(__file__).parents[2] / "docs" / "training.md").read_text(encoding="utf-8")
    assert [name for name in recipes() if f"`{name}`" not in page] == []


@pytest.mark.parametrize(
    ("recipe", "override", "problem"),
    [
        ("gp-relations", "head.entities={kind: sng, task: typing}", "head.entities: expected a head that predicts entities"),
        ("bl-spanner", "head.span={kind: sng, task: typing}", "head.span: expected a head that predicts entities"),
        ("span-relations", "head.entities={kind: bundle}", "bundle consists of two heads"),
        ("span-relations", "head.entities={kind: deep-span, unit: subwords, max_width: 4}", "read words"),
    ],
)
def test_nested_heads_must_predict_entities_of_words(recipe: str, override: str, problem: str) -> None:
    with pytest.raises(SpanwiseError, match=problem):
        head_settings(configure(recipe, encoder="static", overrides=[override]).head)


def test_the_recipe_spanwise_with_and_without_a_transformer() -> None:
    parts = configure("spanwise", encoder="minilm").encoder["parts"]
    assert [part["kind"] for part in parts] == ["transformer", "static"]
    assert parts[0]["name"] == "minilm"
    assert configure("spanwise", encoder="static").encoder == {"kind": "static"}
