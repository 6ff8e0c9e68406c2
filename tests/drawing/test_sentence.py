"""Sentences as HTML: levels, fragments, text that stays text."""

from __future__ import annotations

import random
import re
from html import unescape
from html.parser import HTMLParser

import pytest
from analysed import SCRIPT, entity

from spanwise.core.types import Entity, Sentence, Span
from spanwise.drawing import css, draw_sentence, type_colours
from spanwise.drawing.colours import PALETTE, shortened
from spanwise.drawing.sentence import stacked


class Reading(HTMLParser):
    """What a browser would make of a drawing: the text, and for each word of a bar its classes, its level and its name."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text, self.tags, self.bars, self.names, self.titles = "", set[str](), [], [], []
        self.open: list[str] = []
        self.feed(html)
        assert not self.open, "every element is closed"

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        self.tags.add(tag)
        self.open.append(tag)
        if tag == "i":
            level = re.search(r"--l:(\d+)", values["style"] or "")
            self.bars.append((*(values["class"] or "").split(), int(level[1]) if level else 0))
        if "title" in values:
            self.titles.append(values["title"])

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1] == "em":
            self.names.append(data)
        else:
            self.text += data


def test_nested_entities_have_levels_of_their_own() -> None:
    sentence = Sentence("s", tuple("abcde"), (entity("Outer", (0, 5)), entity("Inner", (1, 3)), entity("Inner", (3, 4))))
    drawn = Reading(draw_sentence(sentence))
    assert drawn.text == "a b c d e"
    assert drawn.names == ["Outer", "Inner", "Inner"]
    # Five pieces of the outer bar on level 1; two and one of the inner ones on level 0, each beginning and ending.
    assert [bar for bar in drawn.bars if bar[-1] == 1] == [("d", "a", 1), ("d", 1), ("d", 1), ("d", 1), ("d", "z", 1)]
    assert [bar for bar in drawn.bars if bar[-1] == 0] == [("d", "a", 0), ("d", "z", 0), ("d", "a", "z", 0)]


def test_the_fragments_of_an_entity_are_joined_over_the_words_between() -> None:
    sentence = Sentence("s", tuple("abcd"), (entity("X", (0, 1), (3, 4)),))
    drawn = Reading(draw_sentence(sentence))
    assert drawn.bars == [("d", "a", "z", 0), ("d", "g", 0), ("d", "g", 0), ("d", "a", "z", 0)]
    assert drawn.names == ["X"]
    assert drawn.titles == ["X: a d"]


def test_two_sides() -> None:
    sentence = Sentence("s", ("a", "b", "c"), (entity("X", (0, 1)), entity("X", (1, 2))))
    drawn = Reading(draw_sentence(sentence, predicted=[entity("X", (0, 1), score=0.25), entity("Y", (1, 2))]))
    assert drawn.bars == [("u", "f", "a", "z", 0), ("d", "f", "a", "z", 0), ("u", "a", "z", 0), ("d", "a", "z", 0)]
    assert drawn.titles == ["X: a", "X: a (0.250)", "X: b", "Y: b"]
    # Whoever knows better says what is right.
    told = Reading(draw_sentence(sentence, predicted=[entity("X", (0, 1))], agreed=()))
    assert [bar[0:2] for bar in told.bars] == [("u", "a"), ("d", "a"), ("u", "a")]


def test_text_stays_text() -> None:
    words = (SCRIPT, "&amp;", '"x"', "'y'")
    drawn = draw_sentence(Sentence("s", words, (entity('T"><img src=x onerror=y>', (0, 1)), entity("U", (2, 4)))))
    assert "<script" not in drawn
    reading = Reading(drawn)
    assert reading.tags <= {"span", "i", "em"}
    assert reading.text == " ".join(words)
    assert reading.titles[0] == f'T"><img src=x onerror=y>: {SCRIPT}'


def test_the_text_between_words_is_kept() -> None:
    chinese = Sentence("s", ("中", "国"), (entity("GPE", (0, 2)),), text="中国")
    assert Reading(draw_sentence(chinese)).text == "中国"
    lines = Sentence("s", ("can", "not", "go"), text="cannot \n\t go  \n")
    assert Reading(draw_sentence(lines)).text == "cannot go"


def test_words_give_way_to_longer_names() -> None:
    short = draw_sentence(Sentence("s", ("a", "b"), (entity("Long_name", (0, 1)),)))
    assert "min-width" in short
    wide = draw_sentence(Sentence("s", ("a" * 30, "b"), (entity("Long_name", (0, 1)),)))
    assert "min-width" not in wide
    # Over several words the name has room, as long as no line ends between them.
    several = draw_sentence(Sentence("s", ("abc", "def", "ghi", "jkl"), (entity("Name", (0, 3)),)))
    assert "min-width" not in several
    joined = re.search(r"<span class=o>(.*?)</span>( |$)", several)
    assert joined is not None


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("Oslo. b", ["Oslo."]), ("Oslo . b", []), ("a (Oslo) b", ["(Oslo)"]), ("a “Oslo”, b", ["“Oslo”"]), ("奥斯陆。中", ["奥斯陆。"]),
        ("奥斯陆中", []), ("Oslo/b", ["Oslo/"]), ("ab. cd", []), (f"{'Oslo' * 11}.", []),
    ],
)  # fmt: skip
def test_no_line_begins_with_a_full_stop_or_ends_with_a_bracket(text: str, joined: list[str]) -> None:
    """A word with bars is a box, behind and before which a line may end whatever stands there."""
    words = tuple(re.findall(r"(?:Oslo)+|奥斯陆|\w|[^\w\s]", text))
    place = next((at for at, word in enumerate(words) if word.startswith(("Oslo", "奥斯陆"))), None)
    drawn = draw_sentence(Sentence("s", words, () if place is None else (entity("X", (place, place + 1)),), text=text))
    assert [Reading(one).text for one in re.findall(r"<span class=o>.*?</span>[^<]*</span>", drawn)] == joined


def test_no_two_bars_are_in_the_same_place() -> None:
    """Random entities, nested, crossing and broken: on each side, a word has one piece at most on each level."""
    numbers = random.Random(3)
    for _ in range(200):
        entities = {_random_entity(numbers) for _ in range(numbers.randint(0, 9))}
        levels = stacked(entities)
        assert levels.keys() == entities
        taken = [(level, word) for one, level in levels.items() for word in range(*one.range)]
        assert len(taken) == len(set(taken))
        html = draw_sentence(Sentence("s", tuple("abcdefghij"), tuple(entities)), predicted=tuple(entities))
        reading = Reading(html)
        assert len(reading.bars) == 2 * len(taken)
        assert len(reading.names) == 2 * len(entities)
        assert reading.text == "a b c d e f g h i j"


def test_each_entity_has_the_lowest_level_that_is_free() -> None:
    """As a reader would find it: narrow ones first, each on the first level where nothing is in its way."""
    numbers = random.Random(4)
    for _ in range(200):
        entities = {_random_entity(numbers) for _ in range(numbers.randint(0, 9))}
        levels: dict[Entity, int] = {}
        for one in sorted(entities, key=lambda one: (one.range.width, one.fragments, one.type)):
            taken = {level for other, level in levels.items() if other.range.overlaps(one.range)}
            levels[one] = min(set(range(10)) - taken)
        assert stacked(entities) == levels


def test_an_entity_is_compared_with_its_neighbours_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long text has thousands of entities, and comparing each with each takes minutes."""
    compared = 0
    overlaps = Span.overlaps

    def counted(one: Span, other: Span) -> bool:
        nonlocal compared
        compared += 1
        return overlaps(one, other)

    monkeypatch.setattr(Span, "overlaps", counted)
    count = 500
    assert set(stacked(entity("X", (at, at + 1)) for at in range(count)).values()) == {0}
    assert compared <= 2 * count


def _random_entity(numbers: random.Random) -> Entity:
    places = sorted(numbers.sample(range(11), 4))
    fragments = ((places[0], places[1]), (places[2], places[3])) if numbers.random() < 0.3 else ((places[0], places[3]),)
    return entity(numbers.choice("XYZ"), *fragments)


def test_a_type_without_a_colour_is_drawn_all_the_same() -> None:
    drawn = draw_sentence(Sentence("s", ("a",), (entity("New", (0, 1)),)), {"Old": "#000000"})
    assert "#808080" in drawn
    assert "New" in unescape(drawn)


@pytest.mark.parametrize("count", [1, 24, 30])
def test_colours_differ_as_long_as_they_can(count: int) -> None:
    colours = type_colours([f"type {number}" for number in range(count)])
    assert len(colours) == count
    assert len(set(colours.values())) == min(count, len(PALETTE))


def test_shortened_labels_have_the_length_asked_for() -> None:
    assert [len(shortened("abcdefghij", length)) for length in (3, 4, 9, 10, 20)] == [3, 4, 9, 10, 10]


def test_the_style_sheet_asks_for_nothing() -> None:
    assert ".drawn" in css()
    assert "url(" not in css()
    assert "@import" not in css()
