"""Sentences drawn in a terminal."""

from __future__ import annotations

import io

from rich.console import Console

from spanwise.core.types import Entity, Sentence
from spanwise.drawing.terminal import draw_lines

NESTED = Sentence(
    "s",
    ("The", "governor", "of", "the", "Bank", "of", "Ghana", "spoke", "."),
    entities=(Entity("Role", ((1, 7),)), Entity("Organization", ((4, 7),)), Entity("Place", ((6, 7),))),
)


def test_nested_entities_are_drawn_from_the_inside_out() -> None:
    assert str(draw_lines(NESTED)).splitlines() == [
        "The governor of the Bank of Ghana spoke .",
        "                            Place",
        "                    Organization─",
        "    Role─────────────────────────",
    ]


def test_a_label_wider_than_its_entity_takes_its_own_row() -> None:
    sentence = Sentence("s", ("a", "b"), entities=(Entity("Organization", ((0, 1),)), Entity("Place", ((1, 2),))))
    assert str(draw_lines(sentence)) == "a b\nOrganization\n  Place"


def test_an_entity_continues_on_the_next_line() -> None:
    lines = str(draw_lines(NESTED, width=20)).splitlines()
    assert lines == [
        "The governor of the",
        "    Role───────────",
        "Bank of Ghana spoke",
        "        Place",
        "Organization─",
        "Role─────────",
        ".",
    ]
    assert str(draw_lines(Sentence("s", ("abcdef",)), width=4)) == "abcd\nef"


def test_wide_characters_have_two_columns() -> None:
    sentence = Sentence("s", ("东京", "很", "大"), text="东京很大", entities=(Entity("P", ((0, 1),)), Entity("Q", ((2, 3),))))
    assert str(draw_lines(sentence)) == "东京很大\nP───  Q─"


def test_control_characters_do_not_reach_the_terminal() -> None:
    sentence = Sentence("s", ("a\x1b[31m", "b"), entities=(Entity("T\x07", ((0, 1),)),))
    assert "\x1b" not in str(draw_lines(sentence))
    assert "\x07" not in str(draw_lines(sentence))


def test_words_have_the_colour_of_the_innermost_entity() -> None:
    output = io.StringIO()
    console = Console(file=output, force_terminal=True, color_system="truecolor", width=100)
    console.print(draw_lines(NESTED, {"Role": "#000001", "Organization": "#000002", "Place": "#000003"}))
    first = output.getvalue().splitlines()[0]
    assert "\x1b[1;38;2;0;0;3mGhana\x1b[0m" in first
    assert "\x1b[1;38;2;0;0;2mBank of \x1b[0m" in first
    assert "\x1b" not in str(draw_lines(NESTED))
