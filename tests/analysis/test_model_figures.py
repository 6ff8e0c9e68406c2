"""Figures with many types, long names, or few and equal values: drawn without overlapping labels."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.figure import Figure

from spanwise.analysis.figures.confusion import confusion_figure
from spanwise.analysis.figures.cosines import cosines_figure
from spanwise.analysis.figures.losses import losses_figure
from spanwise.analysis.figures.norms import norms_figure
from spanwise.analysis.figures.overlaps import overlaps_figure
from spanwise.analysis.figures.scatter import scatter_figure
from spanwise.analysis.figures.style import render
from spanwise.analysis.figures.violin import FoundAndMissed, violin_figure
from spanwise.analysis.figures.volcano import volcano_figure
from spanwise.analysis.projection import pca
from spanwise.evaluation.confusion import Confusion

MANY = [f"A_type_with_a_rather_long_name_{number}" for number in range(29)]


@pytest.fixture(autouse=True)
def no_warning() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def overlapping_labels(figure: Figure) -> list[tuple[str, str]]:
    """Pairs of neighbouring tick labels that overlap."""
    render(figure, "png")
    pairs = []
    for axes in figure.axes:
        for labels in (axes.get_xticklabels(), axes.get_yticklabels()):
            boxes = [(label.get_text(), label.get_window_extent()) for label in labels if label.get_text()]
            pairs += [(a, b) for (a, one), (b, other) in pairwise(boxes) if one.overlaps(other)]
    return pairs


def test_many_types_with_long_names() -> None:
    generator = np.random.default_rng(0)
    unit = generator.normal(size=(30, 5))
    figures = [
        cosines_figure([*MANY, "NONE"], np.corrcoef(unit)),
        norms_figure({name: generator.random(4) for name in MANY}),
        violin_figure({name: FoundAndMissed(generator.random(9), generator.random(7)) for name in MANY}),
    ]
    for figure in figures:
        assert not overlapping_labels(figure)


@pytest.mark.parametrize(
    "types", [["protein", "DNA", "RNA", "cell_line", "cell_type"], ["Place", "Person name", "Organization"]]
)
def test_names_of_few_types_are_slanted_before_they_touch(types: list[str]) -> None:
    for figure in (confusion_figure(Confusion(), types), cosines_figure(types, np.eye(len(types)))):
        is_slanted = any(label.get_rotation() for label in figure.axes[0].get_xticklabels())
        assert is_slanted or not overlapping_labels(figure)


def test_rare_types_share_a_legend_entry() -> None:
    labels = [name for number, name in enumerate(MANY) for _ in range(40 - number)]
    projection = pca(np.random.default_rng(0).normal(size=(len(labels), 4)))
    figure = scatter_figure(projection, labels, "component", is_found=np.arange(len(labels)) % 2 == 0)
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert len(names) == 24 + 2
    assert names[-3:] == ["other types", "found", "missed"]


@pytest.mark.parametrize("count", [1000, 1001])
def test_many_points_are_rasterised_in_svg(count: int) -> None:
    projection = pca(np.random.default_rng(0).normal(size=(count, 2)))
    assert (b"<image" in render(scatter_figure(projection, ["X"] * count, "component"), "svg")) == (count > 1000)


def test_violins_of_few_and_equal_values() -> None:
    none = np.empty(0)
    violin_rows = {
        "few": FoundAndMissed(np.array([0.1]), none),
        "equal": FoundAndMissed(np.full(20, 1.0), np.full(9, 0.0)),
        "no": FoundAndMissed(none, none),
    }
    assert not overlapping_labels(violin_figure(violin_rows))


def test_volcano_without_errors() -> None:
    zero = np.zeros(3)
    tags = {"Up": np.zeros(3, bool), "Stable": np.ones(3, bool), "Down": np.zeros(3, bool)}
    figure = volcano_figure(zero, zero, tags)
    assert not overlapping_labels(figure)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["Stable (3)"]


def test_logarithmic_axes_have_plain_numbers() -> None:
    ratio, desire = np.array([0.0, 1.0, 9.0]), np.array([0.02, 0.05, 4000.0])
    wide = volcano_figure(ratio, desire, {"Up": ratio > 0, "Stable": ratio == 0})
    narrow = losses_figure([1, 2], {"loss": [4.0, 0.1]}, [0.1, 0.2], "dev F1")
    for figure in (wide, narrow):
        assert not overlapping_labels(figure)
        low, high = figure.axes[0].get_ylim()
        shown = [label.get_text() for label in figure.axes[0].get_yticklabels() if low <= label.get_position()[1] <= high]
        assert len(shown) >= 3
        assert all(float(number) > 0 for number in shown)


def test_losses_of_one_epoch_and_with_missing_values() -> None:
    one = losses_figure([1], {"loss": [0.5]}, [0.0], "dev F1")
    later = losses_figure([1, 2], {"loss": [900.0, 0.5], "links": [None, 0.1]}, [0.2, 0.1], "dev F1")
    for figure, lines in ((one, 1), (later, 2)):
        render(figure, "png")
        assert len(figure.axes[0].get_lines()) == lines


def test_empty_overlap_levels() -> None:
    figure = overlaps_figure(("none", "some"), (np.array([0.1, 0.2]), np.empty(0)))
    render(figure, "png")
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["none\n2 pairs", "some\n0 pairs"]
