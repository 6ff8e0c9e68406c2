"""Initialising an encoder from a trained one."""

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


def transfer_weights(target: Encoder, source: Encoder, run: Path) -> None:
    """Copy the weights of ``source`` to a ``target`` of the same kind and size; ``run`` is the source's folder, for errors.

    The words, characters and tags of a static encoder are matched by name; those that the source
    does not have keep their weights.
    """
    if isinstance(target, ConcatEncoder) and isinstance(source, ConcatEncoder) and len(target.parts) == len(source.parts):
        for target_part, source_part in zip(target.parts, source.parts, strict=True):
            transfer_weights(target_part, source_part, run)  # type: ignore[arg-type]
    tensors = source.state_dict()
    if isinstance(target, StaticEncoder) and isinstance(source, StaticEncoder):
        tensors |= _reindexed(target, source)
    elif isinstance(target, ConcatEncoder):
        tensors |= {name: value for name, value in target.state_dict().items() if name.startswith("parts.")}
    mismatch = _mismatch(target, source, tensors)
    if mismatch is not None:
        raise SpanwiseError(
            f"{run}: the encoder does not match this configuration ({mismatch}); pass the same --recipe, --encoder and settings"
        )
    target.load_state_dict(tensors)


def _mismatch(target: Encoder, source: Encoder, tensors: Mapping[str, Tensor]) -> str | None:
    """Why an encoder cannot load the tensors of another one."""
    if type(target) is not type(source):
        return "different kinds of encoders"
    vocabularies = [encoder.tokenizer.get_vocab() for encoder in (target, source) if isinstance(encoder, TransformerEncoder)]
    if len(vocabularies) == 2 and vocabularies[0] != vocabularies[1]:
        return "different vocabularies"
    expected = target.state_dict()
    for name in sorted(expected.keys() | tensors.keys()):
        here, there = (list(weights[name].shape) if name in weights else "missing" for weights in (expected, tensors))
        if here != there:
            return f"{name} is {there} there and {here} here"
    return None


def _reindexed(target: StaticEncoder, source: StaticEncoder) -> dict[str, Tensor]:
    """The source's embedding tables in the order of the target's vocabulary."""
    target_names, source_names = target.vocabulary, source.vocabulary
    tables = {
        "words.learned.weight": (target_names.learned, source_names.learned, 2),
        "words.given": (target_names.given, source_names.given, 0),
        "characters.vectors.weight": (target_names.characters, source_names.characters, 2),
        "tags.weight": (target_names.tags, source_names.tags, 2),
    }
    old, new = source.state_dict(), target.state_dict()
    return {name: _copied_rows(new[name], old[name], *tables[name]) for name in tables if name in new and name in old}


def _copied_rows(
    target: Tensor, source: Tensor, target_names: Sequence[str], source_names: Sequence[str], first: int
) -> Tensor:
    """``target`` with the rows of ``source`` for all common names; the ``first`` rows (padding, unknown) have no name."""
    if target.shape[1] != source.shape[1]:
        return source
    source_rows = {name: row for row, name in enumerate(source_names, first)}
    pairs = [(row, source_rows[name]) for row, name in enumerate(target_names, first) if name in source_rows]
    rows = torch.tensor([(n, n) for n in range(first)] + pairs, dtype=torch.long).view(-1, 2)
    table = target.clone()
    table[rows[:, 0]] = source[rows[:, 1]]
    return table
