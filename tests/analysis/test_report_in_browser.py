"""The report as a reader uses it, in a real browser: it loads in silence, asks for nothing, and can be searched by keyboard."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from analysed import GOLD, PREDICTED, TRAIN, entity

from spanwise.analysis.analyze import Subject, analyze
from spanwise.core.types import Sentence

if TYPE_CHECKING:
    from browser import Browser, Page

SHOWN = "[...document.querySelectorAll('.case')].filter(x => x.checkVisibility()).map(x => x.querySelector('h3').textContent)"
MANY = 130  # more mistakes than are shown at once


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    more = [Sentence(f"more-{number}", ("so", "many"), GOLD[3].entities) for number in range(MANY)]
    # Narrow words without space between them, under names that are wider.
    names = tuple(entity("Long_name", (at, at + width)) for at, width in ((0, 1), (1, 2), (3, 1), (4, 4)))
    more[0] = Sentence("more-0", ("il",) * 8, names, text="il" * 8)
    more[1] = Sentence("more-1", ("so", "many"), (entity("Two  spaces", (0, 1)),))
    subject = Subject(
        "system", "data", [*GOLD, *more], [*PREDICTED, *(replace(one, entities=()) for one in more)], train=TRAIN,
    )  # fmt: skip
    return Path(analyze(subject, tmp_path_factory.mktemp("page") / "out")).as_uri()


@pytest.fixture
def page(browser: Browser, address: str) -> Page:
    return browser.open(address)


def focus(page: Page) -> object:
    return page.value("document.activeElement.id || document.activeElement.querySelector('h3')?.textContent")


def test_it_loads_in_silence(page: Page, address: str) -> None:
    assert page.requests == [address]
    assert page.complaints == []
    assert page.value("document.title") == "system on data – analysis"
    assert page.value("document.querySelectorAll('script').length") == 1, "none came from the data"
    assert page.value("document.querySelectorAll('figure svg, figure img').length") >= 7


def test_searching_shows_what_fits(page: Page) -> None:
    assert page.value("document.getElementById('count').value") == f"{MANY + 3} of {MANY + 3} sentences"
    page.type("/")
    assert focus(page) == "find"
    page.type("T cell  RECEPTOR")
    assert page.value(SHOWN) == ["nested"]
    assert page.value("document.getElementById('count').value") == f"1 of {MANY + 3} sentences"
    page.press("Escape")
    assert len(page.value(SHOWN)) == 100
    page.type("/")
    page.type("nowhere")
    assert page.value(SHOWN) == []
    assert page.complaints == []


def choose(page: Page, filter: str, value: str) -> None:
    page.value(
        f"(() => {{ const box = document.getElementById('{filter}'); box.value = {value!r}; box.dispatchEvent(new Event('change')) }})()"
    )


def test_filters_ask_for_one_mistake_that_has_it_all(page: Page) -> None:
    choose(page, "kind", "boundary")
    assert page.value(SHOWN) == ["broken"]
    choose(page, "type", "Date")  # which is spurious in that sentence, and no boundary error
    assert page.value(SHOWN) == []
    choose(page, "kind", "")
    assert page.value(SHOWN) == ["broken"]
    choose(page, "type", 'A<b>&"c"')
    assert page.value(SHOWN) == ["hostile"]
    choose(page, "type", "Cell")  # gold's type and the predicted one both count
    assert page.value(SHOWN) == ["nested"]
    choose(page, "type", "Protein")
    assert page.value(SHOWN) == ["nested"]
    choose(page, "type", "Two  spaces")
    assert page.value(SHOWN) == ["more-1"]


def test_keys_go_from_sentence_to_sentence(page: Page) -> None:
    page.type("jj")
    assert focus(page) == "broken"
    page.type("k")
    assert focus(page) == "nested"
    page.type("/")
    page.type("shoulder")
    page.press("ArrowDown")
    assert focus(page) == "broken"
    page.type("j")
    assert focus(page) == "broken", "the last one that is shown"


def test_more_can_be_shown(page: Page) -> None:
    assert len(page.value(SHOWN)) == 100
    page.value("document.getElementById('more').click()")
    assert len(page.value(SHOWN)) == MANY + 3
    assert page.value("document.getElementById('more').hidden") is True


@pytest.mark.parametrize("width", [1300, 700, 360])
def test_nothing_is_wider_than_the_page_and_no_bars_overlap(browser: Browser, address: str, width: int) -> None:
    page = browser.open(address, width=width)
    assert page.value("document.documentElement.scrollWidth") == width
    # Two pieces of bars, or two names, of one sentence never cover each other, however the text is broken into lines.
    overlaps = page.value("""
        const bar = piece => piece.closest('i').style.cssText;  // the pieces of one bar have the same colour and level
        [...document.querySelectorAll('.case')].slice(0, 4).flatMap(one => {
          const boxes = [...one.querySelectorAll('.drawn i:not(.g), .drawn em')].map(x => [x, x.getBoundingClientRect()]);
          return boxes.flatMap(([x, a], at) => boxes.slice(at + 1)
            .filter(([y, b]) => a.left + 1 < b.right && b.left + 1 < a.right && a.top + 1 < b.bottom && b.top + 1 < a.bottom)
            .filter(([y]) => (x.tagName === 'EM' && y.tagName === 'EM') || bar(x) !== bar(y))
            .map(([y]) => x.outerHTML + ' ' + y.outerHTML));
        })""")
    assert overlaps == []


def test_dark_and_light(browser: Browser, address: str) -> None:
    """Text stands out from its background in both, in the page and in its figures."""
    seen = {}
    for dark in (False, True):
        page = browser.open(address, dark=dark)
        back, ink, figure = page.value("""['section', 'section', 'figure svg text']
            .map((what, at) => getComputedStyle(document.querySelector(what))[['backgroundColor', 'color', 'fill'][at]])""")
        assert ink == figure
        seen[dark] = [_brightness(back), _brightness(ink)]
        assert page.complaints == []
    assert seen[False][0] - seen[False][1] > 150
    assert seen[True][1] - seen[True][0] > 150


def _brightness(colour: str) -> float:
    parts = [float(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    return sum(parts) / len(parts)
