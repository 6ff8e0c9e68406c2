"""Where a Label Studio region stands in its text, by its offsets and by what it says itself.

Offsets are not always to be trusted: they count characters, but older versions counted UTF-16 units, and others miscounted
white space. The region's own ``text`` decides then.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, TypeGuard

from spanwise.core.errors import FormatError
from spanwise.core.types import Span
from spanwise.formats.base import Ledger
from spanwise.text.blanks import Collapsed, says
from spanwise.text.utf16 import Utf16, is_wide


def place_of(value: dict[str, Any], text: str, path: Path, line: int, ledger: Ledger) -> Span | None:
    """The characters of a region; None when they cannot be known, as in HTML whose markup is not counted."""
    is_markup = not _has_offsets(value)
    offsets = value.get("globalOffsets") if is_markup else value
    if not _has_offsets(offsets):
        if "start" not in value or isinstance(value["start"], str):
            return None
        raise FormatError(path, line, "value: expected start and end as whole numbers")
    place = Span(offsets["start"], offsets["end"])
    said = value.get("text")
    if not isinstance(said, str) or not said.strip() or _says(place, text, said):
        return place
    said = " ".join(said.replace("\\n", "\n").split())  # a line end may be spelled so
    if is_markup:
        found = _collapsed(text).first(said, 2)
        return found[0] if len(found) == 1 else None
    if _is_wide(text) and place.start >= 0:
        moved = _units(text).to_characters(place)
        if _says(moved, text, said):
            ledger.note("regions that count UTF-16 units, converted")
            return moved
    if 0 <= place.start < place.end <= len(text) and _collapsed(text).has(said, place):
        return place  # a selection by words: the offsets are of the words, the text is of what was dragged over
    nearest = _collapsed(text).nearest(said, place.start)
    if nearest is None:
        ledger.note("regions whose own text is not in the text, read by their offsets")
        return place
    ledger.note("regions whose offsets miss their own text, moved to the nearest place that has it")
    return nearest


# Made once for all regions of a text.
_is_wide = lru_cache(maxsize=1)(is_wide)
_units = lru_cache(maxsize=1)(Utf16)
_collapsed = lru_cache(maxsize=1)(Collapsed)


def _has_offsets(value: Any) -> TypeGuard[dict[str, int]]:
    return isinstance(value, dict) and all(type(value.get(key)) is int for key in ("start", "end"))


def _says(place: Span, text: str, said: str) -> bool:
    return 0 <= place.start < place.end <= len(text) and any(
        says(text, [place], spelled) for spelled in (said, said.replace("\\n", "\n"))
    )
