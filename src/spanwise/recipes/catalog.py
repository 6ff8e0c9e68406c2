"""Recipes by name, and the configuration of a recipe with a user's overrides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import chain
from typing import Any

import yaml

from spanwise.config.settings import Config
from spanwise.config.validation import validate_settings
from spanwise.core.errors import SpanwiseError, unknown_name
from spanwise.encoders import ENCODERS, encoder_class
from spanwise.encoders.pretrained import alias_folder
from spanwise.heads import HEADS, head_class

DEFAULT_RECIPE = "spanwise"


class Recipes(Mapping[str, dict[str, Any]]):
    """All recipes by name: the recipe files, and one recipe for each head of another package.

    Listing the names imports no head.
    """

    def __init__(self) -> None:
        recipe_files = sorted(files("spanwise.recipes").iterdir(), key=lambda file: file.name)
        self._files = {file.name.removesuffix(".yaml"): file for file in recipe_files if file.name.endswith(".yaml")}
        self._names = (*self._files, *(name for name in HEADS.plugins if name not in self._files))

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __getitem__(self, name: str) -> dict[str, Any]:
        if name in self._files:
            recipe: dict[str, Any] = yaml.safe_load(self._files[name].read_text(encoding="utf-8"))
            return recipe
        if name not in self:
            raise unknown_name("recipe", name, self)
        head = head_class(name)
        title = (head.__doc__ or name).strip().splitlines()[0].removesuffix(".")
        return {"title": title, "paper": getattr(head, "paper", ""), "head": {"kind": name}}


def recipes() -> Recipes:
    """Return all recipes, by name."""
    return Recipes()


def configure(
    recipe: str, *, encoder: str | None = None, settings: Mapping[str, Any] | None = None, overrides: Iterable[str] = (),
    resumed: Config | None = None,
) -> Config:  # fmt: skip
    """Return the configuration of a recipe with an encoder, training settings, and ``section.key=value`` overrides.

    With ``resumed``, the configuration of a resumed run, the choices apply to it instead of the recipe.

    >>> configure("spanner", overrides=["head.representation=boundary"]).head["representation"]
    'boundary'
    """
    if resumed is not None:
        values = resumed.model_dump()
    else:
        values = {"recipe": recipe, **recipes()[recipe]}
    values["encoder"] = dict(values.get("encoder") or {})
    if encoder is not None or _needs_encoder(values["encoder"]):
        values["encoder"] = encoder_values(encoder or default_encoder(), values["encoder"])
    values["training"] = {**(values.get("training") or {}), **{k: v for k, v in (settings or {}).items() if v is not None}}
    for override in overrides:
        _apply(values, override)
    return validate_settings(Config, values, "the configuration")


def default_encoder() -> str:
    """Return the encoder of recipes that name none: MiniLM if its package is installed, else static.

    Neither needs a network.
    """
    return "minilm" if alias_folder("minilm") else "static"


def names_no_encoder(recipe: str) -> bool:
    """Whether a recipe leaves the choice of the pretrained encoder to the user."""
    return recipe in recipes() and _needs_encoder(recipes()[recipe].get("encoder") or {})


def encoder_values(name: str, recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Return the encoder section for a user's choice: ``static``, an alias, a folder, ``hf:NAME`` or a plugin's name.

    ``recipe`` is the section of the recipe. If it concatenates encoders, the name replaces that of the
    transformer, and ``static`` removes the transformer.

    >>> parts = [{"kind": "transformer", "layers": 4}, {"kind": "static"}]
    >>> encoder_values("minilm", {"kind": "concat", "parts": parts})["parts"]
    [{'kind': 'transformer', 'layers': 4, 'name': 'minilm'}, {'kind': 'static'}]
    """
    if name in ENCODERS.plugins:
        return {**(recipe if recipe.get("kind") == name else {}), "kind": name}
    kind = "static" if name == "static" else "transformer"
    named = {"kind": kind} if kind == "static" else {"kind": kind, "name": name}
    if recipe.get("kind") != "concat":
        return {"kind": kind, **(recipe if recipe.get("kind") == kind else {}), **named}
    parts = [dict(part) for part in recipe["parts"]]
    if kind == "transformer":
        return {**recipe, "parts": [{**part, **named} if part["kind"] == kind else part for part in parts]}
    if not recipe.get("hidden"):  # no BiLSTM over the parts: the static part only adds to the transformer
        return named
    # A single part needs no encoder around it: it gets the same BiLSTM itself.
    static = next((part for part in parts if part["kind"] == kind), named)
    return {**static, **{key: recipe[key] for key in ("hidden", "dropout") if key in recipe}, "layers": 1}


def _needs_encoder(values: Mapping[str, Any]) -> bool:
    """Whether an encoder section leaves the pretrained encoder to the user."""
    if values.get("kind") == "concat":
        return any(_needs_encoder(part) for part in values["parts"])
    return not values or (values["kind"] == "transformer" and "name" not in values)


def _apply(values: dict[str, Any], override: str) -> None:
    """Apply an override in place; missing sections are created."""
    key, equals, text = override.partition("=")
    section, *names = key.split(".")
    if not equals or not names or not all(names):
        raise SpanwiseError(f"--set {override}: expected section.key=value, such as head.representation=boundary")
    if section not in ("encoder", "head", "training"):
        raise unknown_name("section", section, ("encoder", "head", "training"))
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        raise SpanwiseError(f"--set {override}: {text!r} is not valid YAML") from None
    if (key, value) == ("encoder.kind", "static"):  # settings of other encoders would be unknown
        values[section] = encoder_values(value, values[section])
    else:
        names = [*_find_inner(section, values[section], names[0]), *names]
        values[section] = _replace(values[section], names, value, f"--set {override}: {section}")


def _find_inner(section: str, values: Mapping[str, Any], name: str) -> list[str]:
    """Return the path to the only inner encoder or head that has a setting; empty if the outer one has it.

    So that ``encoder.context=document`` means the same with and without an encoder of characters.

    >>> _find_inner("head", {"kind": "bundle", "sequence": {"kind": "seqner"}, "span": {"kind": "spanner"}}, "max_width")
    ['span']
    """
    inner = _inner_kinds(values)
    if not inner or name == "kind" or name in (outer := _setting_names(section, values["kind"])):
        return []
    known = {path: _setting_names(section, kind) for path, kind in inner.items()}
    owners = [path for path, names in known.items() if name in names]
    if not owners:
        source = f"the {values['kind']} encoder" if section == "encoder" else f"head {values['kind']}"
        raise unknown_name(f"setting of {source}", name, {*outer, *chain(*known.values())})
    if len(owners) > 1:
        keys = ", ".join(f"{section}.{path}.{name}" for path in owners)
        raise SpanwiseError(f"--set {section}.{name}: several {section}s have this setting; choose one of {keys}")
    return owners[0].split(".")


def _inner_kinds(values: Mapping[str, Any]) -> dict[str, str]:
    """The kinds of the sections inside a section, by their paths.

    >>> _inner_kinds({"kind": "concat", "parts": [{"kind": "static"}], "layers": 1})
    {'parts.0': 'static'}
    """
    lists = {
        f"{key}.{index}": item for key, value in values.items() if isinstance(value, list) for index, item in enumerate(value)
    }
    return {
        path: str(item["kind"]) for path, item in {**values, **lists}.items() if isinstance(item, Mapping) and "kind" in item
    }


def _setting_names(section: str, kind: str) -> Iterable[str]:
    names: Iterable[str] = (encoder_class if section == "encoder" else head_class)(kind).settings_class.model_fields
    return names


def _replace(values: Any, path: Sequence[str], value: Any, place: str) -> Any:
    """Return a copy of ``values`` with a new value at the end of a path; a number is an index into a list.

    >>> _replace({"parts": [{"size": 3}]}, ["parts", "0", "size"], 5, "")
    {'parts': [{'size': 5}]}
    """
    if not path:
        return value
    name, *rest = path
    if isinstance(values, list) and name.isdigit() and int(name) < len(values):
        index = int(name)
        return [*values[:index], _replace(values[index], rest, value, f"{place}.{name}"), *values[index + 1 :]]
    if not isinstance(values, dict):
        raise SpanwiseError(f"{place} is {values!r} and has no settings")
    return {**values, name: _replace(values.get(name, {}), rest, value, f"{place}.{name}")}
