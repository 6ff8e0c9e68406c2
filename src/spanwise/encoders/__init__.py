"""The encoders by the ``kind`` that a configuration names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from spanwise.config.validation import validate_settings
from spanwise.core.errors import unknown_name
from spanwise.core.types import Sentence

if TYPE_CHECKING:  # what is a matter of words alone (rows of subwords, vocabularies) needs no torch
    from spanwise.encoders.base import Encoder

_KINDS = {
    "transformer": ("transformer", "TransformerEncoder", "TransformerSettings"),
    "static": ("static", "StaticEncoder", "StaticSettings"),
    "concat": ("concat", "ConcatEncoder", "ConcatSettings"),
}


def encoder_settings(values: Mapping[str, Any]) -> Any:
    """The settings that a configuration's ``encoder`` section names, checked."""
    kind = str(values.get("kind", ""))
    settings_class: type[BaseModel] = _named(kind, 2)
    return validate_settings(settings_class, values, f"the {kind} encoder")


def build_encoder(
    values: Mapping[str, Any], sentences: Sequence[Sentence], log: Callable[[str], None] = lambda line: None
) -> Encoder:
    """A fresh encoder: pretrained weights, or a vocabulary from the training sentences. What takes long is said."""
    settings = encoder_settings(values)
    found = _named(settings.kind, 1)
    encoder: Encoder
    if settings.kind == "transformer":
        encoder = found.build(settings)
    elif settings.kind == "static":
        encoder = found.build(settings, sentences, log)
    else:
        encoder = found.build(settings, sentences, partial(build_encoder, log=log))
    return encoder


def load_encoder(values: Mapping[str, Any], folder: Path) -> Encoder:
    """The encoder of a run folder, its weights still to be filled."""
    settings = encoder_settings(values)
    found = _named(settings.kind, 1)
    encoder: Encoder
    if settings.kind == "transformer":
        encoder = found.build(settings, folder=folder)
    elif settings.kind == "static":
        encoder = found.load(folder)
    else:
        encoder = found.load(settings, folder, load_encoder)
    return encoder


def _named(kind: str, place: int) -> Any:
    """The class of an encoder (1) or of its settings (2), imported only when it is asked for."""
    if kind not in _KINDS:
        raise unknown_name("kind of encoder", kind, _KINDS)
    return getattr(import_module(f"spanwise.encoders.{_KINDS[kind][0]}"), _KINDS[kind][place])
