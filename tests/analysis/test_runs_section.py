"""Means and deviations over runs."""

from __future__ import annotations

from spanwise.analysis.report import report
from spanwise.analysis.runs_section import runs_section
from spanwise.analysis.section import Section, Table


def run(value: float, **others: Table) -> list[Section]:
    numbers = Table(("type", "f1"), (("X", value),), percentages=("f1",))
    points = Table(("type", "x", "y"), (("X", value, -value),))
    return [Section("scores", "Scores", "", {"types": numbers, "pca": points, **others})]


def test_points_of_projections_are_not_averaged() -> None:
    section = runs_section([run(0.5), run(0.7)])
    assert list(section.tables) == ["scores-types"]
    assert section.tables["scores-types"].columns == ("type", "f1", "f1_sd")
    assert "<td>X</td><td class=n>60.00</td><td class=n>14.14</td>" in report("title", {}, [section], {})


def test_a_table_that_a_run_does_not_have_is_not_averaged() -> None:
    extra = [Table(("type", "support"), (("X", number),)) for number in (1, 2)]
    section = runs_section([run(0.5, extra=extra[0]), run(0.6, extra=extra[1]), run(0.7)])
    assert list(section.tables) == ["scores-types"]
