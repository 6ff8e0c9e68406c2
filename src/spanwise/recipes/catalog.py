"""Recipes by name, and the configuration that a recipe and a user's overrides give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any

import yaml

from spanwise.config.settings import Config
from spanwise.config.validation import validate_settings
from spanwise.core.errors import SpanwiseError, unknown_name
from spanwise.encoders.pretrained import alias_folder

DEFAULT_RECIPE = "spanner"


def recipes() -> dict[str, dict[str, Any]]:
    """Every recipe by name, as its file says it."""
    found = {}
    for file in sorted(files("spanwise.recipes").iterdir(), key=lambda file: file.name):
        if file.name.endswith(".yaml"):
            found[file.name.removesuffix(".yaml")] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return found


def configure(
    recipe: str, *, encoder: str | None = None, settings: Mapping[str, Any] | None = None, overrides: Iterable[str] = (),
    begun: Config | None = None,
) -> Config:  # fmt: skip
    """The configuration of a recipe with another encoder, training settings, and ``section.key=value`` overrides.

    With ``begun``, the configuration of a training that is to go on, that is what these are said of, and not the recipe.

    >>> configure("spanner", overrides=["head.representation=boundary"]).head["representation"]
    'boundary'
    """
    if begun is not None:
        values = begun.model_dump()
    else:
        known = recipes()
        if recipe not in known:
            raise unknown_name("recipe", recipe, known)
        values = {"recipe": recipe, **known[recipe]}
    values["encoder"] = dict(values.get("encoder") or {})
    if encoder is not None or _is_open(values["encoder"]):
        values["encoder"] = encoder_values(encoder or default_encoder(), values["encoder"])
    values["training"] = {**(values.get("training") or {}), **{k: v for k, v in (settings or {}).items() if v is not None}}
    for override in overrides:
        _apply(values, override)
    return validate_settings(Config, values, "the configuration")


def default_encoder() -> str:
    """The encoder of recipes that name none: MiniLM where its package is installed, else static. Neither needs a network."""

    return "minilm" if alias_folder("minilm") else "static"


def encoder_values(name: str, before: Mapping[str, Any]) -> dict[str, Any]:
    """The encoder section for the name a user wrote: ``static``, an alias, a folder or a hub name.

    Where a recipe puts a transformer beside other parts, it is the transformer that is named, and ``static`` leaves it out.

    >>> parts = [{"kind": "transformer", "layers": 4}, {"kind": "static"}]
    >>> encoder_values("minilm", {"kind": "concat", "parts": parts})["parts"]
    [{'kind': 'transformer', 'layers': 4, 'name': 'minilm'}, {'kind': 'static'}]
    """
    kind = "static" if name == "static" else "transformer"
    named = {"kind": kind} if kind == "static" else {"kind": kind, "name": name}
    if before.get("kind") != "concat":
        return {"kind": kind, **(before if before.get("kind") == kind else {}), **named}
    parts = [dict(part) for part in before["parts"]]
    if kind == "transformer":
        return {**before, "parts": [{**part, **named} if part["kind"] == kind else part for part in parts]}
    # One part alone needs no other encoder above it: it has the same BiLSTM of its own.
    alone = next((part for part in parts if part["kind"] == kind), named)
    return {**alone, **{key: before[key] for key in ("hidden", "dropout") if key in before}, "layers": 1}


def _is_open(values: Mapping[str, Any]) -> bool:
    """Whether an encoder section leaves it to the user which pretrained encoder is taken."""
    if values.get("kind") == "concat":
        return any(_is_open(part) for part in values["parts"])
    return not values or (values["kind"] == "transformer" and "name" not in values)


def _apply(values: dict[str, Any], override: str) -> None:
    """Set what an override says, at any depth; sections on the way that are not there yet are made."""
    key, equals, text = override.partition("=")
    section, *names = key.split(".")
    if not equals or not names or not all(names):
        raise SpanwiseError(f"--set {override}: expected section.key=value, as in head.representation=boundary")
    if section not in ("encoder", "head", "training"):
        raise unknown_name("section", section, ("encoder", "head", "training"))
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        raise SpanwiseError(f"--set {override}: {text!r} is not a value") from None
    values[section] = _replaced(values[section], names, value, f"--set {override}: {section}")


def _replaced(values: Any, path: Sequence[str], value: Any, place: str) -> Any:
    """``values`` with another value at the end of the path; a number is a place in a list.

    >>> _replaced({"parts": [{"size": 3}]}, ["parts", "0", "size"], 5, "")
    {'parts': [{'size': 5}]}
    """
    if not path:
        return value
    name, *rest = path
    if isinstance(values, list) and name.isdigit() and int(name) < len(values):
        number = int(name)
        return [*values[:number], _replaced(values[number], rest, value, f"{place}.{name}"), *values[number + 1 :]]
    if not isinstance(values, dict):
        raise SpanwiseError(f"{place} is {values!r} and has no settings of its own")
    return {**values, name: _replaced(values.get(name, {}), rest, value, f"{place}.{name}")}
