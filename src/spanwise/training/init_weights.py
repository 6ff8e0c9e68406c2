"""Initialise a model with the weights of a trained one (``--init``)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from spanwise.encoders.transfer import transfer_weights
from spanwise.heads.abilities import RenamesWeights
from spanwise.heads.base import Head
from spanwise.models.model import Model
from spanwise.spans.deep import SpanTransformer


def initialize_from(model: Model, folder: Path) -> str:
    """Copy the encoder of a trained model, and the matching tensors of its head if kind and labels agree.

    Returns a line for the log.
    """
    source_model = Model.load(folder)
    transfer_weights(model.encoder, source_model.encoder, folder)
    for part in model.head.modules():
        if isinstance(part, SpanTransformer):
            part.reload_copies()
    head, source = model.head, source_model.head
    labels = model.labels if head.finds_relations else replace(model.labels, relations=source_model.labels.relations)
    if type(head.configured_head) is not type(source.configured_head) or labels != source_model.labels:
        return f"initialised from {folder}: the encoder only, because the head is of another kind or has other labels"
    tensors, source_tensors, source_names = head.state_dict(), source.state_dict(), _transfer_names(source)
    matches = {name: source_tensors[source_names[key]] for key, name in _transfer_names(head).items() if key in source_names}
    copied = {name: value for name, value in matches.items() if tensors[name].shape == value.shape}
    head.load_state_dict({**tensors, **copied})
    return f"initialised from {folder}: the encoder, and {len(copied)} of {len(tensors)} weight tensors of the head"


def _transfer_names(head: Head) -> dict[str, str]:
    """Map the names under which tensors of two heads are matched to the names in this head.

    A wrapper translates the names of its tensors (``RenamesWeights``). Copied layers of the encoder are
    counted from the top, because the other head may have copied more or fewer.
    """
    renaming = {f"{name}." if name else "": part for name, part in head.named_modules() if isinstance(part, RenamesWeights)}
    copies = {f"{name}.copies.": len(part.copies) for name, part in head.named_modules() if isinstance(part, SpanTransformer)}
    names = {}
    for name in head.state_dict():
        key = name
        for prefix, count in copies.items():
            if name.startswith(prefix):
                index, _, rest = name.removeprefix(prefix).partition(".")
                key = f"{prefix}{int(index) - count}.{rest}"
        for prefix, part in renaming.items():
            if key.startswith(prefix):
                key = prefix + part.transfer_name(key.removeprefix(prefix))
        names[key] = name
    return names
