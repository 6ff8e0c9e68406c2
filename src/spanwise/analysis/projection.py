"""Vectors on a plane: by principal components, or by methods that keep neighbours together."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spanwise.core.errors import SpanwiseError, unknown_name

try:
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE
except ImportError:
    raise SpanwiseError("projections need scikit-learn: pip install 'spanwise[analysis]'") from None

PROJECTIONS = {"pca": "component", "tsne": "t-SNE", "umap": "UMAP"}  # and what their axes are called


class Plane(NamedTuple):
    """Points [n, 2] and, of principal components, the share of the variance that each of the two explains."""

    points: npt.NDArray[np.float64]
    shares: tuple[float, float] | None = None


def pca(vectors: npt.NDArray[Any]) -> Plane:
    """The first two principal components, the larger first.

    >>> plane = pca(np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0], [2.0, 1.0]]))
    >>> abs(plane.points).round(9).tolist(), plane.shares
    ([[1.0, 0.5], [1.0, 0.5], [1.0, 0.5], [1.0, 0.5]], (0.8, 0.2))
    """
    count = min(2, *vectors.shape)
    # Two of thousands of components: the others need not be computed, where there are any.
    fitted = PCA(count, svd_solver="arpack" if min(vectors.shape) > 2 else "full", random_state=0)
    points, shares = np.zeros((len(vectors), 2)), [0.0, 0.0]
    if np.ptp(vectors, axis=0).any():  # all the same, they have no components
        points[:, :count] = fitted.fit_transform(vectors.astype(np.float64))
        shares[:count] = fitted.explained_variance_ratio_.tolist()
    return Plane(points, (shares[0], shares[1]))


def check_projection(method: str) -> None:
    """Whether a method is known and installed: asked before the model is, which may have nothing to project."""
    if method not in PROJECTIONS:
        raise unknown_name("projection", method, PROJECTIONS)
    if method == "umap" and find_spec("umap") is None:  # not imported: that takes seconds
        raise SpanwiseError("this projection needs UMAP: pip install umap-learn")


def projected(vectors: npt.NDArray[Any], method: str, seed: int) -> Plane:
    """By "pca", "tsne" or "umap"."""
    check_projection(method)
    if method == "pca" or len(vectors) < 4:
        return pca(vectors)
    if method == "tsne":
        perplexity = min(30.0, (len(vectors) - 1) / 3)
        return Plane(TSNE(perplexity=perplexity, init="pca", random_state=seed).fit_transform(vectors).astype(np.float64))
    from umap import UMAP

    fitted = UMAP(n_neighbors=min(15, len(vectors) - 1), random_state=seed, n_jobs=1)
    return Plane(np.asarray(fitted.fit_transform(vectors), np.float64))
