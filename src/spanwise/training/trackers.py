"""Experiment trackers, through Accelerate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spanwise.core.errors import SpanwiseError, unknown_name


def check_trackers(names: Sequence[str]) -> None:
    """Raise an error if a tracker is unknown or not installed. (Accelerate ignores those that are not.)"""
    if not names:
        return
    from accelerate.tracking import LOGGER_TYPE_TO_CLASS, get_available_trackers

    available = {str(getattr(tracker, "value", tracker)) for tracker in get_available_trackers()}
    for name in names:
        if name not in LOGGER_TYPE_TO_CLASS:
            raise unknown_name("tracker", name, LOGGER_TYPE_TO_CLASS)
        if name not in available:
            raise SpanwiseError(f"tracker {name!r} is not installed; run pip install {name}")


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested values under dotted names, as trackers expect them.

    >>> flatten({"head": {"kind": "seqner", "width": None}, "seed": 1})
    {'head.kind': 'seqner', 'seed': 1}
    """
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        elif isinstance(value, int | float | str | bool):
            flat[prefix + key] = value
    return flat
