"""Colours of entity types, shared by pages and figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile

# Eight hues that are distinct with any colour blindness (Okabe and Ito; yellow and black replaced for contrast with the
# background and the text), then darker and lighter versions.
HUES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d1f", "#6f5bb5")
DARK = ("#004a75", "#8f3f00", "#00664a", "#8f4a6f", "#946600", "#2b6f99", "#57430f", "#43347d")
LIGHT = ("#66aad1", "#eb9e66", "#66c5ab", "#e6b8d1", "#f2cc7a", "#a6d8f4", "#bfa969", "#aa9cdb")
PALETTE = (*HUES, *DARK, *LIGHT)
CONTEXT = 3  # characters of a shortened label before its first difference from others


def type_colours(types: Sequence[str]) -> dict[str, str]:
    """Assign a colour to each type, in order; colours repeat after 24 types.

    >>> type_colours(["DNA", "RNA"])
    {'DNA': '#0072b2', 'RNA': '#d55e00'}
    """
    return {type: PALETTE[index % len(PALETTE)] for index, type in enumerate(types)}


def truncate(label: str, length: int = 24) -> str:
    """Replace the middle of a long label by an ellipsis.

    >>> truncate("Spatial_concept", 9)
    'Spat…cept'
    """
    if len(label) <= length:
        return label
    start = length // 2
    return f"{label[:start]}…{label[len(label) - (length - start - 1) :]}"


def truncate_all(labels: Iterable[str], length: int = 24) -> list[str]:
    """Truncate labels, and keep the first difference of those that would look the same.

    >>> truncate_all(["DNA_domain_or_region", "RNA_domain_or_region", "RNA_domain_of_a_region"], 12)
    ['DNA_do…egion', '…n_or_region', '…n_of_a_reg…']
    """
    labels = list(labels)
    shortened = {label: truncate(label, length) for label in labels}
    _separate(shortened, length)
    return [shortened[label] for label in labels]


def _separate(shortened: dict[str, str], length: int) -> None:
    """Shorten labels with the same short form again, starting near their first difference, until all differ."""
    groups: dict[str, list[str]] = {}
    for label, short in shortened.items():
        groups.setdefault(short, []).append(label)
    for group in groups.values():
        if len(group) > 1:
            shared = sum(1 for _ in takewhile(lambda letters: len(set(letters)) == 1, zip(*group, strict=False)))
            start = max(shared - CONTEXT, 0)
            again = {label: _cut(f"…{label[start:]}" if start else label, length) for label in group}
            if len(set(again.values())) > 1:  # otherwise the limit is too short to show a difference
                _separate(again, length)
            shortened.update(again)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
