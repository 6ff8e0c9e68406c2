"""Draw one sentence as HTML: its text with a coloured bar for each entity.

Overlapping entities have their bars on different levels, the narrowest next to the text. The fragments
of a discontinuous entity share a level and are joined by a dashed line. The type is written at the start
of the bar; words are widened if the name is longer than they are, so that names never overlap. If gold
and predictions are drawn, gold is above the words and predictions are below; correct entities are pale.
In sentences with words from right to left, each word with bars has the direction of its letters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape
from importlib.resources import files
from itertools import pairwise

from spanwise.core.nesting import assign_levels
from spanwise.core.types import Entity, Sentence
from spanwise.drawing.colours import truncate, type_colours

NAME_CHARACTER = 0.44  # width of a character of a type name in em (see sentence.css)
TEXT_CHARACTER = 0.3  # minimum mean width of a character of the text in em
SPACE = 0.25
MAX_NAME_LENGTH = 20
MAX_JOINED_LENGTH = 40  # characters; longer words may be separated from punctuation
DEFAULT_COLOUR = "#808080"  # of types without a colour
# Letters from right to left: Hebrew, Arabic, Syriac, Thaana, N'Ko and others.
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]")


@cache
def css() -> str:
    """Return the style sheet of drawings, needed once per page. It uses the page's ``--ink`` and ``--paper`` if set."""
    return files(__package__).joinpath("sentence.css").read_text(encoding="utf-8")


@cache
def script() -> str:
    """Return JavaScript that defines ``drawSentence(sentence, colours)``, which makes the same drawing in a browser."""
    return files(__package__).joinpath("sentence.js").read_text(encoding="utf-8")


@dataclass
class _Cell:
    """The drawing of a word: pieces of bars, the number of levels above (u) and below (d), and a minimum width."""

    bars: list[str] = field(default_factory=list)
    levels: dict[str, int] = field(default_factory=dict)
    min_width: float = 0.0
    is_joined: bool = False  # whether it stays on one line with the next word
    direction: str = ""  # "rtl" or "ltr"; empty if the whole sentence is from left to right

    def html(self, word: str) -> str:
        if not self.bars:
            return word
        style = [f"--{side}:{levels}" for side, levels in self.levels.items()]
        style += [f"min-width:{self.min_width:.1f}em"] if self.min_width else []
        drawn = f'<span class=w style="{";".join(style)}">{"".join(self.bars)}{word}</span>'
        return f"<span class={self.direction}>{drawn}</span>" if self.direction else drawn


def draw_sentence(
    sentence: Sentence,
    colours: Mapping[str, str] | None = None,
    *,
    predicted: Sequence[Entity] | None = None,
    correct: Collection[Entity] | None = None,
) -> str:
    """Return the sentence as HTML in which all text is escaped.

    ``colours`` maps types to colours (see ``type_colours``). With ``predicted``, the sentence's own
    entities are gold. ``correct`` entities are pale; by default these are the entities on both sides.

    >>> draw_sentence(Sentence("s", ("a", "<b>")))
    '<span class=drawn>a &lt;b&gt;</span>'
    """
    above, below = (sentence.entities, predicted) if predicted is not None else ((), sentence.entities)
    if correct is None:
        correct = set(above) & set(below)
    if colours is None:
        colours = type_colours(sorted({entity.type for entity in (*above, *below)}))
    cells = [_Cell() for _ in sentence.words]
    for side, entities in (("u", above), ("d", below)):
        for entity, level in entity_levels(entities).items():
            style = f"--c:{colours.get(entity.type, DEFAULT_COLOUR)}" + (f";--l:{level}" if level else "")
            _add_bar(entity, sentence, f"{side} f" if entity in correct else side, style, cells)
            _reserve_width(entity, sentence, cells)
            for cell in cells[slice(*entity.range)]:
                cell.levels[side] = max(cell.levels.get(side, 0), level + 1)
    _join_punctuation(sentence, cells)
    direction = _set_directions(sentence, cells)
    return f"<span class=drawn{' dir=rtl' * (direction == 'rtl')}>{''.join(_pieces(sentence, cells))}</span>"


def entity_levels(entities: Iterable[Entity]) -> dict[Entity, int]:
    """Give each distinct entity a level without overlaps; narrow entities get the lowest levels.

    >>> outer, inner, flat = (Entity("X", (span,)) for span in ((0, 3), (1, 2), (4, 5)))
    >>> [entity_levels([outer, inner, flat])[entity] for entity in (outer, inner, flat)]
    [1, 0, 0]
    """
    ordered = sorted(set(entities), key=lambda entity: (entity.range.width, entity.fragments, entity.type))
    return dict(zip(ordered, assign_levels(entity.range for entity in ordered), strict=True))


def _add_bar(entity: Entity, sentence: Sentence, classes: str, style: str, cells: Sequence[_Cell]) -> None:
    """Add a piece of the entity's bar to each word in its range."""
    score = "" if entity.score is None else f" ({entity.score:.3f})"
    title = escape(f"{entity.type}: {sentence.text_of(entity)}{score}")
    name = escape(truncate(entity.type, MAX_NAME_LENGTH))
    starts, ends = {fragment.start for fragment in entity.fragments}, {fragment.end - 1 for fragment in entity.fragments}
    inside = set(entity.word_indices)
    for word in range(*entity.range):
        more_classes = f"{' a' * (word in starts)}{' z' * (word in ends)}{' g' * (word not in inside)}"
        first = f' title="{title}"><em>{name}</em>' if word == entity.range.start else ">"
        cells[word].bars.append(f'<i class="{classes}{more_classes}" style="{style}"{first}</i>')


def _reserve_width(entity: Entity, sentence: Sentence, cells: Sequence[_Cell]) -> None:
    """Join words until the entity's name fits above them, and widen the first word if it does not."""
    first, last = entity.range.start, entity.range.end - 1
    needed = NAME_CHARACTER * _width(truncate(entity.type, MAX_NAME_LENGTH)) + 0.3
    first_width = available = TEXT_CHARACTER * _width(sentence.words[first])
    for word in range(first, last):
        if available < needed:
            cells[word].is_joined = True
            available += TEXT_CHARACTER * _width(sentence.words[word + 1])
            available += SPACE if sentence.starts[word + 1] > sentence.starts[word] + len(sentence.words[word]) else 0
    if available < needed:
        cells[first].min_width = max(cells[first].min_width, first_width + needed - available)


def _join_punctuation(sentence: Sentence, cells: Sequence[_Cell]) -> None:
    """Keep punctuation on the line of its word, because browsers may break lines next to a word with bars."""
    rows = zip(sentence.words, cells, sentence.offsets, strict=True)
    for (word, cell, offsets), (next_word, next_cell, next_offsets) in pairwise(rows):
        may_break = bool(cell.bars or next_cell.bars) and offsets.end == next_offsets.start
        is_short = max(_width(word), _width(next_word)) <= MAX_JOINED_LENGTH
        if may_break and is_short and (_is_opening(word[-1]) or _is_closing(next_word[0])):
            cell.is_joined = True


def _set_directions(sentence: Sentence, cells: Sequence[_Cell]) -> str:
    """Set the direction of each word if any is from right to left; return the direction of the sentence."""
    sentence_direction = _direction(sentence.text) or "ltr"
    if _RIGHT_TO_LEFT.search(sentence.text):
        for word, cell in zip(sentence.words, cells, strict=True):
            cell.direction = _direction(word) or sentence_direction
    return sentence_direction


def _direction(text: str) -> str:
    """Return the direction of the first letter; empty if there is none.

    >>> _direction("1. Oslo"), _direction("(אב)"), _direction("25 %")
    ('ltr', 'rtl', '')
    """
    letter = next(filter(str.isalpha, text), "")
    return "rtl" if _RIGHT_TO_LEFT.match(letter) else "ltr" * bool(letter)


def _is_opening(character: str) -> bool:
    return unicodedata.category(character) in ("Ps", "Pi")


def _is_closing(character: str) -> bool:
    return unicodedata.category(character) in ("Pe", "Pf", "Po", "Pd")


def _width(text: str) -> int:
    """Return the width of a text in characters; East Asian wide characters count twice."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def _pieces(sentence: Sentence, cells: Sequence[_Cell]) -> Iterator[str]:
    """Yield the words with their bars, and the text between them."""
    was_joined = False
    for number, (word, cell, offsets) in enumerate(zip(sentence.words, cells, sentence.offsets, strict=True), 1):
        if cell.is_joined and not was_joined:
            yield "<span class=o>"
        yield cell.html(escape(word))
        if was_joined and not cell.is_joined:
            yield "</span>"
        if number < len(cells):
            yield escape(re.sub(r"\s+", " ", sentence.text[offsets.end : sentence.starts[number]]))
        was_joined = cell.is_joined
