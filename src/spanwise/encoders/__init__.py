"""The encoders by the ``kind`` that a configuration names, and how they are built."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spanwise.config.validation import validate_settings
from spanwise.core.registry import Registry
from spanwise.core.types import Sentence

if TYPE_CHECKING:  # indexing words and subwords needs no torch
    from spanwise.encoders.base import Encoder

ENCODERS = Registry(
    "kind of encoder",
    "spanwise.encoders",
    {
        "transformer": "spanwise.encoders.transformer:TransformerEncoder",
        "static": "spanwise.encoders.static:StaticEncoder",
        "concat": "spanwise.encoders.concat:ConcatEncoder",
    },
)


def encoder_class(kind: str) -> type[Encoder]:
    encoder: type[Encoder] = ENCODERS.load(kind)
    return encoder


def encoder_settings(values: Mapping[str, Any]) -> Any:
    """Validate the ``encoder`` section of a configuration."""
    kind = str(values.get("kind", ""))
    return validate_settings(encoder_class(kind).settings_class, values, f"the {kind} encoder")


def resolve_encoder(values: Mapping[str, Any], sentence_count: int) -> dict[str, Any]:
    """Set the automatic settings of an ``encoder`` section from the number of training sentences."""
    settings = encoder_settings(values)
    if not hasattr(settings, "resolve"):
        return dict(values)
    changed = settings.resolve(sentence_count).model_dump(mode="json", include=settings.model_fields_set)
    return {**values, **changed}


def build_encoder(
    values: Mapping[str, Any], sentences: Sequence[Sentence], log: Callable[[str], None] = lambda line: None
) -> Encoder:
    """Build a new encoder: with pretrained weights, or a vocabulary from the training sentences. ``log`` reports slow steps."""
    return encoder_class(str(values.get("kind", ""))).build(encoder_settings(values), sentences, log)


def load_encoder(values: Mapping[str, Any], folder: Path, *, only_predicts: bool = False) -> Encoder:
    """Rebuild the encoder of a run folder; its weights are loaded later."""
    kind = encoder_class(str(values.get("kind", "")))
    return (kind.load_for_prediction if only_predicts else kind.load)(encoder_settings(values), folder)
