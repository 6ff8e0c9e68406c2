"""Starting an encoder from a trained one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from spanwise.core.errors import SpanwiseError
from spanwise.encoders.base import Encoder
from spanwise.encoders.concat import ConcatEncoder
from spanwise.encoders.static import StaticEncoder
from spanwise.encoders.transformer import TransformerEncoder


def transfer_weights(own: Encoder, other: Encoder, source: Path) -> None:
    """Give an encoder the weights of another one of the same make; ``source`` is the run it comes from.

    Words, characters and tags of a static encoder go by their names: those that the other one does not know stay as they are.
    """
    if isinstance(own, ConcatEncoder) and isinstance(other, ConcatEncoder) and len(own.parts) == len(other.parts):
        for one, another in zip(own.parts, other.parts, strict=True):
            transfer_weights(one, another, source)  # type: ignore[arg-type]
    tensors = other.state_dict()
    if isinstance(own, StaticEncoder) and isinstance(other, StaticEncoder):
        tensors |= _renumbered(own, other)
    elif isinstance(own, ConcatEncoder):
        tensors |= {name: value for name, value in own.state_dict().items() if name.startswith("parts.")}
    why = _misfit(own, other, tensors)
    if why is not None:
        raise SpanwiseError(
            f"{source}: its encoder does not fit this configuration's ({why}); give the same --encoder and settings"
        )
    own.load_state_dict(tensors)


def _misfit(own: Encoder, other: Encoder, tensors: Mapping[str, Tensor]) -> str | None:
    """What keeps an encoder from having the tensors of another one."""
    if type(own) is not type(other):
        return "it is of another kind"
    vocabularies = [one.tokenizer.get_vocab() for one in (own, other) if isinstance(one, TransformerEncoder)]
    if len(vocabularies) == 2 and vocabularies[0] != vocabularies[1]:
        return "its vocabulary is another one"
    kept = own.state_dict()
    for name in sorted(kept.keys() | tensors.keys()):
        here, there = (list(found[name].shape) if name in found else "nothing" for found in (kept, tensors))
        if here != there:
            return f"{name} is {there} there and {here} here"
    return None


def _renumbered(own: StaticEncoder, other: StaticEncoder) -> dict[str, Tensor]:
    """The other encoder's tables in the order of our vocabulary."""
    ours, theirs = own.vocabulary, other.vocabulary
    names = {
        "words.learned.weight": (ours.learned, theirs.learned, 2),
        "words.given": (ours.given, theirs.given, 0),
        "characters.vectors.weight": (ours.characters, theirs.characters, 2),
        "tags.weight": (ours.tags, theirs.tags, 2),
    }
    kept, found = own.state_dict(), other.state_dict()
    return {name: _rows(kept[name], found[name], *names[name]) for name in names if name in kept and name in found}


def _rows(kept: Tensor, found: Tensor, ours: Sequence[str], theirs: Sequence[str], first: int) -> Tensor:
    """The table ``kept`` with the rows of ``found`` whose names both know; ``first`` rows (padding, the unknown) have none."""
    if kept.shape[1] != found.shape[1]:
        return found
    places = {name: place for place, name in enumerate(theirs, first)}
    pairs = [(place, places[name]) for place, name in enumerate(ours, first) if name in places]
    rows = torch.tensor([(n, n) for n in range(first)] + pairs, dtype=torch.long).view(-1, 2)
    table = kept.clone()
    table[rows[:, 0]] = found[rows[:, 1]]
    return table
