"""The folder of an analysis: complete, consistent, harmless, whole or not there at all."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence
from html import unescape
from pathlib import Path

import pytest
from analysed import GOLD, PREDICTED, SCRIPT, TRAIN, entity

from spanwise.analysis import analyze as module
from spanwise.analysis import report as report_module
from spanwise.analysis.analyze import Subject, analyze
from spanwise.analysis.error_browser import error_browser
from spanwise.analysis.inline_svg import inline_svg
from spanwise.analysis.part import Part, Table
from spanwise.analysis.prediction_parts import lengths_part
from spanwise.analysis.report import report
from spanwise.analysis.writing import Drawn, draw, file_name, write_files
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.evaluation import errors

SUBJECT = Subject(
    'a <i>system</i> & "more"', "five", GOLD, PREDICTED, train=TRAIN, splits={"train": TRAIN, "gold": GOLD},
    settings={"from": f"http://example.org/{SCRIPT}"}, against={"perfect": [GOLD]},
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("analysis") / "out"
    assert analyze(SUBJECT, out) == out / "report.html"
    return out


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures that are not drawn, for tests that do not look at them."""

    def drawn(parts: Sequence[Part]) -> dict[str, Drawn]:
        return {file_name(part, name): Drawn(b"png", b"<svg></svg>") for part in parts for name in part.figures}

    monkeypatch.setattr(module, "draw", drawn)


def test_everything_is_there(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == ["figures", "numbers.json", "report.html", "tables"]
    drawn = {path.stem for path in (folder / "figures").glob("*.png")}
    assert len(drawn) >= 5
    assert drawn == {path.stem for path in (folder / "figures").glob("*.svg")}
    assert {"scores-types", "errors-kinds", "confusion-matrix", "buckets-published", "difference-published"} <= drawn


def test_tables_and_numbers_agree(folder: Path) -> None:
    numbers = json.loads((folder / "numbers.json").read_text(encoding="utf-8"))
    assert numbers["title"] == SUBJECT.title
    files = {path.stem for path in (folder / "tables").glob("*.csv")}
    named = {f"{part}-{table}" for part, values in numbers["parts"].items() for table in values["tables"]}
    assert files == named
    for part, values in numbers["parts"].items():
        for table, rows in values["tables"].items():
            with (folder / "tables" / f"{part}-{table}.csv").open(encoding="utf-8", newline="") as file:
                header, *read = csv.prediction_head(file)
            assert read == [["" if value is None else str(value) for value in row.values()] for row in rows]
            assert all(list(row) == header for row in rows)
    summary = numbers["parts"]["scores"]["tables"]["summary"]
    assert (summary[0]["measure"], summary[0]["f1"]) == ("micro", 0.625)


def test_no_text_of_the_data_is_a_formula_in_a_spreadsheet(tmp_path: Path) -> None:
    rows = (("=cmd|' /C calc'!A0", -1), ("-like", -0.5), ("+", None), ("@home", 0), ("IL-2 = x", 1e-9), ("\tx", 2))
    part = Part("words", "Words", "", {"all": Table(("=class", "count"), rows)})
    write_files(tmp_path, "title", [part], {})
    with (tmp_path / "tables" / "words-all.csv").open(encoding="utf-8", newline="") as file:
        header, *read = csv.prediction_head(file)
    assert header == ["'=class", "count"]
    assert [row[0] for row in read] == ["'=cmd|' /C calc'!A0", "'-like", "'+", "'@home", "IL-2 = x", "'\tx"]
    assert [row[1] for row in read] == ["-1", "-0.5", "", "0", "1e-09", "2"]
    numbers = json.loads((tmp_path / "numbers.json").read_text(encoding="utf-8"))["parts"]["words"]["tables"]["all"]
    assert [row["=class"] for row in numbers] == [name for name, _ in rows]


def test_the_report_asks_for_nothing_and_runs_nothing_of_the_data(folder: Path) -> None:
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert not re.search("http", page, re.IGNORECASE)
    assert page.count("<script>") == 1, "the page's own"
    assert "alert(1)</script>" not in page
    assert not re.search(r"@import|url\((?!#)|\bsrc=(?!\"data:image/png)|<(?:iframe|object|embed|base)\b", page)
    assert not re.search(r"<[^>]*\son\w+=", page), "no handlers in attributes"
    shown = unescape(page)
    assert f"http://example.org/{SCRIPT}" in shown, "the text itself is there to read"
    assert 'a <i>system</i> & "more" on five' in shown


def test_the_report_has_every_section_and_number(folder: Path) -> None:
    page = (folder / "report.html").read_text(encoding="utf-8")
    sections = re.findall(r'<section id="(\w+)">', page)
    assert sections[:3] == ["scores", "errors", "browser"]
    assert {"confusion", "buckets", "difference", "lengths", "calibration", "data", "settings"} <= set(sections)
    assert re.findall(r'<a href="#(\w+)">', page) == sections
    assert "<dd>62.50</dd>" in page
    names = re.findall(r'\bid="([^"]+)"', page)
    assert len(names) == len(set(names)), "figures share the page without sharing names"
    assert page.count("<figure>") == len(list((folder / "figures").glob("*.png")))
    for used in re.findall(r'(?:url\(#|href="#)([^)"]+)', page):
        assert used in names


def test_the_browser_of_mistakes_has_each_sentence_with_one() -> None:
    html = error_browser(errors(GOLD, PREDICTED), {})
    assert re.findall(r"<h3>(\w+)</h3>", html) == ["nested", "broken", "hostile"]
    assert re.findall(r"<li data-k=(\w+)", html) == ["type", "boundary", "spurious", "missed"]
    assert 'data-g="Cell" data-p="Protein"' in html
    assert 'data-g="A&lt;b&gt;&amp;&quot;c&quot;"' in html
    assert '<option value="A&lt;b&gt;&amp;&quot;c&quot;">A&lt;b&gt;' in html
    assert "There are no mistakes" in error_browser(errors(GOLD, GOLD), {})


def test_a_type_in_a_script_from_right_to_left_leaves_the_score_in_its_place() -> None:
    gold = [Sentence("s", ("a",), (entity("X", (0, 1)),))]
    shown = error_browser(errors(gold, [Sentence("s", ("a",), (entity("ארגון", (0, 1), score=0.45),))]), {})
    assert "<q><bdi>a</bdi></q> <i><bdi>ארגון</bdi> 0.45</i>" in shown


def test_an_empty_cell_stands_where_the_others_of_its_column_stand() -> None:
    part = Part("p", "P", "", {"t": Table(("text", "number", "empty"), (("a", 1, None), (None, None, None)))})
    assert "<td>–</td><td class=n>–</td><td class=n>–</td>" in report("title", {}, [part], {})


def test_a_long_list_of_mistakes_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spanwise.analysis.error_browser.MOST_BYTES", 10)
    html = error_browser(errors(GOLD, PREDICTED), {})
    assert html.count("<article") == 1
    assert "Only the first 1 of 3 sentences are here" in html


@pytest.mark.usefixtures("quick")
def test_other_words_than_gold(tmp_path: Path) -> None:
    """A system with its own words is shown with gold's, and what is half a word wrong is no agreement."""
    gold = [Sentence("s", ("can", "not", "go"), (entity("X", (0, 1)),), text="cannot go")]
    found = [Sentence("s", ("cannot", "go"), (gold[0].entities[0],), text="cannot go")]
    html = error_browser(errors(gold, found), {})
    assert re.findall(r"<li data-k=(\w+)", html) == ["boundary"]
    assert 'class="u a z"' in html
    assert "“" not in html
    assert analyze(Subject("own", "words", gold, found), tmp_path / "out").is_file()


def test_an_inline_figure_follows_the_page() -> None:
    svg = (
        '<?xml version="1.0"?>\n<!DOCTYPE svg PUBLIC "x" "http://x">\n<svg xmlns="http://a" xmlns:xlink="http://b" width="1pt">\n'
        '<metadata>\n<x/>\n</metadata><defs><clipPath id="p1"/></defs>\n<!-- a -->\n'
        '<path d="M 1.23456 2" clip-path="url(#p1)" style="fill: #1f2430"/><use xlink:href="#m"/></svg>\n'
    )
    assert inline_svg(svg, "f", "A label") == (
        '<svg role="img" aria-label="A label" width="1pt">\n<defs><clipPath id="f-p1"/></defs>\n'
        '<path d="M 1.23 2" clip-path="url(#f-p1)" style="fill: var(--ink)"/><use xlink:href="#f-m"/></svg>'
    )


def test_text_in_an_inline_figure_says_what_the_file_says() -> None:
    """Only what stands in tags is made shorter, coloured by the page or renamed."""
    said = 'best F1 0.5364 at 0.0001, v1.23456 #1f2430 id="p1" url(#p1) xmlns="x"'
    assert inline_svg(f"<svg><text>{said}</text></svg>", "f", "label") == (
        f'<svg role="img" aria-label="label"><text>{said}</text></svg>'
    )


def test_large_figures_are_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_module, "LARGEST_SVG", 10)
    part = lengths_part(errors(GOLD, PREDICTED), GOLD)
    page = report("title", {}, [part], draw([part]))
    assert "<svg" not in page
    assert page.count('src="data:image/png;base64,') == page.count("<figure>")
    assert not re.search("http", page, re.IGNORECASE)


@pytest.mark.usefixtures("quick")
def test_an_earlier_analysis_is_replaced(tmp_path: Path) -> None:
    out = tmp_path / "out"
    analyze(Subject("one", "x", GOLD, PREDICTED, against={"perfect": [GOLD]}), out)
    assert (out / "figures" / "difference-errors.png").is_file()
    analyze(Subject("two", "x", GOLD, PREDICTED), out)
    assert json.loads((out / "numbers.json").read_text(encoding="utf-8"))["title"] == "two on x"
    assert not (out / "figures" / "difference-errors.png").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.usefixtures("quick")
def test_what_is_no_analysis_is_not_touched(tmp_path: Path) -> None:
    out = tmp_path / "out"
    analyze(Subject("one", "x", GOLD, PREDICTED), out)
    (out / "notes.txt").write_text("mine")
    with pytest.raises(SpanwiseError, match=r"out: holds notes\.txt besides an analysis; choose another folder"):
        analyze(Subject("two", "x", GOLD, PREDICTED), out)
    with pytest.raises(SpanwiseError, match="is not empty and holds no analysis; choose another folder"):
        analyze(Subject("two", "x", GOLD, PREDICTED), tmp_path)
    assert (out / "notes.txt").read_text() == "mine"
    assert json.loads((out / "numbers.json").read_text(encoding="utf-8"))["title"] == "one on x"
    with pytest.raises(SpanwiseError, match=r"notes\.txt: is a file, a folder was expected"):
        analyze(Subject("two", "x", GOLD, PREDICTED), out / "notes.txt")


@pytest.mark.usefixtures("quick")
def test_a_failure_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    analyze(Subject("one", "x", GOLD, PREDICTED), out)

    def fail(*anything: object) -> str:
        raise RuntimeError("no report")

    monkeypatch.setattr(module, "report", fail)
    with pytest.raises(RuntimeError):
        analyze(Subject("two", "x", GOLD, PREDICTED), out)
    with pytest.raises(RuntimeError):
        analyze(Subject("two", "x", GOLD, PREDICTED), tmp_path / "new")
    assert json.loads((out / "numbers.json").read_text(encoding="utf-8"))["title"] == "one on x"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_no_gold(tmp_path: Path) -> None:
    with pytest.raises(SpanwiseError, match="there are no gold sentences"):
        analyze(Subject("one", "x", (), ()), tmp_path / "out")
