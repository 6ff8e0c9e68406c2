"""Starting from a trained model: ``--init``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from spanwise.encoders.transfer import transfer_weights
from spanwise.heads.base import Head
from spanwise.heads.discontinuous import Discontinuous
from spanwise.models.model import Model
from spanwise.spans.deep import SpanTransformer


def start_from(model: Model, folder: Path) -> str:
    """Take over the encoder of a trained model, and of its head what fits, if it has the same labels."""
    other = Model.load(folder)
    transfer_weights(model.encoder, other.encoder, folder)
    for part in model.head.modules():
        if isinstance(part, SpanTransformer):
            part.copy_again()
    head, source = model.head, other.head
    same = model.labels if head.finds_relations else replace(model.labels, relations=other.labels.relations)
    if type(head.inner) is not type(source.inner) or same != other.labels:
        return f"started from {folder}: its encoder was taken over; the head begins anew, for its kind or its labels differ"
    own, found, places = head.state_dict(), source.state_dict(), _places(source)
    fitting = {name: found[places[place]] for place, name in _places(head).items() if place in places}
    taken = {name: value for name, value in fitting.items() if own[name].shape == value.shape}
    head.load_state_dict({**own, **taken})
    return f"started from {folder}: its encoder and {len(taken)} of {len(own)} weight tensors of the head were taken over"


def _places(head: Head) -> dict[str, str]:
    """The names of a head's tensors by what they would be called in a head that finds no discontinuous entities.

    What is there for the sake of these has names of its own; the layer that types fragments is named after the types. Copies of
    the encoder's layers are counted from the top, for heads may have copied more or fewer.
    """
    around = {f"{name}." if name else "": part for name, part in head.named_modules() if isinstance(part, Discontinuous)}
    copied = {f"{name}.copies.": len(part.copies) for name, part in head.named_modules() if isinstance(part, SpanTransformer)}
    places = {}
    for name in head.state_dict():
        place = name
        for prefix, count in copied.items():
            if name.startswith(prefix):
                number, _, rest = name.removeprefix(prefix).partition(".")
                place = f"{prefix}{int(number) - count}.{rest}"
        for prefix, part in around.items():
            if place.startswith(f"{prefix}head."):
                place = prefix + place.removeprefix(f"{prefix}head.")
            elif place.startswith(prefix):
                kind = part.types if place.startswith(f"{prefix}typing.") else "apart"
                place = f"{prefix}{kind}.{place.removeprefix(prefix)}"
        places[place] = name
    return places
