"""Cosines and projections, checked by hand and against slow references."""

from __future__ import annotations

import sys
from itertools import product

import numpy as np
import pytest

from spanwise.analysis.cosines import OVERLAPS, class_cosines, overlap_cosines, unit_vectors
from spanwise.analysis.projection import pca, project
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Span


def test_pca_matches_the_singular_value_decomposition() -> None:
    vectors = np.random.default_rng(0).normal(size=(12, 5)) @ np.diag((1.0, 4.0, 0.3, 2.0, 0.1))
    centred = vectors - vectors.mean(0)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    projection = pca(vectors)
    for component in range(2):
        expected = left[:, component] * sizes[component]
        actual = projection.points[:, component]
        np.testing.assert_allclose(actual, expected * np.sign(actual @ expected), atol=1e-9)
    assert projection.explained_variance == pytest.approx(tuple(sizes[:2] ** 2 / (sizes**2).sum()))


def test_pca_of_one_dimension_and_of_equal_vectors() -> None:
    np.testing.assert_allclose(abs(pca(np.array([[1.0], [3.0]])).points), [[1, 0], [1, 0]], atol=1e-12)
    points, shares = pca(np.ones((3, 4)))
    assert points.tolist() == [[0, 0]] * 3
    assert shares == (0, 0)


def test_tsne_separates_clusters() -> None:
    generator = np.random.default_rng(0)
    groups = np.concatenate([generator.normal(size=(15, 6)) * 0.1 + 10 * cluster for cluster in range(2)])
    one, other = np.split(project(groups, "tsne", seed=0).points, 2)
    inside = max(np.linalg.norm(points - points.mean(0), axis=1).max() for points in (one, other))
    assert np.linalg.norm(one.mean(0) - other.mean(0)) > 2 * inside


def test_unknown_and_missing_projections_are_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SpanwiseError, match="isomap"):
        project(np.ones((5, 2)), "isomap", seed=0)
    monkeypatch.setitem(sys.modules, "umap", None)
    for count in (2, 5):
        with pytest.raises(SpanwiseError, match="umap-learn"):
            project(np.ones((count, 2)), "umap", seed=0)


def test_class_cosines_by_hand() -> None:
    """A: east and north-east (45 degrees); B: north and west, of various lengths."""
    cosines = class_cosines({"A": np.array([[2.0, 0.0], [3.0, 3.0]]), "B": np.array([[0.0, 0.5], [-1.0, 0.0]])})
    half = 0.5**0.5
    np.testing.assert_allclose(cosines.within, [half, 0.0], atol=1e-12)
    assert cosines.means[0, 1] == pytest.approx((0 - 1 + half - half) / 4)
    assert cosines.mean_within(["A", "B"]) == pytest.approx(half / 2)
    assert cosines.mean_between(["A"], ["B"]) == cosines.mean_between(["A", "B"], ["A", "B"]) == pytest.approx(-0.25)
    assert cosines.mean_between(["A"], ["C"]) is None


def test_class_cosines_match_the_mean_over_all_pairs() -> None:
    generator = np.random.default_rng(1)
    vectors = {name: generator.normal(size=(count, 7)) for name, count in (("A", 5), ("B", 1), ("C", 3), ("D", 0))}
    vectors["A"][2] = 0  # zero vectors have a cosine of 0 with all others
    cosines = class_cosines(vectors)
    assert cosines.classes == ("A", "B", "C")
    for (x, one), (y, other) in product(enumerate("ABC"), repeat=2):
        pairs = [
            float(unit_vectors(vectors[one])[i] @ unit_vectors(vectors[other])[j])
            for i in range(len(vectors[one]))
            for j in range(len(vectors[other]))
            if one != other or i != j
        ]
        if pairs:
            assert cosines.means[x, y] == pytest.approx(np.mean(pairs))
        else:
            assert np.isnan(cosines.means[x, y])


def test_overlap_cosines_by_hand() -> None:
    """The entity is [0, 4); the overlap ratios of the other spans are 4/5, 3/4, 2/4, 1/4, 1/5 and 0."""
    spans = np.array([(0, 4), (0, 5), (1, 4), (2, 4), (3, 4), (3, 5), (4, 6)])
    vectors = np.array([(1, 0), (1, 0), (3, 4), (0, 2), (4, 3), (-1, 0), (0, -1)], float)
    entities = np.array([True, *[False] * 6])
    level, cosine = overlap_cosines(spans, vectors, entities)
    assert [OVERLAPS[index] for index in level] == [
        "above 0.75",
        "0.5 to 0.75",
        "0.25 to 0.5",
        "up to 0.25",
        "up to 0.25",
        "none",
    ]
    np.testing.assert_allclose(cosine, [1, 0.6, 0, 0.8, -1, 0], atol=1e-12)


def test_overlap_cosines_match_a_direct_computation() -> None:
    generator = np.random.default_rng(2)
    spans = np.array([(start, end) for start in range(7) for end in range(start + 1, 8)])
    vectors, entities = generator.normal(size=(len(spans), 3)), generator.random(len(spans)) < 0.3
    expected = []
    for one in np.flatnonzero(entities):
        for other in range(len(spans)):
            if one != other:
                a, b = (set(range(*Span(*spans[index].tolist()))) for index in (one, other))
                ratio = len(a & b) / len(a | b)
                level = 0 if not ratio else next(index for index, top in enumerate((0.25, 0.5, 0.75, 1.0), 1) if ratio <= top)
                unit = unit_vectors(vectors)
                expected.append((level, unit[one] @ unit[other]))
    level, cosine = overlap_cosines(spans, vectors, entities)
    assert level.tolist() == [row[0] for row in expected]
    np.testing.assert_allclose(cosine, [row[1] for row in expected], atol=1e-12)
