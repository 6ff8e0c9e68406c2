"""The report in a real browser: it loads without errors and requests, and can be searched by keyboard."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sample_predictions import GOLD, PREDICTED, TRAIN, entity

from spanwise.analysis.analyze import AnalysisInput, analyze
from spanwise.core.types import Sentence

if TYPE_CHECKING:
    from browser import Browser, Page

SHOWN = "[...document.querySelectorAll('.case')].filter(x => x.checkVisibility()).map(x => x.querySelector('h3').textContent)"
MANY = 130  # more sentences with errors than are shown at once


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    more = [Sentence(f"more-{number}", ("so", "many"), GOLD[3].entities) for number in range(MANY)]
    # Narrow words without spaces, with wider type names.
    names = tuple(entity("Long_name", (start, start + width)) for start, width in ((0, 1), (1, 2), (3, 1), (4, 4)))
    more[0] = Sentence("more-0", ("il",) * 8, names, text="il" * 8)
    more[1] = Sentence("more-1", ("so", "many"), (entity("Two  spaces", (0, 1)),))
    data = AnalysisInput(
        "system", "data", [*GOLD, *more], [*PREDICTED, *(replace(sentence, entities=()) for sentence in more)], train=TRAIN,
    )  # fmt: skip
    return Path(analyze(data, tmp_path_factory.mktemp("page") / "out")).as_uri()


@pytest.fixture
def page(browser: Browser, address: str) -> Page:
    return browser.open(address)


def focus(page: Page) -> object:
    return page.evaluate("document.activeElement.id || document.activeElement.querySelector('h3')?.textContent")


def test_page_loads_without_errors_and_requests(page: Page, address: str) -> None:
    assert page.requests == [address]
    assert page.errors == []
    assert page.evaluate("document.title") == "system on data – analysis"
    assert page.evaluate("document.querySelectorAll('script').length") == 1, "none from the data"
    assert page.evaluate("document.querySelectorAll('figure svg, figure img').length") >= 7


def test_search(page: Page) -> None:
    assert page.evaluate("document.getElementById('count').value") == f"{MANY + 3} of {MANY + 3} sentences"
    page.type("/")
    assert focus(page) == "query"
    page.type("T cell  RECEPTOR")
    assert page.evaluate(SHOWN) == ["nested"]
    assert page.evaluate("document.getElementById('count').value") == f"1 of {MANY + 3} sentences"
    page.press("Escape")
    assert len(page.evaluate(SHOWN)) == 100
    page.type("/")
    page.type("nowhere")
    assert page.evaluate(SHOWN) == []
    assert page.errors == []


def choose(page: Page, filter: str, value: str) -> None:
    page.evaluate(
        f"(() => {{ const box = document.getElementById('{filter}'); box.value = {value!r}; box.dispatchEvent(new Event('change')) }})()"
    )


def test_filters_apply_to_the_same_error(page: Page) -> None:
    choose(page, "error", "boundary")
    assert page.evaluate(SHOWN) == ["discontinuous"]
    choose(page, "type", "Date")  # spurious in that sentence, not a boundary error
    assert page.evaluate(SHOWN) == []
    choose(page, "error", "")
    assert page.evaluate(SHOWN) == ["discontinuous"]
    choose(page, "type", 'A<b>&"c"')
    assert page.evaluate(SHOWN) == ["hostile"]
    choose(page, "type", "Cell")  # gold and predicted types both count
    assert page.evaluate(SHOWN) == ["nested"]
    choose(page, "type", "Protein")
    assert page.evaluate(SHOWN) == ["nested"]
    choose(page, "type", "Two  spaces")
    assert page.evaluate(SHOWN) == ["more-1"]


def test_keys_move_between_sentences(page: Page) -> None:
    page.type("jj")
    assert focus(page) == "discontinuous"
    page.type("k")
    assert focus(page) == "nested"
    page.type("/")
    page.type("shoulder")
    page.press("ArrowDown")
    assert focus(page) == "discontinuous"
    page.type("j")
    assert focus(page) == "discontinuous", "the last visible sentence"


def test_show_more(page: Page) -> None:
    assert len(page.evaluate(SHOWN)) == 100
    page.evaluate("document.getElementById('more').click()")
    assert len(page.evaluate(SHOWN)) == MANY + 3
    assert page.evaluate("document.getElementById('more').hidden") is True


@pytest.mark.parametrize("width", [1300, 700, 360])
def test_page_does_not_scroll_sideways_and_bars_do_not_overlap(browser: Browser, address: str, width: int) -> None:
    page = browser.open(address, width=width)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    # Bars and names of a sentence do not overlap, wherever lines break.
    overlaps = page.evaluate("""
        const bar = piece => piece.closest('i').style.cssText;  // the pieces of one bar have the same colour and level
        [...document.querySelectorAll('.case')].slice(0, 4).flatMap(one => {
          const boxes = [...one.querySelectorAll('.drawn i:not(.g), .drawn em')].map(x => [x, x.getBoundingClientRect()]);
          return boxes.flatMap(([x, a], at) => boxes.slice(at + 1)
            .filter(([y, b]) => a.left + 1 < b.right && b.left + 1 < a.right && a.top + 1 < b.bottom && b.top + 1 < a.bottom)
            .filter(([y]) => (x.tagName === 'EM' && y.tagName === 'EM') || bar(x) !== bar(y))
            .map(([y]) => x.outerHTML + ' ' + y.outerHTML));
        })""")
    assert overlaps == []


def test_dark_and_light_themes(browser: Browser, address: str) -> None:
    """Text contrasts with its background, in the page and in its figures."""
    brightness = {}
    for dark in (False, True):
        page = browser.open(address, dark=dark)
        back, ink, figure = page.evaluate("""['section', 'section', 'figure svg text']
            .map((selector, index) => getComputedStyle(document.querySelector(selector))[['backgroundColor', 'color', 'fill'][index]])""")
        assert ink == figure
        brightness[dark] = [_brightness(back), _brightness(ink)]
        assert page.errors == []
    assert brightness[False][0] - brightness[False][1] > 150
    assert brightness[True][1] - brightness[True][0] > 150


def _brightness(colour: str) -> float:
    sections = [float(section) for section in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    return sum(sections) / len(sections)
