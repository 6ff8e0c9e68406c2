"""Which columns of a file of columns hold the word and its tags, as its first lines show."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from spanwise.core import tags
from spanwise.core.errors import FormatError
from spanwise.formats.shared.sample import Sample

DOCUMENT = "-DOCSTART-"
_CHUNKS = frozenset("NP VP PP ADVP ADJP SBAR PRT CONJP INTJ LST UCP".split())
_BLANKS = re.compile(r"[ \t]+")


@dataclass(frozen=True)
class Layout:
    """Which columns hold what.

    ``plain`` is for tags without a letter, ``untyped`` the type of tags that are nothing but a letter. ``widths`` are the
    numbers of columns that rows have, ``known`` the tags: by them a word ``#`` is told from a comment.
    """

    split: Callable[[str], list[str]]
    words: int
    labels: tuple[int, ...]
    pos: int | None = None
    plain: bool = False
    untyped: str | None = None
    widths: frozenset[int] = frozenset()
    known: frozenset[str] = frozenset()

    def is_row(self, cells: list[str]) -> bool:
        """True for a line that begins with # and yet holds a word: it has as many columns as others, and a tag."""
        if len(cells) not in self.widths or not any(cells_at(cells, self.words)):
            return False
        found = [tag_in(cell) for label in self.labels for cell in cells_at(cells, label)]
        return len(found) == len(self.labels) and all(self._is_likely(tag) for tag in found)

    def _is_likely(self, tag: str) -> bool:
        return tag in self.known if self.plain else self.is_tag(tag)

    def is_tag(self, tag: str) -> bool:
        if self.untyped:
            tag = tags.typed(tag, self.untyped)
        return self.plain or tags.is_tag(tag)


def by_tabs(line: str) -> list[str]:
    return line.split("\t")


def by_blanks(line: str) -> list[str]:
    return _BLANKS.split(line.strip(" \t"))


def tag_in(cell: str) -> str:
    """A tag without the blanks that editors leave at the end of a line."""
    return cell.strip(" ")


def look(rows: Sequence[str]) -> Layout | None:
    """The layout that the lines of a file's beginning show; None when no column of tags is to be seen."""
    rows = _filled(rows)
    split = by_tabs if rows and all("\t" in row for row in rows) else by_blanks
    cells = [split(row) for row in rows]
    if not cells:
        return None
    shortest = _fewest_columns(cells)
    columns = list(zip(*(map(tag_in, row[:shortest]) for row in cells if len(row) >= shortest), strict=True))
    while len(columns) > 1 and not any(columns[-1]):  # LitBank ends its lines with a tab
        columns.pop()
    first = len(columns)
    while first > 1 and all(map(tags.is_tag, columns[first - 1])) and not _are_chunks(columns[first - 1]):
        first -= 1
    is_plain = False
    if first < len(columns):
        labels = tuple(range(first, len(columns)))
    elif first > 1 and all(map(tags.is_tag, columns[-1])):  # chunks and nothing else
        labels = (first - 1,)
    elif len(columns) > 1 and "O" in columns[-1] and len(set(columns[-1])) <= max(50, len(rows) // 20):
        labels, is_plain = (len(columns) - 1,), True
    else:
        return None
    words = 1 if labels[0] > 1 and _counts(columns[0]) else 0
    untyped = tags.UNTYPED if is_plain and tags.are_untyped(columns[-1]) else None
    return Layout(split, words, labels, plain=is_plain, untyped=untyped)


def _fewest_columns(rows: Sequence[list[str]]) -> int:
    """The number of columns that the rows have at least, but for a stray broken one: reading will name its line."""
    counts = Counter(map(len, rows))
    usual = counts.most_common(1)[0][0]
    broken = sum(count for width, count in counts.items() if width < usual)
    return usual if len(rows) > 2 and broken <= max(1, len(rows) // 50) else min(counts)


def _filled(lines: Sequence[str]) -> list[str]:
    """The lines that hold words. Where all begin with #, those that have columns do."""
    rows = [line for line in lines if line.strip() and not line.startswith(DOCUMENT)]
    return [row for row in rows if not row.startswith("#")] or [row for row in rows if "\t" in row] or rows


def _are_chunks(column: Sequence[str]) -> bool:
    """True for the column of phrases in CoNLL-2003. One kind alone may as well be somebody's entities."""
    kinds = {tag[2:] for tag in column if tag != "O"}
    return len(kinds) > 1 and kinds <= _CHUNKS


def _counts(column: Sequence[str]) -> bool:
    """True for a column that numbers the words of each sentence."""
    if not all(cell.isascii() and cell.isdigit() and len(cell) < 10 for cell in column):
        return False
    numbers = [int(cell) for cell in column]
    return all(b == a + 1 or b in (0, 1) for a, b in pairwise(numbers)) and numbers[0] in (0, 1)


def find_layout(
    path: Path, words: int | None, labels: tuple[int, ...] | None, pos: int | None, separator: str | None, type: str
) -> Layout:
    sample = Sample(path)
    seen = look(sample.lines)
    filled = _filled(sample.lines)
    if labels is None and seen is None:
        if not filled and sample.is_whole:
            return Layout(by_tabs, 0, (1,))
        raise FormatError(path, None, "no column of tags (B-X, I-X, O) is to be seen; say which it is, as in conll:labels=3")
    chosen = labels if labels is not None else seen.labels if seen else ()
    split = {"tab": by_tabs, "space": by_blanks}[separator] if separator else seen.split if seen else by_blanks
    rows = [split(row) for row in filled]
    seen_tags = {tag_in(cell) for row in rows for label in chosen for cell in cells_at(row, label)} - {"O"}
    untyped = type if tags.are_untyped(seen_tags) else None
    plain = bool(seen_tags) and not untyped and not any(map(tags.is_tag, seen_tags))
    if words is None:  # what is seen, unless the column is said to hold something else
        words = seen.words if seen and seen.words not in (pos, *chosen) else 0
    return Layout(split, words, chosen, pos, plain, untyped, frozenset(map(len, rows)), frozenset((*seen_tags, "O")))


def cells_at(row: list[str], column: int) -> list[str]:
    return [row[column]] if -len(row) <= column < len(row) else []
