"""Loggers besides our own files, through Accelerate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from spanwise.core.errors import SpanwiseError, unknown_name


def check_trackers(names: Iterable[str]) -> list[str]:
    """The names of trackers, all known and installed. (Accelerate passes over those that are not.)"""
    names = list(names)
    if not names:
        return names
    from accelerate.tracking import LOGGER_TYPE_TO_CLASS, get_available_trackers

    available = {str(getattr(found, "value", found)) for found in get_available_trackers()}
    for name in names:
        if name not in LOGGER_TYPE_TO_CLASS:
            raise unknown_name("tracker", name, LOGGER_TYPE_TO_CLASS)
        if name not in available:
            raise SpanwiseError(f"tracker {name!r} is not installed: pip install {name}")
    return names


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested values under dotted names, as trackers want them.

    >>> flat({"head": {"kind": "seqner", "width": None}, "seed": 1})
    {'head.kind': 'seqner', 'seed': 1}
    """
    found: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{key}.")
        elif isinstance(value, int | float | str | bool):
            found[prefix + key] = value
    return found
