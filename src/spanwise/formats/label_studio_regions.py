"""Where a Label Studio region stands in its text, by its offsets and by what it says itself.

Offsets are not always to be trusted: they count characters, but older versions counted UTF-16 units, and others miscounted
white space. The region's own ``text`` decides then.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeGuard

from spanwise.errors import FormatError
from spanwise.formats.base import Ledger
from spanwise.text.utf16 import Utf16, is_wide
from spanwise.types import Span


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
    if is_markup:
        found = _occurrences(said, text)
        return found[0] if len(found) == 1 else None
    if is_wide(text) and place.start >= 0:
        moved = _units(text).to_characters(place)
        if _says(moved, text, said):
            ledger.note("regions that count UTF-16 units, converted")
            return moved
    if 0 <= place.start < place.end <= len(text) and _plain(said) in _plain(text[place.start : place.end]):
        return place  # a selection by words: the offsets are of the words, the text is of what was dragged over
    found = _occurrences(said, text)
    if not found:
        ledger.note("regions whose own text is not in the text, read by their offsets")
        return place
    ledger.note("regions whose offsets miss their own text, moved to the nearest place that has it")
    return min(found, key=lambda span: abs(span.start - place.start))


@lru_cache(maxsize=1)
def _units(text: str) -> Utf16:
    """Counted once for all regions of a text."""
    return Utf16(text)


def _has_offsets(value: Any) -> TypeGuard[dict[str, int]]:
    return isinstance(value, dict) and all(type(value.get(key)) is int for key in ("start", "end"))


def _says(place: Span, text: str, said: str) -> bool:
    return 0 <= place.start < place.end <= len(text) and _plain(text[place.start : place.end]) == _plain(said)


def _plain(text: str) -> str:
    """Without the differences that Label Studio makes: runs of white space are one blank, line ends may be spelled ``\\n``."""
    return " ".join(text.replace("\\n", "\n").split())


def _occurrences(said: str, text: str) -> list[Span]:
    words = said.replace("\\n", "\n").split()
    return [Span(*match.span()) for match in re.finditer(r"\s+".join(map(re.escape, words)), text)]
