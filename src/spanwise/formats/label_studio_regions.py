"""Character offsets of a Label Studio region, checked against its text.

Offsets count characters, but older versions counted UTF-16 units and others miscounted whitespace. In
such cases the ``text`` of the region decides.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, TypeGuard

from spanwise.core.errors import FormatError
from spanwise.core.types import Span
from spanwise.formats.base import Ledger
from spanwise.text.text_index import TextIndex
from spanwise.text.utf16 import Utf16, is_wide
from spanwise.text.whitespace import CollapsedText


def locate_region(value: dict[str, Any], text: str, path: Path, line: int, ledger: Ledger) -> Span | None:
    """Return the characters of a region; None if they are unknown, as in HTML without global offsets."""
    is_markup = not _has_offsets(value)
    offsets = value.get("globalOffsets") if is_markup else value
    if not _has_offsets(offsets):
        if "start" not in value or isinstance(value["start"], str):
            return None
        raise FormatError(path, line, "value: expected start and end as integers")
    span = Span(offsets["start"], offsets["end"])
    expected = value.get("text")
    if not isinstance(expected, str) or not expected.strip() or _matches(span, text, expected):
        return span
    expected = " ".join(expected.replace("\\n", "\n").split())  # a line break may be written as \\n
    if is_markup:
        occurrences = _collapsed(text).find_first(expected, 2)
        return occurrences[0] if len(occurrences) == 1 else None
    if _is_wide(text) and span.start >= 0:
        moved = _units(text).to_characters(span)
        if _matches(moved, text, expected):
            ledger.note("regions with UTF-16 offsets, converted")
            return moved
    if 0 <= span.start < span.end <= len(text) and _collapsed(text).contains(expected, span):
        return span  # selection by words: the offsets cover whole words, the text only the selected part
    nearest = _collapsed(text).find_nearest(expected, span.start)
    if nearest is None:
        ledger.note("regions whose text is not in the document, placed by their offsets")
        return span
    ledger.note("regions whose offsets do not match their text, moved to the nearest match")
    return nearest


# Computed once for all regions of a text.
_is_wide = lru_cache(maxsize=1)(is_wide)
_units = lru_cache(maxsize=1)(Utf16)
_collapsed = lru_cache(maxsize=1)(CollapsedText)
_index = lru_cache(maxsize=1)(TextIndex)


def _has_offsets(value: Any) -> TypeGuard[dict[str, int]]:
    return isinstance(value, dict) and all(type(value.get(key)) is int for key in ("start", "end"))


def _matches(span: Span, text: str, expected: str) -> bool:
    return 0 <= span.start < span.end <= len(text) and any(
        _index(text).matches([span], spelling) for spelling in (expected, expected.replace("\\n", "\n"))
    )
