"""The output folder of an analysis: complete, consistent, safe and written atomically."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
from sample_predictions import GOLD, PREDICTED, SCRIPT, TRAIN, entity

from spanwise.analysis import analyze as module
from spanwise.analysis import report as report_module
from spanwise.analysis.analyze import AnalysisInput, analyze
from spanwise.analysis.error_browser import error_browser
from spanwise.analysis.inline_svg import inline_svg
from spanwise.analysis.prediction_sections import lengths_section
from spanwise.analysis.report import report
from spanwise.analysis.section import Section, Table
from spanwise.analysis.writing import render_figures, write_files
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Entity, Sentence
from spanwise.drawing import type_colours
from spanwise.evaluation import analyze_errors

INPUT = AnalysisInput(
    'a <i>system</i> & "more"', "five", GOLD, PREDICTED, train=TRAIN, splits={"train": TRAIN, "gold": GOLD},
    settings={"from": f"http://example.org/{SCRIPT}"}, other_systems={"perfect": [GOLD]},
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("analysis") / "out"
    assert analyze(INPUT, out) == out / "report.html"
    return out


def test_all_files_are_written(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == ["figures", "numbers.json", "report.html", "tables"]
    figures = {path.stem for path in (folder / "figures").glob("*.png")}
    assert len(figures) >= 5
    assert figures == {path.stem for path in (folder / "figures").glob("*.svg")}
    assert {"scores-types", "errors-counts", "confusion-matrix", "buckets-published", "difference-published"} <= figures


def test_tables_match_numbers_json(folder: Path) -> None:
    numbers = json.loads((folder / "numbers.json").read_text(encoding="utf-8"))
    assert numbers["title"] == INPUT.title
    files = {path.stem for path in (folder / "tables").glob("*.csv")}
    named = {f"{section}-{table}" for section, values in numbers["sections"].items() for table in values["tables"]}
    assert files == named
    for section, values in numbers["sections"].items():
        for table, rows in values["tables"].items():
            with (folder / "tables" / f"{section}-{table}.csv").open(encoding="utf-8", newline="") as file:
                header, *read = csv.reader(file)
            assert read == [["" if value is None else str(value) for value in row.values()] for row in rows]
            assert all(list(row) == header for row in rows)
    summary = numbers["sections"]["scores"]["tables"]["summary"]
    assert (summary[0]["measure"], summary[0]["f1"]) == ("micro", 0.625)


def test_csv_files_contain_no_formulas(tmp_path: Path) -> None:
    rows = (("=cmd|' /C calc'!A0", -1), ("-like", -0.5), ("+", None), ("@home", 0), ("IL-2 = x", 1e-9), ("\tx", 2))
    section = Section("words", "Words", "", {"all": Table(("=class", "count"), rows)})
    write_files(tmp_path, "title", [section], {})
    with (tmp_path / "tables" / "words-all.csv").open(encoding="utf-8", newline="") as file:
        header, *read = csv.reader(file)
    assert header == ["'=class", "count"]
    assert [row[0] for row in read] == ["'=cmd|' /C calc'!A0", "'-like", "'+", "'@home", "IL-2 = x", "'\tx"]
    assert [row[1] for row in read] == ["-1", "-0.5", "", "0", "1e-09", "2"]
    numbers = json.loads((tmp_path / "numbers.json").read_text(encoding="utf-8"))["sections"]["words"]["tables"]["all"]
    assert [row["=class"] for row in numbers] == [name for name, _ in rows]


def test_report_loads_no_resources_and_runs_no_text_of_the_data(folder: Path) -> None:
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert not re.search("http", page, re.IGNORECASE)
    assert page.count("<script>") == 1, "only the script of the page"
    assert "alert(1)</script>" not in page
    assert not re.search(r"@import|url\((?!#)|\bsrc=(?!\"data:image/png)|<(?:iframe|object|embed|base)\b", page)
    assert not re.search(r"<[^>]*\son\w+=", page), "no event handlers in attributes"
    shown = unescape(page)
    assert f"http://example.org/{SCRIPT}" in shown, "the text is visible"
    assert 'a <i>system</i> & "more" on five' in shown


def test_report_contains_all_sections_and_figures(folder: Path) -> None:
    page = (folder / "report.html").read_text(encoding="utf-8")
    sections = re.findall(r'<section id="(\w+)">', page)
    assert sections[:3] == ["scores", "errors", "browser"]
    assert {"confusion", "buckets", "difference", "lengths", "calibration", "data", "settings"} <= set(sections)
    assert re.findall(r'<a href="#(\w+)">', page) == sections
    assert "<dd>62.50</dd>" in page
    assert "<td>micro</td><td class=n>62.50</td>" in page
    names = re.findall(r'\bid="([^"]+)"', page)
    assert len(names) == len(set(names)), "ids are unique"
    assert page.count("<figure>") == len(list((folder / "figures").glob("*.png")))
    for used in re.findall(r'(?:url\(#|href="#)([^)"]+)', page):
        assert used in names


def test_types_have_the_colours_of_other_pages(tmp_path: Path) -> None:
    """All pages assign colours in alphabetical order, not by frequency."""
    entities = (Entity("Zone", ((0, 1),)), Entity("Zone", ((1, 2),)), Entity("Area", ((2, 3),)))
    gold = Sentence("a", ("x", "y", "z"), entities)
    page = analyze(AnalysisInput("system", "data", [gold], [replace(gold, entities=())]), tmp_path / "out").read_text(
        encoding="utf-8"
    )
    colours = dict(re.findall(r'style="--c:(#\w+)" title="(\w+): ', page))
    assert colours == {colour: type for type, colour in type_colours(["Area", "Zone"]).items()}


def test_error_browser_lists_all_sentences_with_errors() -> None:
    html = error_browser(analyze_errors(GOLD, PREDICTED), {})
    assert re.findall(r"<h3>(\w+)</h3>", html) == ["nested", "discontinuous", "hostile"]
    assert re.findall(r"<li data-e=(\w+)", html) == ["type", "boundary", "spurious", "missed"]
    assert 'data-g="Cell" data-p="Protein"' in html
    assert 'data-g="A&lt;b&gt;&amp;&quot;c&quot;"' in html
    assert '<option value="A&lt;b&gt;&amp;&quot;c&quot;">A&lt;b&gt;' in html
    assert "There are no errors" in error_browser(analyze_errors(GOLD, GOLD), {})


def test_right_to_left_types_do_not_move_the_score() -> None:
    gold = [Sentence("s", ("a",), (entity("X", (0, 1)),))]
    shown = error_browser(analyze_errors(gold, [Sentence("s", ("a",), (entity("ארגון", (0, 1), score=0.45),))]), {})
    assert "<q><bdi>a</bdi></q> <i><bdi>ארגון</bdi> 0.45</i>" in shown


def test_empty_cells_are_aligned_like_their_column() -> None:
    section = Section("p", "P", "", {"t": Table(("text", "number", "empty"), (("a", 1, None), (None, None, None)))})
    assert "<td>–</td><td class=n>–</td><td class=n>–</td>" in report("title", {}, [section], {})


def test_long_error_lists_are_truncated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spanwise.analysis.error_browser.MAX_BYTES", 10)
    html = error_browser(analyze_errors(GOLD, PREDICTED), {})
    assert html.count("<article") == 1
    assert "Only the first 1 of 3 sentences are shown" in html


@pytest.mark.usefixtures("without_figures")
def test_predictions_with_another_tokenisation(tmp_path: Path) -> None:
    """They are drawn over gold's words, and a boundary inside a word is an error."""
    gold = [Sentence("s", ("can", "not", "go"), (entity("X", (0, 1)),), text="cannot go")]
    predicted = [Sentence("s", ("cannot", "go"), (gold[0].entities[0],), text="cannot go")]
    html = error_browser(analyze_errors(gold, predicted), {})
    assert re.findall(r"<li data-e=(\w+)", html) == ["boundary"]
    assert 'class="u a z"' in html
    assert "“" not in html
    assert analyze(AnalysisInput("system", "data", gold, predicted), tmp_path / "out").is_file()


def test_inline_svg_uses_the_page_theme() -> None:
    svg = (
        '<?xml version="1.0"?>\n<!DOCTYPE svg PUBLIC "x" "http://x">\n<svg xmlns="http://a" xmlns:xlink="http://b" width="1pt">\n'
        '<metadata>\n<x/>\n</metadata><defs><clipPath id="p1"/></defs>\n<!-- a -->\n'
        '<path d="M 1.23456 2" clip-path="url(#p1)" style="fill: #1f2430"/><use xlink:href="#m"/></svg>\n'
    )
    assert inline_svg(svg, "f", "A label") == (
        '<svg role="img" aria-label="A label" width="1pt">\n<defs><clipPath id="f-p1"/></defs>\n'
        '<path d="M 1.23 2" clip-path="url(#f-p1)" style="fill: var(--ink)"/><use xlink:href="#f-m"/></svg>'
    )


def test_inline_svg_keeps_text_unchanged() -> None:
    """Only tags are shortened, recoloured or renamed."""
    text = 'best F1 53.64 at 0.0001, v1.23456 #1f2430 id="p1" url(#p1) xmlns="x"'
    assert inline_svg(f"<svg><text>{text}</text></svg>", "f", "label") == (
        f'<svg role="img" aria-label="label"><text>{text}</text></svg>'
    )


def test_large_figures_are_embedded_as_png(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_module, "MAX_SVG_LENGTH", 10)
    section = lengths_section(analyze_errors(GOLD, PREDICTED), GOLD)
    page = report("title", {}, [section], render_figures([section]))
    assert "<svg" not in page
    assert page.count('src="data:image/png;base64,') == page.count("<figure>")
    assert not re.search("http", page, re.IGNORECASE)


@pytest.mark.usefixtures("without_figures")
def test_an_earlier_analysis_is_replaced(tmp_path: Path) -> None:
    out = tmp_path / "out"
    analyze(AnalysisInput("one", "x", GOLD, PREDICTED, other_systems={"perfect": [GOLD]}), out)
    assert (out / "figures" / "difference-errors.png").is_file()
    analyze(AnalysisInput("two", "x", GOLD, PREDICTED), out)
    assert json.loads((out / "numbers.json").read_text(encoding="utf-8"))["title"] == "two on x"
    assert not (out / "figures" / "difference-errors.png").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.usefixtures("without_figures")
def test_other_folders_are_not_overwritten(tmp_path: Path) -> None:
    out = tmp_path / "out"
    analyze(AnalysisInput("one", "x", GOLD, PREDICTED), out)
    (out / "notes.txt").write_text("mine")
    with pytest.raises(SpanwiseError, match=r"out: contains notes\.txt in addition to an analysis; choose another folder"):
        analyze(AnalysisInput("two", "x", GOLD, PREDICTED), out)
    with pytest.raises(SpanwiseError, match="is not empty and contains no analysis; choose another folder"):
        analyze(AnalysisInput("two", "x", GOLD, PREDICTED), tmp_path)
    assert (out / "notes.txt").read_text() == "mine"
    assert json.loads((out / "numbers.json").read_text(encoding="utf-8"))["title"] == "one on x"
    with pytest.raises(SpanwiseError, match=r"notes\.txt: expected a folder, found a file"):
        analyze(AnalysisInput("two", "x", GOLD, PREDICTED), out / "notes.txt")


@pytest.mark.usefixtures("without_figures")
def test_failures_write_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    analyze(AnalysisInput("one", "x", GOLD, PREDICTED), out)

    def fail(*arguments: object) -> str:
        raise RuntimeError("no report")

    monkeypatch.setattr(module, "report", fail)
    with pytest.raises(RuntimeError):
        analyze(AnalysisInput("two", "x", GOLD, PREDICTED), out)
    with pytest.raises(RuntimeError):
        analyze(AnalysisInput("two", "x", GOLD, PREDICTED), tmp_path / "new")
    assert json.loads((out / "numbers.json").read_text(encoding="utf-8"))["title"] == "one on x"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_gold_is_required(tmp_path: Path) -> None:
    with pytest.raises(SpanwiseError, match="there are no gold sentences"):
        analyze(AnalysisInput("one", "x", (), ()), tmp_path / "out")
