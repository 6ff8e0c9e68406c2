"""The encoders by the ``kind`` that a configuration names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from spanwise.config import checked
from spanwise.encoders.base import Encoder
from spanwise.errors import unknown
from spanwise.types import Sentence


def build_encoder(values: Mapping[str, Any], sentences: Sequence[Sentence]) -> Encoder:
    """A fresh encoder: pretrained weights, or a vocabulary from the training sentences."""
    kind = values.get("kind", "")
    if kind == "transformer":
        from spanwise.encoders.transformer import TransformerEncoder, TransformerSettings

        return TransformerEncoder.build(checked(TransformerSettings, values, "the transformer encoder"))
    if kind == "static":
        from spanwise.encoders.static import StaticEncoder, StaticSettings

        return StaticEncoder.build(checked(StaticSettings, values, "the static encoder"), sentences)
    raise unknown("kind of encoder", kind, ("transformer", "static"))


def load_encoder(values: Mapping[str, Any], folder: Path) -> Encoder:
    """The encoder of a run folder, its weights still to be filled."""
    if values["kind"] == "transformer":
        from spanwise.encoders.transformer import TransformerEncoder, TransformerSettings

        settings = checked(TransformerSettings, values, "the transformer encoder")
        return TransformerEncoder.build(settings, folder=folder)
    from spanwise.encoders.static import StaticEncoder

    return StaticEncoder.load(folder)
