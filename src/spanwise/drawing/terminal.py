"""Draw sentences in a terminal: words in colour, and the type of each entity in the lines below."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from rich.cells import cell_len
from rich.text import Text

from spanwise.core.types import Entity, Sentence
from spanwise.drawing.colours import type_colours


@dataclass(frozen=True)
class Bar:
    """The part of an entity that lies on one line of text, in columns of this line."""

    label: str
    colour: str
    start: int
    end: int
    covered: frozenset[int]  # the columns of its words; others are gaps between fragments

    @property
    def last(self) -> int:
        """The column after the bar and its label."""
        return max(self.end, self.start + cell_len(self.label))

    def draw(self) -> str:
        columns = range(self.start + cell_len(self.label), self.end)
        return self.label + "".join("─" if column in self.covered else "┄" for column in columns)


def draw_lines(sentence: Sentence, colours: Mapping[str, str] | None = None, *, width: int = 80) -> Text:
    """Return a sentence in lines of at most ``width`` characters, with the types of its entities below each line.

    A continuous line marks the words of an entity, a dotted one the gaps of a discontinuous entity.

    >>> cancer = Entity("Disease", ((0, 1), (3, 4))), Entity("Disease", ((2, 4),))
    >>> print(draw_lines(Sentence("s", ("breast", "and", "ovarian", "cancer"), entities=cancer)))
    breast and ovarian cancer
               Disease───────
    Disease┄┄┄┄┄┄┄┄┄┄┄┄──────
    """
    colours = colours or type_colours(sorted({entity.type for entity in sentence.entities}))
    whole = _printable(sentence.text.rstrip())
    lines = []
    for first, last in _line_ranges(whole, width):
        text = Text(whole[first:last])
        columns = list(accumulate((cell_len(character) for character in text.plain), initial=0))
        bars: list[tuple[int, int, int, Bar]] = []  # ordered from the inside out
        for index, entity in enumerate(sorted(sentence.entities, key=lambda entity: -len(sentence.text_of(entity)))):
            parts = _characters(sentence, entity, first, last)
            for start, end in parts:  # the innermost entity, which is the last, gives the colour
                text.stylize(f"bold {colours[entity.type]}", start, end)
            if parts:
                covered = frozenset(column for start, end in parts for column in range(columns[start], columns[end]))
                bar = Bar(_printable(entity.type), colours[entity.type], min(covered), max(covered) + 1, covered)
                bars.append((bar.end - bar.start, len(sentence.text_of(entity)), index, bar))
        lines.append(text)
        lines.extend(map(_draw_row, _rows([bar for *_, bar in sorted(bars)])))
    return Text("\n").join(lines)


def _printable(text: str) -> str:
    """Replace control characters and line breaks by spaces, so that they cannot change the terminal or the columns."""
    return "".join(character if character.isprintable() else " " for character in text)


def _line_ranges(text: str, width: int) -> Iterator[tuple[int, int]]:
    """Yield the characters of each line, broken at spaces where possible."""
    start = 0
    while len(text) - start > width:
        space = text.rfind(" ", start + 1, start + width + 1)
        end = space if space > start else start + width
        yield start, end
        start = end + (space > start)
    yield start, len(text)


def _characters(sentence: Sentence, entity: Entity, first: int, last: int) -> list[tuple[int, int]]:
    """Return the ranges of an entity between two characters of the text, counted from the first."""
    ranges = (sentence.characters(fragment) for fragment in entity.fragments)
    return [(max(start, first) - first, min(end, last) - first) for start, end in ranges if start < last and end > first]


def _rows(bars: Sequence[Bar]) -> list[list[Bar]]:
    """Distribute bars over rows; each is in the first row with room for it."""
    rows: list[list[Bar]] = []
    for bar in bars:
        for row in rows:
            if all(bar.start > other.last or bar.last < other.start for other in row):
                row.append(bar)
                break
        else:
            rows.append([bar])
    return rows


def _draw_row(row: Sequence[Bar]) -> Text:
    text = Text()
    for bar in sorted(row, key=lambda bar: bar.start):
        text.append(" " * (bar.start - text.cell_len))
        text.append(bar.draw(), style=bar.colour)
    return text
