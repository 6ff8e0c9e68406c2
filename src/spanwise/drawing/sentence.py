"""One sentence as HTML: its text with a coloured bar for each entity.

Entities that overlap have their bars on different levels, the narrowest nearest to the text. The fragments of a discontinuous
entity have one level and a dashed line between them. A name stands where its bar begins, and words give way where it is longer
than they are, so that nothing overlaps whatever is nested in what. Where two sides are shown, gold's bars are above the
words and the others below; what both have is pale.
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

from spanwise.core.nesting import levels
from spanwise.core.types import Entity, Sentence
from spanwise.drawing.colours import shortened, type_colours

NAME = 0.44  # em of the text that a letter of a name takes (see sentence.css)
LETTER = 0.3  # em that a letter of the text takes at least, on the average of a word
SPACE = 0.25
LONGEST_NAME = 20
LONGEST_WORD = 40  # letters beyond which a word is better broken than kept with the mark beside it
NO_COLOUR = "#808080"  # of a type that has none


@cache
def css() -> str:
    """The style sheet that drawings need, once a page. It reads the page's ``--ink`` and ``--paper`` where it has them."""
    return files(__package__).joinpath("sentence.css").read_text(encoding="utf-8")


@cache
def script() -> str:
    """``drawSentence(sentence, colours)`` in JavaScript, for pages that draw by themselves; it needs the same style sheet."""
    return files(__package__).joinpath("sentence.js").read_text(encoding="utf-8")


@dataclass
class _Cell:
    """What a word is drawn with: pieces of bars, the levels that they take above (u) and below (d), and a least width."""

    bars: list[str] = field(default_factory=list)
    levels: dict[str, int] = field(default_factory=dict)
    room: float = 0.0
    is_joined: bool = False  # no line may end behind it

    def html(self, word: str) -> str:
        if not self.bars:
            return word
        style = [f"--{side}:{levels}" for side, levels in self.levels.items()]
        style += [f"min-width:{self.room:.1f}em"] if self.room else []
        return f'<span class=w style="{";".join(style)}">{"".join(self.bars)}{word}</span>'


def draw_sentence(
    sentence: Sentence,
    colours: Mapping[str, str] | None = None,
    *,
    predicted: Sequence[Entity] | None = None,
    agreed: Collection[Entity] | None = None,
) -> str:
    """The sentence as a piece of HTML in which all text is escaped.

    ``colours`` are those of the types (see ``type_colours``). With ``predicted``, the sentence's own entities are gold, and
    ``agreed`` are those that are right: the ones that both sides have, unless the caller knows better.

    >>> draw_sentence(Sentence("s", ("a", "<b>")))
    '<span class=drawn>a &lt;b&gt;</span>'
    """
    gold, found = (sentence.entities, predicted) if predicted is not None else ((), sentence.entities)
    if agreed is None:
        agreed = set(gold) & set(found)
    if colours is None:
        colours = type_colours(sorted({entity.type for entity in (*gold, *found)}))
    cells = [_Cell() for _ in sentence.words]
    for side, entities in (("u", gold), ("d", found)):
        for entity, level in stacked(entities).items():
            look = f"--c:{colours.get(entity.type, NO_COLOUR)}" + (f";--l:{level}" if level else "")
            _add_bar(entity, sentence, f"{side} f" if entity in agreed else side, look, cells)
            _make_room(entity, sentence, cells)
            for cell in cells[slice(*entity.range)]:
                cell.levels[side] = max(cell.levels.get(side, 0), level + 1)
    _keep_marks(sentence, cells)
    return f"<span class=drawn>{''.join(_flow(sentence, cells))}</span>"


def stacked(entities: Iterable[Entity]) -> dict[Entity, int]:
    """A level for each distinct entity, so that none overlaps another of its level; narrow ones get the lowest.

    >>> outer, inner, apart = (Entity("X", (span,)) for span in ((0, 3), (1, 2), (4, 5)))
    >>> [stacked([outer, inner, apart])[entity] for entity in (outer, inner, apart)]
    [1, 0, 0]
    """
    ordered = sorted(set(entities), key=lambda entity: (entity.range.width, entity.fragments, entity.type))
    return dict(zip(ordered, levels(entity.range for entity in ordered), strict=True))


def _add_bar(entity: Entity, sentence: Sentence, kind: str, look: str, cells: Sequence[_Cell]) -> None:
    """The pieces of an entity's bar, one for each word from its first to its last."""
    score = "" if entity.score is None else f" ({entity.score:.3f})"
    title = escape(f"{entity.type}: {sentence.text_of(entity)}{score}")
    name = escape(shortened(entity.type, LONGEST_NAME))
    begins, ends = {fragment.start for fragment in entity.fragments}, {fragment.end - 1 for fragment in entity.fragments}
    inside = set(entity.places)
    for word in range(*entity.range):
        marks = f"{' a' * (word in begins)}{' z' * (word in ends)}{' g' * (word not in inside)}"
        first = f' title="{title}"><em>{name}</em>' if word == entity.range.start else ">"
        cells[word].bars.append(f'<i class="{kind}{marks}" style="{look}"{first}</i>')


def _make_room(entity: Entity, sentence: Sentence, cells: Sequence[_Cell]) -> None:
    """Enough width for the entity's name over its words, which stay on one line as far as the name goes."""
    first, last = entity.range.start, entity.range.end - 1
    needed = NAME * _width(shortened(entity.type, LONGEST_NAME)) + 0.3
    own = has = LETTER * _width(sentence.words[first])
    for word in range(first, last):
        if has < needed:
            cells[word].is_joined = True
            has += LETTER * _width(sentence.words[word + 1])
            has += SPACE if sentence.starts[word + 1] > sentence.starts[word] + len(sentence.words[word]) else 0
    if has < needed:
        cells[first].room = max(cells[first].room, own + needed - has)


def _keep_marks(sentence: Sentence, cells: Sequence[_Cell]) -> None:
    """No line begins with a full stop or ends with an opening bracket: a word with bars is a box, where lines may end."""
    for (word, cell, place), (after, other, other_place) in pairwise(zip(sentence.words, cells, sentence.offsets, strict=True)):
        is_boxed = bool(cell.bars or other.bars) and place.end == other_place.start
        if is_boxed and max(_width(word), _width(after)) <= LONGEST_WORD and (_opens(word[-1]) or _closes(after[0])):
            cell.is_joined = True


def _opens(letter: str) -> bool:
    return unicodedata.category(letter) in ("Ps", "Pi")


def _closes(letter: str) -> bool:
    return unicodedata.category(letter) in ("Pe", "Pf", "Po", "Pd")


def _width(text: str) -> int:
    """How many letters wide a text is; those of East Asian scripts are twice as wide as others."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def _flow(sentence: Sentence, cells: Sequence[_Cell]) -> Iterator[str]:
    """The words with their bars, and between them what the text has there."""
    was_joined = False
    for number, (word, cell, place) in enumerate(zip(sentence.words, cells, sentence.offsets, strict=True), 1):
        if cell.is_joined and not was_joined:
            yield "<span class=o>"
        yield cell.html(escape(word))
        if was_joined and not cell.is_joined:
            yield "</span>"
        if number < len(cells):
            yield escape(re.sub(r"\s+", " ", sentence.text[place.end : sentence.starts[number]]))
        was_joined = cell.is_joined
