"""Initialise a model with the weights of a trained one (``--init``)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from spanwise.encoders.transfer import transfer_weights
from spanwise.heads.abilities import RenamesWeights
from spanwise.heads.base import Head
from spanwise.models.model import Model
from spanwise.spans.deep import SpanTransformer

# The names of tables with one row for each width of spans. Names are needed because the shapes of these tables can be the
# same as those of tables with one row for each type.
_WIDTHS = re.compile(r"(^|\.)(widths|widths\.weight|width_embedding\.weight|sizes\.weight)$")


def initialize_from(model: Model, folder: Path) -> str:
    """Copy the encoder of a trained model, and the matching tensors of its head if kind and labels agree.

    The model may have more entity types, and other widths of spans: the weights of each type or width are
    then copied to those of the same type or width. Returns a line for the log.
    """
    source_model = Model.load(folder)
    transfer_weights(model.encoder, source_model.encoder, folder)
    for part in model.head.modules():
        if isinstance(part, SpanTransformer):
            part.reload_copies()
    head, source = model.head, source_model.head
    labels = model.labels if head.finds_relations else replace(model.labels, relations=source_model.labels.relations)
    old, new = source_model.labels.entities, labels.entities
    has_labels = set(old) <= set(new) and labels.relations == source_model.labels.relations
    if type(head.configured_head) is not type(source.configured_head) or not has_labels:
        return f"initialised from {folder}: the encoder only, because the head is of another kind or has other labels"
    tensors, source_tensors, source_names = head.state_dict(), source.state_dict(), _transfer_names(source)
    matches = {name: source_tensors[source_names[key]] for key, name in _transfer_names(head).items() if key in source_names}
    resized = {
        name: copy_widths(tensors[name], value) if _WIDTHS.search(name) else copy_types(tensors[name], value, old, new)
        for name, value in matches.items()
    }
    copied = {name: value for name, value in resized.items() if value is not None}
    head.load_state_dict({**tensors, **copied})
    return f"initialised from {folder}: the encoder, and {len(copied)} of {len(tensors)} weight tensors of the head"


def _transfer_names(head: Head) -> dict[str, str]:
    """Map the names under which tensors of two heads are matched to the names in this head.

    Heads translate the names of some tensors (``RenamesWeights``). Copied layers of the encoder are
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
        for prefix, part in reversed(renaming.items()):  # the innermost head first
            if key.startswith(prefix):
                key = prefix + part.transfer_name(key.removeprefix(prefix))
        names[key] = name
    return names


def copy_widths(target: Tensor, source: Tensor) -> Tensor | None:
    """Copy a table with one row for each width of spans; rows of wider spans keep their values."""
    if target.shape[1:] != source.shape[1:]:
        return None
    count = min(len(target), len(source))
    return torch.cat((source[:count], target[count:]))


def copy_types(target: Tensor, source: Tensor, old: Sequence[str], new: Sequence[str]) -> Tensor | None:
    """Copy a tensor to one of a head with more types; None if the shapes do not follow from the types.

    A dimension of a head with C types has C rows, C and one for NONE, one for O and two per type (tags),
    C for first words and C for last words, or a larger block of rows per type. Rows of new types keep
    their values.

    >>> import torch
    >>> copy_types(torch.zeros(4), torch.tensor([1.0, 2.0, 9.0]), ("A", "C"), ("A", "B", "C"))
    tensor([1., 0., 2., 9.])
    """
    if target.shape == source.shape:
        return source
    if target.ndim != source.ndim:
        return None
    indices = [_rows(*sizes, old, new) for sizes in zip(source.shape, target.shape, strict=True)]
    if any(rows is None for rows in indices):
        return None
    here, there = (torch.meshgrid(*(rows[side] for rows in indices if rows), indexing="ij") for side in (1, 0))
    copy = target.clone()
    copy[here] = source[there]
    return copy


def _rows(before: int, after: int, old: Sequence[str], new: Sequence[str]) -> tuple[Tensor, Tensor] | None:
    """The indices of a dimension in the old and in the new tensor that belong together."""
    if before == after:
        return torch.arange(before), torch.arange(after)
    size, rest = divmod(after - before, len(new) - len(old)) if len(new) > len(old) else (0, 1)
    others = before - size * len(old)
    if rest or size < 1 or others not in (0, 1) or (others and size > 2):
        return None
    first = 1 if (others, size) == (1, 2) else 0  # O is the first tag, NONE the last class
    sides = []
    for types, count in ((old, before), (new, after)):
        # The number of rows from one type to the next, and from one row of a type to the next.
        step, row_step = (1, len(types)) if (others, size) == (0, 2) else (size, 1)
        rows = [first + types.index(type) * step + row * row_step for type in old for row in range(size)]
        sides.append(torch.tensor([*rows, *([0 if first else count - 1] if others else [])]))
    return sides[0], sides[1]
