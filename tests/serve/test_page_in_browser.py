"""The web page in a real browser: typing, drawing, threshold and filter."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from fake_service import TEXT, FakePredictor, serve_app

from spanwise.serve.app import make_app
from spanwise.serve.limits import Limits

if TYPE_CHECKING:
    from browser import Browser, Page

NAMES = "[...document.querySelectorAll('#sentences i.d em')].map(name => name.textContent)"
ALL = ["Place", "Organization", "Organization", "Disease", "Disease", "Place"]


@pytest.fixture(scope="module")
def fake() -> FakePredictor:
    return FakePredictor()


@pytest.fixture(scope="module")
def address(fake: FakePredictor) -> Iterator[str]:
    with serve_app(make_app(fake, title='<b>"A & B"</b>')) as url:
        yield url


def open_with_predictions(browser: Browser, address: str, text: str = TEXT, **options: Any) -> Page:
    """Open the page, type a text and submit it by keyboard."""
    page = browser.open(address, **options)
    page.evaluate("document.getElementById('text').focus()")
    page.send("Input.insertText", text=text)
    send(page)
    browser.wait_until(lambda: " in " in status(page) or "no words" in status(page), "a response")
    return page


def send(page: Page) -> None:
    for kind in ("rawKeyDown", "keyUp"):  # Ctrl+Enter
        page.send("Input.dispatchKeyEvent", type=kind, key="Enter", windowsVirtualKeyCode=13, modifiers=2)


def status(page: Page) -> str:
    return str(page.evaluate("document.getElementById('status').textContent"))


def slide(page: Page, threshold: float) -> None:
    page.evaluate(f"""(() => {{ const slider = document.getElementById('threshold'); slider.value = {threshold};
        slider.dispatchEvent(new Event('input')); return new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn))) }})()""")


def test_predictions_are_drawn_without_errors(browser: Browser, address: str) -> None:
    page = open_with_predictions(browser, address)
    assert page.requests == [address, f"{address}predict"]
    assert page.errors == []
    assert page.evaluate("document.querySelector('h1').textContent") == '<b>"A & B"</b>'
    assert status(page) == "6 entities and 4 relations in 2 sentences"
    assert page.evaluate(NAMES) == ALL
    words = """[...document.querySelectorAll('.drawn')].map(drawn => { const words = drawn.cloneNode(true);
        for (const bar of words.querySelectorAll('i')) bar.remove(); return words.textContent }).join(' ')"""
    assert page.evaluate(words) == TEXT
    assert page.evaluate("[...document.querySelectorAll('li')].map(item => item.textContent)[0]") == (
        "New York University Hospital treats → breast cancer 0.400"
    )


@pytest.mark.parametrize("width", [1200, 700, 360])
def test_three_levels_are_drawn_and_nothing_overlaps(browser: Browser, address: str, width: int) -> None:
    page = open_with_predictions(browser, address, width=width)
    slide(page, 0.02)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    tops = page.evaluate(
        "[...document.querySelector('.drawn').querySelectorAll('i.d em')].slice(0, 3).map(x => x.getBoundingClientRect().top)"
    )
    assert tops[0] + 10 < tops[1]
    assert tops[1] + 10 < tops[2]
    # Names, bars and lines of different entities or relations of a sentence do not overlap.
    overlaps = page.evaluate("""
        const owner = piece => { const bar = piece.closest('i'); return JSON.stringify(bar.dataset) };
        [...document.querySelectorAll('.drawn')].flatMap(drawn => {
          const boxes = [...drawn.querySelectorAll('i, em')].map(x => [x, x.getBoundingClientRect()]);
          return boxes.flatMap(([x, a], index) => boxes.slice(index + 1)
            .filter(([y, b]) => a.left + 1 < b.right && b.left + 1 < a.right && a.top + 1 < b.bottom && b.top + 1 < a.bottom)
            .filter(([y]) => owner(x) !== owner(y)).map(([y]) => x.outerHTML + ' ' + y.outerHTML));
        })""")
    assert overlaps == []


def test_threshold_and_filter_need_no_request(browser: Browser, address: str, fake: FakePredictor) -> None:
    page = open_with_predictions(browser, address)
    requests = len(page.requests)
    slide(page, 0.65)
    assert page.evaluate(NAMES) == ["Organization", "Organization", "Disease", "Disease"]
    slide(page, 0.1)  # below the model's default threshold
    assert sorted(page.evaluate(NAMES)) == sorted([*ALL, "Disease"])
    slide(page, 0.5)
    assert page.evaluate("[...document.querySelectorAll('#types label')].map(x => x.textContent)") == [
        "Disease 2", "Organization 2", "Place 2"
    ]  # fmt: skip
    page.evaluate("document.querySelector('#types input[value=Disease]').click()")
    assert page.evaluate(NAMES) == ["Place", "Organization", "Organization", "Place"]
    assert status(page) == "4 entities in 2 sentences", "relations of hidden entities are hidden"
    page.evaluate("document.getElementById('none').click()")
    assert page.evaluate(NAMES) == []
    page.evaluate("document.getElementById('all').click()")
    assert page.evaluate(NAMES) == ALL
    slide(page, 0.95)
    assert page.evaluate(NAMES) == ["Organization"]
    assert len(page.requests) == requests
    assert page.errors == []


def test_the_slider_can_show_more_entities_but_no_less_probable_relations(
    browser: Browser, address: str, fake: FakePredictor
) -> None:
    """A low threshold for everything would return all relations, which the model omits by default."""
    open_with_predictions(browser, address)
    assert fake.requested_threshold is not None
    assert isinstance(fake.requested_threshold.entities, dict)
    assert sorted(fake.requested_threshold.entities) == ["Disease", "Organization", "Place"]
    assert max(fake.requested_threshold.entities.values()) < 0.1
    assert not fake.requested_threshold.relations


def test_slider_starts_at_the_models_threshold(browser: Browser) -> None:
    for threshold, shown, names in ((0.604, "0.60", 4), (None, "0.00", 6)):
        fake = FakePredictor()
        fake.default_threshold = threshold
        with serve_app(make_app(fake)) as address:
            page = open_with_predictions(browser, address)
        assert page.evaluate("document.getElementById('level').value") == shown
        assert len(page.evaluate(NAMES)) == names, (
            "a score of 0.6 is below 0.604; without a threshold, all predictions are shown"
        )


def test_slider_starts_at_the_saved_thresholds(browser: Browser) -> None:
    """Thresholds saved in the model replace that of its head; lower predictions are still reached with the slider."""
    cases = (
        ({"Disease": 0.8, "Organization": 0.8, "Place": 0.8}, "0.80", ["Disease", "Organization", "Organization"]),
        (
            {"Disease": 0.65, "Organization": 0.9, "Place": 0.2},
            "by type",
            ["Disease", "Disease", "Organization", "Place", "Place"],
        ),
    )
    for default_threshold, (saved, shown, names) in product((0.5, None), cases):
        fake = FakePredictor()
        fake.default_threshold, fake.thresholds = default_threshold, saved
        with serve_app(make_app(fake)) as address:
            page = open_with_predictions(browser, address)
            assert page.evaluate("document.getElementById('level').value") == shown
            assert sorted(page.evaluate(NAMES)) == names
            slide(page, 0.3)
            assert page.evaluate("document.getElementById('level').value") == "0.30"
            assert sorted(page.evaluate(NAMES)) == sorted([*ALL, "Disease"])


def test_copy_as_json(browser: Browser, address: str) -> None:
    page = open_with_predictions(browser, address)
    page.evaluate("document.querySelector('#types input[value=Place]').click()")
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text }")
    page.evaluate("document.getElementById('copy').click()")
    copied = json.loads(page.evaluate("window.copied"))
    first, second = copied["sentences"]
    assert [entity["type"] for entity in first["entities"]] == ["Organization", "Organization", "Disease", "Disease"]
    assert {(relation["head"], relation["tail"]) for relation in first["relations"]} == {(0, 2), (0, 3), (1, 2), (1, 3)}, (
        "new entity indices"
    )
    assert second["entities"] == []
    assert [TEXT[a:b] for a, b in first["entities"][2]["characters"]] == ["breast", "cancer"]
    # The fallback if there is no clipboard.
    page.evaluate(
        "navigator.clipboard.writeText = () => Promise.reject(); document.execCommand = (command) => { window.fallback = [command, getSelection().toString()] }"
    )
    page.evaluate("document.getElementById('copy').click()")
    assert page.evaluate("window.fallback[0]") == "copy"
    assert json.loads(page.evaluate("window.fallback[1]")) == copied


def test_labels_appear_by_keyboard_and_pointer(browser: Browser, address: str) -> None:
    page = open_with_predictions(browser, address)
    for _ in range(30):
        page.press("Tab")
        if page.evaluate("document.activeElement.closest('.drawn') !== null"):
            break
    seen = []
    for _ in range(9):
        label = page.evaluate("document.activeElement.getAttribute('aria-label')")
        assert page.evaluate("[document.getElementById('tip').hidden, document.getElementById('tip').textContent]") == [
            False,
            label,
        ]
        seen.append(label)
        page.press("Tab")
    assert seen.count("New York University Hospital → treats → breast cancer (0.400)") == 1
    assert "Disease: breast cancer (0.700)" in seen
    page.press("Escape")
    assert page.evaluate("document.getElementById('tip').hidden") is True
    point = page.evaluate("""(() => { const name = [...document.querySelectorAll('i.d em')].find(x => x.textContent === 'Organization');
        const box = name.getBoundingClientRect(); return [box.left + 3, box.top + 3] })()""")
    page.send("Input.dispatchMouseEvent", type="mouseMoved", x=point[0], y=point[1])
    assert page.evaluate("document.getElementById('tip').textContent").startswith("Organization: New York University")
    highlighted = page.evaluate("[...document.querySelectorAll('i.active')].map(x => x.closest('.w').lastChild.textContent)")
    assert highlighted == ["New", "York", "University"]


def test_every_control_has_a_name(browser: Browser, address: str) -> None:
    page = open_with_predictions(browser, address)
    page.send("Accessibility.enable")
    controls = {"textbox", "button", "slider", "checkbox", "image"}

    def named_controls() -> list[tuple[str, str]]:
        nodes = page.send("Accessibility.getFullAXTree")["nodes"]
        return [
            (node["role"]["value"], node["name"]["value"]) for node in nodes if node.get("role", {}).get("value") in controls
        ]

    # The browser builds the tree in the background.
    browser.wait_until(lambda: {role for role, _ in named_controls()} == controls, "all kinds of controls")
    named = named_controls()
    assert all(name for _, name in named)
    assert {("textbox", "Text"), ("slider", "Threshold"), ("button", "Find entities")} <= set(named)
    assert page.evaluate("document.getElementById('status').getAttribute('role')") == "status"


def test_hostile_text_is_not_interpreted(browser: Browser, address: str) -> None:
    text = "<img src=x onerror=alert(1)> 🌊 New York </script><script>alert(2)</script> breast a b cancer"
    page = open_with_predictions(browser, address, text)
    assert page.evaluate("document.querySelectorAll('img, script:not([type])').length") == 1
    assert page.evaluate("[...document.querySelectorAll('i.d')].map(x => x.getAttribute('aria-label')).filter(Boolean)") == [
        "Place: New York (0.600)", "Disease: breast cancer (0.700)"
    ]  # fmt: skip
    assert page.evaluate("document.querySelector('i.d').closest('.w').lastChild.textContent") == "New", (
        "offsets are code points"
    )
    assert page.errors == []


def test_token_and_connection_errors(browser: Browser) -> None:
    with serve_app(make_app(FakePredictor(), token="open-sesame")) as address:
        page = browser.open(address)
        assert page.evaluate("document.getElementById('token').checkVisibility()") is True
        page.evaluate("document.getElementById('text').value = 'New York'; document.querySelector('button.main').click()")
        browser.wait_until(lambda: "token" in status(page), "an error")
        assert page.evaluate("document.activeElement.id") == "token"
        page.type("open-sesame")
        page.evaluate("document.querySelector('button.main').click()")
        browser.wait_until(lambda: "1 entity" in status(page), "a response")
    page.evaluate("document.querySelector('button.main').click()")
    browser.wait_until(lambda: "cannot be reached" in status(page), "an error")
    assert page.evaluate("document.getElementById('status').getAttribute('role')") == "alert"


def test_errors_remove_earlier_predictions(browser: Browser) -> None:
    shown = "document.getElementById('results').checkVisibility()"
    press = "document.querySelector('button.main').click()"
    with serve_app(make_app(FakePredictor(), limits=Limits(max_words=20))) as address:
        page = open_with_predictions(browser, address)
        assert page.evaluate(shown) is True
        page.evaluate(f"document.getElementById('text').value = 'word '.repeat(21); {press}")
        browser.wait_until(lambda: "Error: " in status(page), "an error")
        assert page.evaluate(shown) is False
        page.evaluate(f"document.getElementById('text').value = 'New York'; {press}")
        browser.wait_until(lambda: "1 entity" in status(page), "a response")
        assert page.evaluate(f"[{shown}, ...{NAMES}]") == [True, "Place"]
    page.evaluate(press)
    browser.wait_until(lambda: "cannot be reached" in status(page), "an error")
    assert page.evaluate(shown) is False


def test_dark_and_light(browser: Browser, address: str) -> None:
    for dark in (False, True):
        page = open_with_predictions(browser, address, dark=dark)
        background, text = page.evaluate(
            "['backgroundColor', 'color'].map(property => getComputedStyle(document.getElementById('results'))[property])"
        )
        difference = _brightness(background) - _brightness(text)
        assert difference < -150 if dark else difference > 150


def _brightness(colour: str) -> float:
    parts = [float(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    return sum(parts) / len(parts)
