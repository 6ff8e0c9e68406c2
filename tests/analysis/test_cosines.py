"""Cosines, norms and projections against small examples worked by hand and slow versions."""

from __future__ import annotations

import sys
from itertools import product

import numpy as np
import pytest

from spanwise.analysis.cosines import OVERLAPS, class_cosines, overlap_cosines, units
from spanwise.analysis.projection import pca, projected
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Span


def test_principal_components_are_those_of_the_singular_value_decomposition() -> None:
    vectors = np.random.default_rng(0).normal(size=(12, 5)) @ np.diag((1.0, 4.0, 0.3, 2.0, 0.1))
    centred = vectors - vectors.mean(0)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    plane = pca(vectors)
    for component in range(2):
        expected = left[:, component] * sizes[component]
        found = plane.points[:, component]
        np.testing.assert_allclose(found, expected * np.sign(found @ expected), atol=1e-9)
    assert plane.shares == pytest.approx(tuple(sizes[:2] ** 2 / (sizes**2).sum()))


def test_vectors_of_one_component_and_equal_vectors_are_points_too() -> None:
    np.testing.assert_allclose(abs(pca(np.array([[1.0], [3.0]])).points), [[1, 0], [1, 0]], atol=1e-12)
    points, shares = pca(np.ones((3, 4)))
    assert points.tolist() == [[0, 0]] * 3
    assert shares == (0, 0)


def test_neighbours_are_kept_together_by_tsne() -> None:
    generator = np.random.default_rng(0)
    groups = np.concatenate([generator.normal(size=(15, 6)) * 0.1 + 10 * place for place in range(2)])
    one, other = np.split(projected(groups, "tsne", seed=0).points, 2)
    inside = max(np.linalg.norm(points - points.mean(0), axis=1).max() for points in (one, other))
    assert np.linalg.norm(one.mean(0) - other.mean(0)) > 2 * inside


def test_projections_that_are_not_known_or_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SpanwiseError, match="isomap"):
        projected(np.ones((5, 2)), "isomap", seed=0)
    monkeypatch.setitem(sys.modules, "umap", None)
    for few_or_many in (2, 5):
        with pytest.raises(SpanwiseError, match="umap-learn"):
            projected(np.ones((few_or_many, 2)), "umap", seed=0)


def test_cosines_of_four_vectors_by_hand() -> None:
    """A: east and north-east (45 degrees); B: north and west. Lengths do not matter."""
    found = class_cosines({"A": np.array([[2.0, 0.0], [3.0, 3.0]]), "B": np.array([[0.0, 0.5], [-1.0, 0.0]])})
    half = 0.5**0.5
    np.testing.assert_allclose(found.within, [half, 0.0], atol=1e-12)
    assert found.means[0, 1] == pytest.approx((0 - 1 + half - half) / 4)
    assert found.mean_within(["A", "B"]) == pytest.approx(half / 2)
    assert found.mean_between(["A"], ["B"]) == found.mean_between(["A", "B"], ["A", "B"]) == pytest.approx(-0.25)
    assert found.mean_between(["A"], ["C"]) is None


def test_class_cosines_are_means_over_all_pairs() -> None:
    generator = np.random.default_rng(1)
    vectors = {name: generator.normal(size=(count, 7)) for name, count in (("A", 5), ("B", 1), ("C", 3), ("D", 0))}
    vectors["A"][2] = 0  # has no direction: a cosine of 0 with everything
    found = class_cosines(vectors)
    assert found.classes == ("A", "B", "C")
    for (x, one), (y, other) in product(enumerate("ABC"), repeat=2):
        pairs = [
            float(units(vectors[one])[i] @ units(vectors[other])[j])
            for i in range(len(vectors[one]))
            for j in range(len(vectors[other]))
            if one != other or i != j
        ]
        if pairs:
            assert found.means[x, y] == pytest.approx(np.mean(pairs))
        else:
            assert np.isnan(found.means[x, y])


def test_overlaps_by_hand() -> None:
    """The entity is [0, 4); beside it stand spans with 4/5, 3/4, 2/4, 1/4, 1/5 and none of their words in common."""
    spans = np.array([(0, 4), (0, 5), (1, 4), (2, 4), (3, 4), (3, 5), (4, 6)])
    vectors = np.array([(1, 0), (1, 0), (3, 4), (0, 2), (4, 3), (-1, 0), (0, -1)], float)
    entities = np.array([True, *[False] * 6])
    level, cosine = overlap_cosines(spans, vectors, entities)
    assert [OVERLAPS[at] for at in level] == ["above 0.75", "0.5 to 0.75", "0.25 to 0.5", "up to 0.25", "up to 0.25", "none"]
    np.testing.assert_allclose(cosine, [1, 0.6, 0, 0.8, -1, 0], atol=1e-12)


def test_overlaps_of_all_pairs_of_entities_and_spans() -> None:
    generator = np.random.default_rng(2)
    spans = np.array([(start, end) for start in range(7) for end in range(start + 1, 8)])
    vectors, entities = generator.normal(size=(len(spans), 3)), generator.random(len(spans)) < 0.3
    expected = []
    for one in np.flatnonzero(entities):
        for other in range(len(spans)):
            if one != other:
                a, b = (set(range(*Span(*spans[place].tolist()))) for place in (one, other))
                ratio = len(a & b) / len(a | b)
                level = 0 if not ratio else next(at for at, top in enumerate((0.25, 0.5, 0.75, 1.0), 1) if ratio <= top)
                unit = units(vectors)
                expected.append((level, unit[one] @ unit[other]))
    level, cosine = overlap_cosines(spans, vectors, entities)
    assert level.tolist() == [row[0] for row in expected]
    np.testing.assert_allclose(cosine, [row[1] for row in expected], atol=1e-12)
