"""Drawings of sentences: levels, fragments and escaped text."""

from __future__ import annotations

import random
import re
from html import unescape
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_predictions import SCRIPT, entity

from spanwise.core.types import Entity, Sentence, Span
from spanwise.drawing import css, draw_sentence, type_colours
from spanwise.drawing.colours import PALETTE, truncate, truncate_all
from spanwise.drawing.sentence import entity_levels


class ParsedDrawing(HTMLParser):
    """The text of a drawing, and the classes, levels and names of its bars."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text, self.tags, self.bars, self.names, self.titles = "", set[str](), [], [], []
        self.open: list[str] = []
        self.feed(html)
        assert not self.open, "all elements are closed"

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


def test_nested_entities_have_different_levels() -> None:
    sentence = Sentence("s", tuple("abcde"), (entity("Outer", (0, 5)), entity("Inner", (1, 3)), entity("Inner", (3, 4))))
    drawn = ParsedDrawing(draw_sentence(sentence))
    assert drawn.text == "a b c d e"
    assert drawn.names == ["Outer", "Inner", "Inner"]
    # Five pieces of the outer bar on level 1; two and one of the inner bars on level 0.
    assert [bar for bar in drawn.bars if bar[-1] == 1] == [("d", "a", 1), ("d", 1), ("d", 1), ("d", 1), ("d", "z", 1)]
    assert [bar for bar in drawn.bars if bar[-1] == 0] == [("d", "a", 0), ("d", "z", 0), ("d", "a", "z", 0)]


def test_fragments_are_joined_by_gap_pieces() -> None:
    sentence = Sentence("s", tuple("abcd"), (entity("X", (0, 1), (3, 4)),))
    drawn = ParsedDrawing(draw_sentence(sentence))
    assert drawn.bars == [("d", "a", "z", 0), ("d", "g", 0), ("d", "g", 0), ("d", "a", "z", 0)]
    assert drawn.names == ["X"]
    assert drawn.titles == ["X: a d"]


def test_gold_and_predictions() -> None:
    sentence = Sentence("s", ("a", "b", "c"), (entity("X", (0, 1)), entity("X", (1, 2))))
    drawn = ParsedDrawing(draw_sentence(sentence, predicted=[entity("X", (0, 1), score=0.25), entity("Y", (1, 2))]))
    assert drawn.bars == [("u", "f", "a", "z", 0), ("d", "f", "a", "z", 0), ("u", "a", "z", 0), ("d", "a", "z", 0)]
    assert drawn.titles == ["X: a", "X: a (0.250)", "X: b", "Y: b"]
    # An explicit ``correct`` overrides the default.
    drawn = ParsedDrawing(draw_sentence(sentence, predicted=[entity("X", (0, 1))], correct=()))
    assert [bar[0:2] for bar in drawn.bars] == [("u", "a"), ("d", "a"), ("u", "a")]


def test_text_is_escaped() -> None:
    words = (SCRIPT, "&amp;", '"x"', "'y'")
    drawn = draw_sentence(Sentence("s", words, (entity('T"><img src=x onerror=y>', (0, 1)), entity("U", (2, 4)))))
    assert "<script" not in drawn
    parsed = ParsedDrawing(drawn)
    assert parsed.tags <= {"span", "i", "em"}
    assert parsed.text == " ".join(words)
    assert parsed.titles[0] == f'T"><img src=x onerror=y>: {SCRIPT}'


def test_text_between_words_is_kept() -> None:
    chinese = Sentence("s", ("中", "国"), (entity("GPE", (0, 2)),), text="中国")
    assert ParsedDrawing(draw_sentence(chinese)).text == "中国"
    lines = Sentence("s", ("can", "not", "go"), text="cannot \n\t go  \n")
    assert ParsedDrawing(draw_sentence(lines)).text == "cannot go"


def test_words_are_widened_for_longer_names() -> None:
    short = draw_sentence(Sentence("s", ("a", "b"), (entity("Long_name", (0, 1)),)))
    assert "min-width" in short
    wide = draw_sentence(Sentence("s", ("a" * 30, "b"), (entity("Long_name", (0, 1)),)))
    assert "min-width" not in wide
    # The name fits above several words that stay on one line.
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
def test_punctuation_stays_with_its_word(text: str, joined: list[str]) -> None:
    """Browsers may break lines before and after a word with bars."""
    words = tuple(re.findall(r"(?:Oslo)+|奥斯陆|\w|[^\w\s]", text))
    index = next((i for i, word in enumerate(words) if word.startswith(("Oslo", "奥斯陆"))), None)
    drawn = draw_sentence(Sentence("s", words, () if index is None else (entity("X", (index, index + 1)),), text=text))
    assert [ParsedDrawing(piece).text for piece in re.findall(r"<span class=o>.*?</span>[^<]*</span>", drawn)] == joined


def test_bars_do_not_overlap() -> None:
    """Random nested, crossing and discontinuous entities: a word has at most one piece per side and level."""
    numbers = random.Random(3)
    for _ in range(200):
        entities = {_random_entity(numbers) for _ in range(numbers.randint(0, 9))}
        levels = entity_levels(entities)
        assert levels.keys() == entities
        taken = [(level, word) for one, level in levels.items() for word in range(*one.range)]
        assert len(taken) == len(set(taken))
        html = draw_sentence(Sentence("s", tuple("abcdefghij"), tuple(entities)), predicted=tuple(entities))
        parsed = ParsedDrawing(html)
        assert len(parsed.bars) == 2 * len(taken)
        assert len(parsed.names) == 2 * len(entities)
        assert parsed.text == "a b c d e f g h i j"


def test_each_entity_has_the_lowest_free_level() -> None:
    """Compare with a direct implementation."""
    numbers = random.Random(4)
    for _ in range(200):
        entities = {_random_entity(numbers) for _ in range(numbers.randint(0, 9))}
        levels: dict[Entity, int] = {}
        for one in sorted(entities, key=lambda one: (one.range.width, one.fragments, one.type)):
            taken = {level for other, level in levels.items() if other.range.overlaps(one.range)}
            levels[one] = min(set(range(10)) - taken)
        assert entity_levels(entities) == levels


def test_entities_are_compared_with_neighbours_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long text has thousands of entities; comparing all pairs would take minutes."""
    comparisons = 0
    overlaps = Span.overlaps

    def counted(one: Span, other: Span) -> bool:
        nonlocal comparisons
        comparisons += 1
        return overlaps(one, other)

    monkeypatch.setattr(Span, "overlaps", counted)
    count = 500
    assert set(entity_levels(entity("X", (start, start + 1)) for start in range(count)).values()) == {0}
    assert comparisons <= 2 * count


def _random_entity(numbers: random.Random) -> Entity:
    a, b, c, d = sorted(numbers.sample(range(11), 4))
    fragments = ((a, b), (c, d)) if numbers.random() < 0.3 else ((a, d),)
    return entity(numbers.choice("XYZ"), *fragments)


def test_types_without_a_colour_are_grey() -> None:
    drawn = draw_sentence(Sentence("s", ("a",), (entity("New", (0, 1)),)), {"Old": "#000000"})
    assert "#808080" in drawn
    assert "New" in unescape(drawn)


@pytest.mark.parametrize("count", [1, 24, 30])
def test_colours_are_distinct_for_up_to_24_types(count: int) -> None:
    colours = type_colours([f"type {number}" for number in range(count)])
    assert len(colours) == count
    assert len(set(colours.values())) == min(count, len(PALETTE))


def test_truncated_labels_have_the_requested_length() -> None:
    assert [len(truncate("abcdefghij", length)) for length in (3, 4, 9, 10, 20)] == [3, 4, 9, 10, 10]


@given(st.lists(st.text("ab", min_size=1, max_size=40), max_size=8), st.integers(12, 24))
def test_truncated_labels_stay_different(labels: list[str], length: int) -> None:
    short = truncate_all(labels, length)
    assert all(len(name) <= length for name in short)
    assert len(set(short)) == len(set(labels))
    assert [name for name, label in zip(short, labels, strict=True) if len(label) <= length and name != label] == []


def test_style_sheet_loads_no_resources() -> None:
    assert ".drawn" in css()
    assert "url(" not in css()
    assert "@import" not in css()
