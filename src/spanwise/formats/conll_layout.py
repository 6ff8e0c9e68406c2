"""Detection of the word and tag columns of a CoNLL file from its first lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

from spanwise.core import tags
from spanwise.core.errors import FormatError
from spanwise.formats.shared.sample import Sample

DOCUMENT = "-DOCSTART-"
# The chunks of CoNLL-2003, in English and, from TreeTagger, in German.
_CHUNK_TYPES = frozenset("NP VP PP ADVP ADJP SBAR PRT CONJP INTJ LST UCP NC VC PC ADVC ADJC CONJC".split())
_SPACES = re.compile(r"[ \t]+")


@dataclass(frozen=True)
class Layout:
    """The columns of a file.

    ``is_plain`` is True for tags without a prefix (``PER``). ``untyped`` is the type for tags that are
    only a prefix (``B``). ``widths`` (numbers of columns) and ``known_tags`` distinguish the word ``#`` from
    a comment.
    """

    split: Callable[[str], list[str]]
    words: int
    labels: tuple[int, ...]
    pos: int | None = None
    is_plain: bool = False
    untyped: str | None = None
    widths: frozenset[int] = frozenset()
    known_tags: frozenset[str] = frozenset()

    def is_row(self, cells: list[str]) -> bool:
        """Return True if a line that starts with # is a row: it has a usual number of columns and a tag."""
        if len(cells) not in self.widths or not any(cells_at(cells, self.words)):
            return False
        row_tags = [strip_tag(cell) for label in self.labels for cell in cells_at(cells, label)]
        return len(row_tags) == len(self.labels) and all(self._is_known_tag(tag) for tag in row_tags)

    def _is_known_tag(self, tag: str) -> bool:
        return tag in self.known_tags if self.is_plain else self.is_tag(tag)

    def is_tag(self, tag: str) -> bool:
        if self.untyped:
            tag = tags.with_type(tag, self.untyped)
        return self.is_plain or tags.is_tag(tag)


def split_at_tabs(line: str) -> list[str]:
    return line.split("\t")


def split_at_spaces(line: str, max_columns: int = 0) -> list[str]:
    return _SPACES.split(line.strip(" \t"), max(0, max_columns - 1))


def strip_tag(cell: str) -> str:
    """Remove the spaces that some editors leave at the end of a line."""
    return cell.strip(" ")


def guess_layout(lines: Sequence[str]) -> Layout | None:
    """Return the layout of the first lines of a file; None if there is no tag column."""
    lines = _filled_lines(lines)
    split = _guess_splitter(lines)
    rows = [split(line) for line in lines]
    if not rows:
        return None
    columns = _columns(rows)
    while len(columns) > 1 and not any(columns[-1]):  # LitBank ends its lines with a tab
        columns.pop()
    first = len(columns)
    while first > 1 and all(map(tags.is_tag, columns[first - 1])) and not _are_chunks(columns[first - 1]):
        first -= 1
    is_plain = False
    if first < len(columns):
        labels = tuple(range(first, len(columns)))
    elif first > 1 and all(map(tags.is_tag, columns[-1])):  # only a chunk column
        labels = (first - 1,)
    elif len(columns) > 1 and _may_be_plain(columns[-1]):
        labels, is_plain = (len(columns) - 1,), True
    else:
        return None
    words = _find_words(columns, labels[0])
    untyped = tags.UNTYPED if is_plain and tags.are_untyped(columns[-1]) else None
    return Layout(split, words, labels, is_plain=is_plain, untyped=untyped)


def _guess_splitter(lines: Sequence[str]) -> Callable[[str], list[str]]:
    return split_at_tabs if lines and all("\t" in line for line in lines) else _space_splitter(lines)


def _choose_splitter(separator: str | None, lines: Sequence[str]) -> Callable[[str], list[str]]:
    """Return the splitter for a given separator (``tab`` or ``space``), or the detected one."""
    if separator is None:
        return _guess_splitter(lines)
    return split_at_tabs if separator == "tab" else _space_splitter(lines)


def _space_splitter(lines: Sequence[str]) -> Callable[[str], list[str]]:
    """Return a splitter that keeps the spaces in types (``B-First name``) of the last column, if it may have tags.

    Lines that end with O have no type, so they show the number of columns. The file may have types with spaces
    only after these lines.
    """
    rows = [split_at_spaces(line) for line in lines]
    width = min((len(row) for row in rows if row[-1] == "O"), default=0)
    if width < 2 or any(tags.is_tag(row[-1]) for row in rows if len(row) > width):
        return split_at_spaces
    last_cells = [" ".join(row[width - 1 :]) for row in rows if len(row) >= width]
    if not (all(map(tags.is_tag, last_cells)) or _may_be_plain(last_cells)):
        return split_at_spaces
    return partial(split_at_spaces, max_columns=width)


def _may_be_plain(column: Sequence[str]) -> bool:
    """Return True for a column that may have tags without a prefix: it has an O and few different values."""
    return "O" in column and len(set(column)) <= max(50, len(column) // 20)


def _columns(rows: Sequence[list[str]]) -> list[tuple[str, ...]]:
    """Return the cells of the columns that all rows have."""
    width = _common_width(rows) if rows else 0
    return list(zip(*(map(strip_tag, row[:width]) for row in rows if len(row) >= width), strict=True))


def _common_width(rows: Sequence[list[str]]) -> int:
    """Return the number of columns that all rows have, ignoring a few broken rows, which the reader reports."""
    counts = Counter(map(len, rows))
    usual = counts.most_common(1)[0][0]
    broken = sum(count for width, count in counts.items() if width < usual)
    return usual if len(rows) > 2 and broken <= max(1, len(rows) // 50) else min(counts)


def _filled_lines(lines: Sequence[str]) -> list[str]:
    """Return the lines with words. If all lines start with #, those with tabs count as rows."""
    filled = [line for line in lines if line.strip() and not line.startswith(DOCUMENT)]
    return [line for line in filled if not line.startswith("#")] or [line for line in filled if "\t" in line] or filled


def _are_chunks(column: Sequence[str]) -> bool:
    """Return True for the chunk column of CoNLL-2003. A single chunk type may also be an entity type."""
    types = {tag[2:] for tag in column if tag != "O"}
    return len(types) > 1 and types <= _CHUNK_TYPES


def _find_words(columns: Sequence[Sequence[str]], first_label: int) -> int:
    """Return the column of words: the first, or the second if the first numbers the words."""
    return 1 if first_label > 1 and _are_word_numbers(columns[0]) else 0


def _are_word_numbers(column: Sequence[str]) -> bool:
    """Return True for a column that numbers the words of each sentence."""
    if not all(cell.isascii() and cell.isdigit() and len(cell) < 10 for cell in column):
        return False
    numbers = [int(cell) for cell in column]
    return all(b == a + 1 or b in (0, 1) for a, b in pairwise(numbers)) and numbers[0] in (0, 1)


def find_layout(
    path: Path, words: int | None, labels: tuple[int, ...] | None, pos: int | None, separator: str | None, type: str,
    *, needs_tags: bool = True,
) -> Layout:  # fmt: skip
    """Return the layout of a file, detected except for the given columns."""
    sample = Sample(path)
    guess = guess_layout(sample.lines)
    lines = _filled_lines(sample.lines)
    has_word_column = words is not None or all(len(split_at_spaces(line)) == 1 for line in lines)
    if labels is None and guess is None and (needs_tags or not has_word_column):
        if not lines and sample.is_complete:
            return Layout(split_at_tabs, 0, (1,))
        default = "name it, as in conll:labels=3" if needs_tags else "name the column of words, as in conll:words=0"
        advice = suggest_columns(sample.lines) or default
        raise FormatError(path, None, f"no tag column (B-X, I-X, O) found at the end of the lines; {advice}")
    chosen = labels if labels is not None else guess.labels if guess else ()
    split = _choose_splitter(separator, lines)
    rows = [split(line) for line in lines]
    cells = dict.fromkeys(strip_tag(cell) for row in rows for label in chosen for cell in cells_at(row, label))
    found_tags = cells.keys() - {"O"}
    untyped = type if tags.are_untyped(found_tags) else None
    is_plain = bool(found_tags) and not untyped and not any(map(tags.is_tag, found_tags))
    if needs_tags and is_plain and "O" not in cells:
        _refuse_column(path, chosen, list(cells))
    others = _unassigned_columns(rows, (*chosen, pos))
    if words is None:  # the first column that is given no other role and does not count the words
        words = guess.words if guess and guess.words not in (pos, *chosen) else 0
        if words == 0 and 0 in others and 1 in others and _are_word_numbers(others[0]) and _may_be_words(others[1]):
            words = 1
    elif needs_tags and (number := _from_start(words, rows)) in {_from_start(label, rows) for label in chosen}:
        raise FormatError(path, None, f"column {number} is given for words, but has the tags; columns count from 0")
    elif words in others and len(rows) > 1 and _are_word_numbers(others[words]):
        _refuse_numbers(path, words, others, chosen)
    widths = frozenset(map(len, rows))
    return Layout(split, words, chosen, pos, is_plain, untyped, widths, frozenset((*found_tags, "O")))


def _unassigned_columns(rows: Sequence[list[str]], assigned: Sequence[int | None]) -> dict[int, tuple[str, ...]]:
    """Return the cells of the columns that hold no tags or parts of speech, by number."""
    columns = _columns(rows)
    taken = {column + len(columns) * (column < 0) for column in assigned if column is not None}
    return {number: column for number, column in enumerate(columns) if number not in taken}


def _from_start(column: int, rows: Sequence[list[str]]) -> int:
    """Return the number of a column that may count from the end of the usual number of columns."""
    return column + _common_width(rows) * (column < 0) if rows else column


def _refuse_numbers(path: Path, words: int, others: dict[int, tuple[str, ...]], labels: tuple[int, ...]) -> None:
    """Raise an error for a given word column that counts, if another column may have the words."""
    for number, column in others.items():
        if number != words and _may_be_words(column):
            listed = ", ".join(others[words][:4])
            advice = f"use conll:words={number},labels={'+'.join(map(str, labels))}"
            raise FormatError(path, None, f"the word column ({words}) only counts the words: {listed}; {advice}")


def _refuse_column(path: Path, labels: tuple[int, ...], cells: list[str]) -> None:
    """Raise an error for given columns that hold other data: each value would be read as a type."""
    columns = f"column{'s' * (len(labels) > 1)} {'+'.join(map(str, labels))} {'have' if len(labels) > 1 else 'has'}"
    listed = ", ".join(f"{cell:.40}" for cell in cells[:4])
    raise FormatError(path, None, f"{columns} no tags; expected O and tags such as B-X or X, found {listed}")


def _may_be_words(column: Sequence[str]) -> bool:
    return all(column) and not all(map(tags.is_tag, column)) and not _are_word_numbers(column)


def suggest_columns(lines: Sequence[str]) -> str:
    """Return the advice to read a column of tags that is not at the end of the lines, or an empty string.

    >>> suggest_columns(["1\\tOslo\\tB-LOC\\tann", "2\\tis\\tO\\tann"])
    'column 2 looks like tags; use conll:words=1,labels=2'
    """
    filled = _filled_lines(lines)
    split = _guess_splitter(filled)
    columns = _columns([split(line) for line in filled])
    for number, column in enumerate(columns[1:], 1):
        if all(map(tags.is_tag, column)) and set(column) != {"O"} and len(column) > 1:
            return f"column {number} looks like tags; use conll:words={_find_words(columns, number)},labels={number}"
    return ""


def cells_at(row: list[str], column: int) -> list[str]:
    """Return the cell of a column in a list, which is empty if the row is too short."""
    return [row[column]] if -len(row) <= column < len(row) else []
