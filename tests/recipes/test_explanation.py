"""``spanwise recipes NAME``: every setting with its value, default and meaning."""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

from spanwise.cli import app
from spanwise.config.settings import TrainingSettings
from spanwise.core.errors import SpanwiseError
from spanwise.encoders import ENCODERS, encoder_class
from spanwise.heads import HEADS, head_class
from spanwise.recipes.catalog import recipes
from spanwise.vectors.glove import GloveSettings

GLOVE = GloveSettings.__dataclass_fields__


def shown(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["recipes", *arguments], catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_every_setting_of_head_encoder_and_training_has_a_meaning() -> None:
    classes = [
        TrainingSettings, *(head_class(kind).settings_class for kind in HEADS),
        *(encoder_class(kind).settings_class for kind in ENCODERS),
    ]  # fmt: skip
    unexplained = [f"{c.__name__}.{name}" for c in classes for name, field in c.model_fields.items() if not field.description]
    assert not unexplained


def test_the_list_starts_with_the_default_and_fits_a_terminal() -> None:
    lines = shown().splitlines()
    names = [line for line in lines if line and not line.startswith(" ")][:-1]
    assert names[0] == "spanwise (default)"
    assert names[1:] == sorted(set(recipes()) - {"spanwise"})
    assert max(map(len, lines)) <= 100


def test_a_recipe_explains_every_setting_with_default_and_meaning() -> None:
    output = shown("biaffine")
    assert "Boundary Smoothing" in output  # title and paper
    for section in ("head (biaffine)", "encoder (", "training"):
        assert re.search(rf"^{re.escape(section)}", output, re.MULTILINE), section
    for name, field in TrainingSettings.model_fields.items():
        assert re.search(rf"^  training\.{name}\b", output, re.MULTILINE), name
        assert field.description
    assert re.search(r"^  head\.smoothing_distance +1\b", output, re.MULTILINE)
    assert max(map(len, output.splitlines())) <= 100


def test_a_value_of_the_recipe_is_shown_with_the_default_of_the_setting() -> None:
    assert re.search(r"^  head\.tagging +crf \(default: softmax\)", shown("seqner-crf"), re.MULTILINE)


def test_settings_of_inner_heads_and_encoders_are_explained_too() -> None:
    assert re.search(r"^  head\.entities\.threshold +0\.5", shown("gp-relations"), re.MULTILINE)
    assert re.search(r"^  head\.span\.representation +", shown("bl-spanner"), re.MULTILINE)
    concat = shown("locate-label-paper-genia", "--encoder", "minilm")
    assert re.search(r"^  encoder\.parts\.0\.name +minilm", concat, re.MULTILINE)
    assert re.search(r"^  encoder\.parts\.1\.char_hidden +25 \(default: 50\)", concat, re.MULTILINE)
    relations = shown("spanwise")
    assert re.search(r"^  head\.relations\.weight +2 \(default: 1\)", relations, re.MULTILINE)
    assert "head.relations.entities" not in relations
    glove = shown("sng-paper")
    assert all(re.search(rf"^  encoder\.glove\.{name} .*[a-z]{{4}}", glove, re.MULTILINE) for name in GLOVE)


@pytest.mark.parametrize("name", recipes())
def test_all_recipes_can_be_explained(name: str) -> None:
    assert name in shown(name)


def test_an_unknown_recipe_names_the_nearest() -> None:
    with pytest.raises(Exception, match="spanner"):
        CliRunner().invoke(app, ["recipes", "spaner"], catch_exceptions=False)


def test_an_unknown_encoder_is_refused() -> None:
    with pytest.raises(SpanwiseError, match="encoder 'minlim' is neither static, minilm nor a folder"):
        CliRunner().invoke(app, ["recipes", "spanner", "--encoder", "minlim"], catch_exceptions=False)
    assert "encoder.name " in shown("spanner", "--encoder", "hf:bert-base-cased")
    result = CliRunner().invoke(app, ["recipes", "--encoder", "static"])
    assert result.exit_code == 2
    assert "--encoder needs NAME" in result.output
