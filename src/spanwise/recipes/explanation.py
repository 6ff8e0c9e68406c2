"""Explain the settings of a recipe: value, default and meaning, from the fields of the settings classes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from spanwise.config.settings import Config, TrainingSettings
from spanwise.encoders import encoder_class
from spanwise.heads import head_class


@dataclass(frozen=True)
class Setting:
    """A setting of a recipe. ``key`` is its name for ``--set``."""

    key: str
    value: str
    default: str | None  # None if the setting is required
    meaning: str


@dataclass(frozen=True)
class SettingsSection:
    """The settings of a head, an encoder, a part of one of them, or of training."""

    title: str
    settings: list[Setting]


def explain_settings(config: Config) -> list[SettingsSection]:
    """Return all settings of head, encoder and training; inner heads and encoders are sections too.

    >>> [section.title for section in explain_settings(Config(recipe="x", encoder={"kind": "static"}, head={"kind": "seqner"}))]
    ['head (seqner)', 'encoder (static)', 'training']
    """
    return [
        *_component_sections("head", config.head),
        *_component_sections("encoder", config.encoder),
        SettingsSection("training", list(_settings("training", TrainingSettings, config.training.model_dump()))),
    ]


def _component_sections(place: str, values: Mapping[str, Any]) -> Iterator[SettingsSection]:
    """Yield the section of a head or encoder and those of the heads, encoders and vectors inside it."""
    kind = str(values["kind"])
    is_encoder = place.split(".")[0] == "encoder"
    settings_class: type[BaseModel] = (encoder_class(kind) if is_encoder else head_class(kind)).settings_class
    inner = {name: value for name, value in _with_defaults(settings_class, values).items() if _is_section(value)}
    if place.endswith(".relations"):  # the entities of this relation head are those of the head that has the setting
        inner["entities"] = None
    simple = _settings(place, settings_class, {name: value for name, value in values.items() if name not in inner})
    yield SettingsSection(f"{place} ({kind})", [row for row in simple if row.key.rpartition(".")[2] not in {"kind", *inner}])
    for name, value in inner.items():
        if value is None:
            continue
        if isinstance(value, Mapping) and "kind" in value:
            yield from _component_sections(f"{place}.{name}", value)
        elif isinstance(value, Mapping):
            yield SettingsSection(f"{place}.{name}", list(_dataclass_settings(f"{place}.{name}", settings_class, name, value)))
        else:
            for index, part in enumerate(value):
                yield from _component_sections(f"{place}.{name}.{index}", part)


def _is_section(value: object) -> bool:
    """Whether a value holds settings itself, or is a list of such values."""
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(part, Mapping) for part in value)
    return isinstance(value, Mapping)


def _with_defaults(settings_class: type[BaseModel], values: Mapping[str, Any]) -> dict[str, Any]:
    fields = settings_class.model_fields
    return {name: values.get(name, field.get_default(call_default_factory=True)) for name, field in fields.items()}


def _settings(place: str, settings_class: type[BaseModel], values: Mapping[str, Any]) -> Iterator[Setting]:
    for name, field in settings_class.model_fields.items():
        default = field.get_default(call_default_factory=True)
        is_required = default is PydanticUndefined
        value = values.get(name, "(required)" if is_required else default)
        yield Setting(f"{place}.{name}", _shown(value), None if is_required else _shown(default), field.description or "")


def _dataclass_settings(place: str, owner: type[BaseModel], name: str, values: Mapping[str, Any]) -> Iterator[Setting]:
    """Explain a section whose class is a dataclass, such as the GloVe settings of the static encoder."""
    annotation = owner.model_fields[name].annotation
    candidates = [annotation, *getattr(annotation, "__args__", ())]
    settings_class = next(candidate for candidate in candidates if dataclasses.is_dataclass(candidate))
    for field in dataclasses.fields(settings_class):
        value = values.get(field.name, field.default)
        yield Setting(f"{place}.{field.name}", _shown(value), _shown(field.default), field.metadata.get("description", ""))


def _shown(value: Any) -> str:
    """A value as ``--set`` takes it.

    >>> _shown(None), _shown(True), _shown(("a", "b")), _shown(1 / 6)
    ('null', 'true', '[a, b]', '0.1667')
    """
    if isinstance(value, float):
        return f"{value:.4g}"
    plain = list(value) if isinstance(value, tuple) else value
    is_plain = plain is None or isinstance(plain, str | int | list | dict)
    text: str = yaml.safe_dump(plain if is_plain else str(plain), default_flow_style=True, width=1000)
    return text.removesuffix("...\n").strip()
