"""Sections that need predictions only, checked by hand on five sentences, and their figures."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest
from sample_predictions import GOLD, PREDICTED, TRAIN, entity

from spanwise.analysis.data_section import data_section, settings_section
from spanwise.analysis.difference_section import difference_section
from spanwise.analysis.figures.buckets import bucket_range, buckets_figure
from spanwise.analysis.figures.confusion import confusion_figure
from spanwise.analysis.figures.scores import scores_figure
from spanwise.analysis.figures.style import INK, render
from spanwise.analysis.prediction_sections import (
    buckets_section,
    confusion_section,
    errors_section,
    lengths_section,
    scores_section,
    typing_section,
)
from spanwise.analysis.section import Cell, Section, Table
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.evaluation import TrainIndex, analyze_errors, bucket_scores, evaluate
from spanwise.evaluation.buckets import BucketRange
from spanwise.evaluation.confusion import Confusion
from spanwise.evaluation.scores import Score
from spanwise.evaluation.typing import score_typing

ERRORS = analyze_errors(GOLD, PREDICTED)
HOSTILE = 'A<b>&"c"'


def rows(table: Table, *columns: str) -> list[tuple[Cell, ...]]:
    indices = [table.columns.index(column) for column in columns]
    return [tuple(row[index] for index in indices) for row in table.rows]


def drawn_figures(sections: Iterable[Section]) -> dict[str, bytes]:
    """Draw all figures; warnings are errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return {
            f"{section.name}-{name}": render(plot.draw(), "png")
            for section in sections
            for name, plot in section.figures.items()
        }


def count_figures(sections: Iterable[Section]) -> int:
    """Lay out all figures without an image, which takes half of the time; warnings are errors. Return their number."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plots = [plot for section in sections for plot in section.figures.values()]
        for plot in plots:
            plot.draw().draw_without_rendering()
    return len(plots)


def test_scores() -> None:
    section = scores_section(evaluate(GOLD, PREDICTED, TRAIN))
    summary = {row[0]: row[1:] for row in rows(section.tables["summary"], "measure", "f1", "support", "predicted", "correct")}
    assert summary["micro"] == (0.625, 8, 8, 5)
    assert summary["discontinuous"] == (0.0, 1, 0, 0)
    assert summary["macro"][1:] == (None, None, None)
    assert rows(section.tables["types"], "type", "precision", "recall", "support") == [
        ("DNA", 1.0, 1.0, 2),
        ("Disease", 0.5, 0.5, 2),
        (HOSTILE, 0.0, 0.0, 1),
        ("Cell", 0.0, 0.0, 1),
        ("Link", 1.0, 1.0, 1),
        ("Protein", 0.5, 1.0, 1),
        ("Date", 0.0, 0.0, 0),
    ]
    assert "Predicted types that do not occur in gold: Date." in section.text


def test_unseen_sentences_have_a_score_only_if_there_are_some() -> None:
    for train, has_row in ((TRAIN, True), (GOLD, False)):
        summary = scores_section(evaluate(GOLD, PREDICTED, train)).tables["summary"]
        assert (("unseen sentences",) in rows(summary, "measure")) is has_row


def test_relaxed_score_shows_no_correct_count() -> None:
    """Precision and recall use different counts; the count for precision (3) would exceed the support (2)."""
    words = ("IL2", "gene", "in", "T", "cells", "one")
    gold = [Sentence("s", words, (entity("X", (0, 1)), entity("X", (3, 5))))]
    predicted = [Sentence("s", words, (entity("X", (0, 2)), entity("X", (3, 5)), entity("X", (4, 6))))]
    summary = scores_section(evaluate(gold, predicted)).tables["summary"]
    relaxed = {row[0]: row[1:] for row in rows(summary, "measure", "recall", "support", "predicted", "correct")}["relaxed"]
    assert relaxed == (1.0, 2, 3, None)


def test_precision_and_recall_marks_are_never_hidden() -> None:
    (axes,) = scores_figure({"none": Score(1, 1, 0), "all": Score(2, 2, 2)}, Score(3, 3, 2)).axes
    precision, recall = axes.collections
    assert not precision.get_clip_on()
    assert not recall.get_clip_on()
    for marks in (precision, recall):
        assert [x for x, _ in marks.get_offsets().tolist()] == pytest.approx([200 / 3, 0, 100])  # type: ignore[union-attr]
    heights = [[y for _, y in marks.get_offsets().tolist()] for marks in (precision, recall)]  # type: ignore[union-attr]
    assert all(upper < lower for upper, lower in zip(*heights, strict=True)), "the first row is on top"


def test_errors() -> None:
    section = errors_section(ERRORS)
    sixth = pytest.approx(1 / 6)
    assert rows(section.tables["outcomes"], "outcome", "count", "rate") == [
        ("correct", 5, None), ("type", 1, sixth), ("boundary", 1, sixth), ("both", 0, 0.0), ("spurious", 1, sixth),
        ("missed", 1, sixth),
    ]  # fmt: skip
    assert rows(section.tables["types"], "type", "correct", "wrong_type", "boundary", "spurious", "missed") == [
        ("DNA", 2, 0, 0, 0, 0), ("Disease", 1, 0, 1, 0, 0), (HOSTILE, 0, 0, 0, 0, 1), ("Cell", 0, 1, 0, 0, 0),
        ("Date", 0, 0, 0, 1, 0), ("Link", 1, 0, 0, 0, 0), ("Protein", 1, 0, 0, 0, 0),
    ]  # fmt: skip
    assert rows(section.tables["all"], "sentence", "error_type", "gold_text", "predicted_text", "score") == [
        ("nested", "type", "T cell", "T cell", 0.95),
        ("discontinuous", "boundary", "severe joint pain", "severe joint", 0.6),
        ("discontinuous", "spurious", None, "today", 0.4),
        ("hostile", "missed", "<script>alert(1)</script>", None, None),
    ]
    assert [row[0] for row in rows(section.tables["most_confident"], "score")] == [0.95, 0.6, 0.4]
    assert "4 errors" in section.text


def test_errors_without_scores() -> None:
    without_scores = [replace(s, entities=tuple(replace(e, score=None) for e in s.entities)) for s in PREDICTED]
    section = errors_section(analyze_errors(GOLD, without_scores))
    assert section.tables["most_confident"].rows == ()
    assert "have no scores" in section.text


def test_confusion() -> None:
    section = confusion_section(ERRORS, ["DNA"])
    assert rows(section.tables["counts"], "gold", "predicted", "count") == [
        (HOSTILE, None, 1), ("Cell", "Protein", 1), ("Disease", None, 1), (None, "Date", 1), (None, "Disease", 1),
        ("DNA", "DNA", 2), ("Disease", "Disease", 1), ("Link", "Link", 1), ("Protein", "Protein", 1),
    ]  # fmt: skip
    assert "Cell predicted as Protein (1)" in section.text


def test_buckets() -> None:
    section = buckets_section(GOLD, PREDICTED, TrainIndex(TRAIN), 0.625)
    published = rows(section.tables["published"], "attribute", "bucket", "support", "predicted", "correct")
    assert [row[1:] for row in published if row[0] == "eLen"] == [
        ("XS", 3, 3, 2),
        ("S", 1, 2, 0),
        ("L", 3, 2, 2),
        ("XL", 1, 1, 1),
    ]
    assert [row[1:] for row in published if row[0] == "discontinuous"] == [("continuous", 7, 8, 5), ("discontinuous", 1, 0, 0)]
    # "T cell receptor" and one "gene" are entities in train.
    assert [row[1:3] for row in published if row[0] == "seen"] == [("seen", 2), ("unseen", 6)]
    assert {row[0] for row in rows(section.tables["equal"], "attribute")} == {
        "eLen",
        "tLen",
        "eCon",
        "eDen",
        "oDen",
        "frequency",
    }
    assert {row[0] for row in rows(buckets_section(GOLD, PREDICTED, None, 0.6).tables["equal"], "attribute")} == {
        "eLen",
        "tLen",
        "eDen",
    }


def test_attributes_by_the_literal_equations() -> None:
    train = TrainIndex(TRAIN)
    for paper in (False, True):
        for section in (
            buckets_section(GOLD[:1], PREDICTED[:1], train, 0.5, use_paper_definition=paper),
            difference_section(GOLD[:1], {"x": [GOLD[:1]]}, ("y", [GOLD[:1]]), train, use_paper_definition=paper),
        ):
            assert ("Eq. 23 of Bundling Learning for NER literally" in section.text) is paper
    consistency = [
        [row[1] for row in rows(buckets_section(GOLD, GOLD, train, 1.0, use_paper_definition=paper).tables["published"],
                                "attribute", "support") if row[0] == "eCon"]
        for paper in (False, True)
    ]  # fmt: skip
    # Strings: Protein "T cell receptor" and DNA "gene" are consistent in train. Types: DNA, Protein and Disease, 1/3 each.
    assert consistency == [[6, 1, 0, 1], [3, 5, 0, 0]]


def test_buckets_of_few_sentences_have_no_interval() -> None:
    few = [Sentence(str(n), ("a",), (entity("X", (0, 1)),)) for n in range(19)]
    short, long = [*few, Sentence("19", ("a",))], [*few, Sentence("19", ("a",), (entity("X", (0, 1)),))]
    for gold, lines in ((short, 0), (long, 1)):
        section = buckets_section(gold, gold, None, 1.0)
        figure = buckets_figure({"eLen": bucket_scores(gold, gold)}, {"eLen": "length"}, 1.0)
        (panel,) = figure.axes
        assert (len(panel.patches), len(panel.collections)) == (1, lines)
        assert [text.get_text() for text in panel.texts] == ["100", "none", "none", "none"]
        low, high = rows(section.tables["published"], "low", "high")[0]
        assert (low, high) == ((1.0, 1.0) if lines else (None, None))


def test_lengths() -> None:
    section = lengths_section(ERRORS, GOLD)
    assert section.tables["entities"].rows == ((1, 3, 3), (2, 1, 2), (3, 3, 2), (5, 1, 1))
    assert section.tables["sentences"].rows == ((3, 1), (4, 2), (5, 1), (7, 1))


def test_data() -> None:
    section = data_section({"train": TRAIN, "gold": GOLD})
    counts = {row[0]: row[1:] for row in section.tables["splits"].rows}
    assert section.tables["splits"].columns == ("count", "train", "gold")
    assert counts["sentences"] == (2, 5)
    assert counts["entities"] == (3, 8)
    assert counts["discontinuous"] == (0, 1)
    assert counts["entity width, max"] == (3, 6)
    assert section.tables["types"].rows[0] == ("DNA", 1, 2)


def test_settings_are_text() -> None:
    table = settings_section({"a": 1, "b": None, "c": [1, 2], "d": True}).tables["settings"]
    assert table.rows == (("a", "1"), ("b", None), ("c", "[1, 2]"), ("d", "True"))


def test_typing() -> None:
    gold = [Sentence("s", ("a", "b"), (entity("X", (0, 1)), entity("Y", (1, 2))))]
    predicted = [Sentence("s", ("a", "b"), (entity("X", (0, 1)), entity("X", (1, 2))))]
    section = typing_section(score_typing(gold, predicted, gold))
    assert section.tables["types"].rows == (
        ("all types", 0.5, 1, 2), ("lookup baseline", 1.0, 2, 2), ("X", 1.0, 1, 1), ("Y", 0.0, 0, 1),
    )  # fmt: skip


def test_differences_of_several_runs_have_deviations() -> None:
    """Bundling Learning, Tables 6 and 7: runs are paired in order."""
    section = difference_section(GOLD, {"other": [GOLD, PREDICTED]}, ("this", [PREDICTED, PREDICTED]))
    row = next(row for row in rows(section.tables["published"], "difference", "deviation") if row[0])
    assert row[1] == pytest.approx(2**0.5 * row[0])  # the differences are twice the mean, and 0
    errors = [row for row in rows(section.tables["errors"], "difference", "deviation") if row[0]]
    assert errors
    assert all(deviation == pytest.approx(2**0.5 * abs(difference)) for difference, deviation in errors)
    single = difference_section(GOLD, {"other": [GOLD]}, ("this", [PREDICTED]))
    assert {row for table in ("published", "errors") for row in rows(single.tables[table], "deviation")} == {(None,)}


def test_differences_to_a_perfect_system() -> None:
    """The F1 of the analysed system for entities of one word is 2/3."""
    section = difference_section(GOLD, {"perfect": [GOLD]}, ("this", [PREDICTED]))
    row = rows(section.tables["published"], "system", "attribute", "bucket", "support", "f1", "baseline_f1", "difference")[0]
    assert row == ("perfect", "eLen", "XS", 3, 1.0, pytest.approx(2 / 3), pytest.approx(1 / 3))
    errors = rows(section.tables["errors"], "system", "error_type", "rate", "baseline_rate", "difference")
    assert errors[0] == ("perfect", "type", 0.0, pytest.approx(1 / 6), pytest.approx(-1 / 6))
    published = {row[1]: row[2:] for row in errors[-2:]}
    assert published == {  # both wrong predictions of "discontinuous" and "nested" that overlap gold; 6 false in all
        "BE-Rate": (0.0, pytest.approx(ERRORS.published_rates["boundary"]), pytest.approx(-1 / 6)),
        "TE-Rate": (0.0, pytest.approx(ERRORS.published_rates["type"]), pytest.approx(-1 / 6)),
    }
    panels = section.figures["errors"].draw.args[0]  # type: ignore[attr-defined]
    assert panels["as published: any overlap"] == (["BE-Rate", "TE-Rate"], {"perfect": [pytest.approx(-1 / 6)] * 2})
    assert count_figures([section]) == 3
    # Differences without an interval are shown, but not those of buckets without gold entities.
    _, cells = section.figures["published"].draw.args[0]["entity length (words)"]  # type: ignore[attr-defined]
    assert cells["perfect"] == pytest.approx([1 / 3, 1.0, 0.2, 0.0])
    first = difference_section(GOLD[:1], {"perfect": [GOLD[:1]]}, ("this", [PREDICTED[:1]]))
    _, cells = first.figures["published"].draw.args[0]["entity length (words)"]  # type: ignore[attr-defined]
    assert cells["perfect"][0] is None


def test_missing_sentences_of_other_systems_are_reported() -> None:
    section = difference_section(GOLD, {"half": [GOLD[:3], GOLD[:2]], "whole": [GOLD]}, ("this", [PREDICTED[:4]]))
    assert section.text.endswith(
        "paired in order. half has no predictions for 3 of the 5 sentences; their entities count as missed."
    )


def test_systems_have_different_names() -> None:
    with pytest.raises(SpanwiseError, match="two systems are named 'this'"):
        difference_section(GOLD, {"this": [GOLD]}, ("this", [PREDICTED]))


def test_all_figures_are_drawn() -> None:
    index = TrainIndex(TRAIN)
    sections = [
        scores_section(evaluate(GOLD, PREDICTED)), errors_section(ERRORS), confusion_section(ERRORS, ["DNA"]),
        buckets_section(GOLD, PREDICTED, index, 0.6), lengths_section(ERRORS, GOLD),
    ]  # fmt: skip
    figures = drawn_figures(sections)
    assert sorted(figures) == [
        "buckets-equal", "buckets-published", "confusion-matrix", "errors-counts", "lengths-entities", "lengths-sentences",
        "scores-types",
    ]  # fmt: skip
    assert all(png.startswith(b"\x89PNG") for png in figures.values())
    assert drawn_figures(sections) == figures, "figures are reproducible"


@pytest.mark.parametrize(
    "predicted", [(), tuple(replace(s, entities=()) for s in GOLD), GOLD], ids=["missing", "empty", "perfect"]
)
def test_figures_of_empty_and_perfect_predictions(predicted: tuple[Sentence, ...]) -> None:
    errors = analyze_errors(GOLD, predicted)
    sections = [
        scores_section(evaluate(GOLD, predicted)), errors_section(errors), confusion_section(errors, []),
        buckets_section(GOLD, predicted, None, 0.0), lengths_section(errors, GOLD),
        difference_section(GOLD, {"x": [PREDICTED]}, ("this", [predicted])),
    ]  # fmt: skip
    assert count_figures(sections) == 10


def test_figures_of_a_corpus_without_entities() -> None:
    plain = [Sentence("s", ("a",))]
    errors = analyze_errors(plain, plain)
    sections = [
        scores_section(evaluate(plain, plain)), errors_section(errors), confusion_section(errors, []),
        buckets_section(plain, plain, None, 0.0), lengths_section(errors, plain), difference_section(plain, {"x": [plain]}, ("this", [plain])),
    ]  # fmt: skip
    assert count_figures(sections) == 8


def test_figures_of_many_types_with_long_names() -> None:
    words = tuple(f"w{number}" for number in range(60))
    sentence = Sentence("s", words, tuple(entity(f"A_type_with_a_very_long_name_{n}", (n, n + 1)) for n in range(60)))
    errors = analyze_errors([sentence], [sentence])
    sections = [scores_section(evaluate([sentence], [sentence])), errors_section(errors), confusion_section(errors, [])]
    assert count_figures(sections) == 3


def test_captions_say_how_many_types_are_drawn() -> None:
    words = tuple(f"w{number}" for number in range(60))
    sentence = Sentence("s", words, tuple(entity(f"T{n}", (n, n + 1)) for n in range(60)))
    errors = analyze_errors([sentence], [sentence])
    sections = (scores_section(evaluate([sentence], [sentence])), errors_section(errors), confusion_section(errors, ["T0"]))
    captions = [plot.caption for section in sections for plot in section.figures.values()]
    limits = [f"Only the first {count} of 60 are drawn; the table has all." for count in (40, 25, 30)]
    assert [caption[-len(limit) :] for caption, limit in zip(captions, limits, strict=True)] == limits
    assert "Only" not in scores_section(evaluate(GOLD, PREDICTED)).figures["types"].caption


def test_shades_of_the_confusion_matrix_are_shares_of_all_gold_entities(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spanwise.analysis.figures.confusion.MAX_TYPES", 1)
    confusion = Confusion(Counter({("A", "A"): 2, ("A", "B"): 1}), missed=Counter(A=1))
    (axes,) = confusion_figure(confusion, ["A", "B"]).axes
    assert axes.collections[0].get_array().compressed().tolist() == [0.5, 0.25], "“A” as “B” is not shown, but counts"


def test_type_names_are_not_math_or_markup() -> None:
    sentence = Sentence("s", ("a", "b"), (entity("$x_1$", (0, 1)), entity("<b>$\\frac", (1, 2))))
    section = scores_section(evaluate([sentence], [sentence]))
    svg = render(section.figures["types"].draw(), "svg").decode()
    assert "$x_1$" in svg
    assert "&lt;b&gt;$\\frac" in svg
    assert INK in svg


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        ((None, None), "flat"), ((0.5, None), "> 50%"), ((None, 7), "≤ 7"), ((0.0, 0.23), "0–23%"), ((16, 31), "17–31"),
        ((37, 152), "38–152"), ((99, 100), "100"), ((999, 12345), "1,000–12,345"), ((12345, None), "> 12,345"),
        ((0.267, 0.3333), "27–33%"), ((0.994, 0.998), "99.4–99.8%"), ((0.98, 0.997), "98–99.7%"), ((1 / 3, 1.0), "33–100%"), ((0.3333, 0.33334), "33.3%"), ((None, 0.0002), "≤ 0.02%"),
    ],
)  # fmt: skip
def test_bucket_ranges(edges: tuple[float | None, float | None], expected: str) -> None:
    assert bucket_range(BucketRange("flat", *edges)) == expected


def test_drawing_does_not_change_matplotlib_settings() -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    assert count_figures([errors_section(ERRORS)])
    assert dict(matplotlib.rcParams) == before
