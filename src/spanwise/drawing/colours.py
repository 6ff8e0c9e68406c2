"""The colours of types, the same on every page and figure."""

from __future__ import annotations

from collections.abc import Sequence

# Eight hues that people with any kind of colour blindness can tell apart (Okabe and Ito; their yellow and black made to stand
# out on white and from text), then the same darker and lighter.
HUES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d1f", "#6f5bb5")
DARK = ("#004a75", "#8f3f00", "#00664a", "#8f4a6f", "#946600", "#2b6f99", "#57430f", "#43347d")
LIGHT = ("#66aad1", "#eb9e66", "#66c5ab", "#e6b8d1", "#f2cc7a", "#a6d8f4", "#bfa969", "#aa9cdb")
PALETTE = (*HUES, *DARK, *LIGHT)


def type_colours(types: Sequence[str]) -> dict[str, str]:
    """A colour for each type, in their order; after 24 they come again.

    >>> type_colours(["DNA", "RNA"])
    {'DNA': '#0072b2', 'RNA': '#d55e00'}
    """
    return {type: PALETTE[number % len(PALETTE)] for number, type in enumerate(types)}


def shortened(label: str, length: int = 24) -> str:
    """The label, with its middle left out where it is too long.

    >>> shortened("Spatial_concept", 9)
    'Spat…cept'
    """
    if len(label) <= length:
        return label
    head = length // 2
    return f"{label[:head]}…{label[len(label) - (length - head - 1) :]}"
