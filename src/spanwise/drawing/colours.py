"""Colours of entity types, shared by pages and figures."""

from __future__ import annotations

from collections.abc import Sequence

# Eight hues that are distinct with any colour blindness (Okabe and Ito; yellow and black replaced for contrast with the
# background and the text), then darker and lighter versions.
HUES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d1f", "#6f5bb5")
DARK = ("#004a75", "#8f3f00", "#00664a", "#8f4a6f", "#946600", "#2b6f99", "#57430f", "#43347d")
LIGHT = ("#66aad1", "#eb9e66", "#66c5ab", "#e6b8d1", "#f2cc7a", "#a6d8f4", "#bfa969", "#aa9cdb")
PALETTE = (*HUES, *DARK, *LIGHT)


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
