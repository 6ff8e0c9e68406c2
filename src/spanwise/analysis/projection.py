"""Project vectors onto a plane by PCA, t-SNE or UMAP."""

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
    raise SpanwiseError("projections require scikit-learn; run pip install 'spanwise[analysis]'") from None

PROJECTIONS = {"pca": "component", "tsne": "t-SNE", "umap": "UMAP"}  # names and axis labels


class Projection(NamedTuple):
    """Points [n, 2] and, for PCA, the share of the variance that each component explains."""

    points: npt.NDArray[np.float64]
    explained_variance: tuple[float, float] | None = None


def pca(vectors: npt.NDArray[Any]) -> Projection:
    """Project onto the first two principal components.

    >>> projection = pca(np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0], [2.0, 1.0]]))
    >>> abs(projection.points).round(9).tolist(), projection.explained_variance
    ([[1.0, 0.5], [1.0, 0.5], [1.0, 0.5], [1.0, 0.5]], (0.8, 0.2))
    """
    count = min(2, *vectors.shape)
    # ARPACK computes only the requested components, but not all of them.
    fitted = PCA(count, svd_solver="arpack" if min(vectors.shape) > 2 else "full", random_state=0)
    points, shares = np.zeros((len(vectors), 2)), [0.0, 0.0]
    if np.ptp(vectors, axis=0).any():  # equal vectors have no components
        points[:, :count] = fitted.fit_transform(vectors.astype(np.float64))
        shares[:count] = fitted.explained_variance_ratio_.tolist()
    return Projection(points, (shares[0], shares[1]))


def check_projection(method: str) -> None:
    """Raise an error if a method is unknown or not installed."""
    if method not in PROJECTIONS:
        raise unknown_name("projection", method, PROJECTIONS)
    if method == "umap" and find_spec("umap") is None:  # importing it takes seconds
        raise SpanwiseError("the projection umap requires UMAP; run pip install umap-learn")


def project(vectors: npt.NDArray[Any], method: str, seed: int) -> Projection:
    """Project by "pca", "tsne" or "umap"; fewer than four vectors are always projected by PCA."""
    check_projection(method)
    if method == "pca" or len(vectors) < 4:
        return pca(vectors)
    if method == "tsne":
        perplexity = min(30.0, (len(vectors) - 1) / 3)
        return Projection(TSNE(perplexity=perplexity, init="pca", random_state=seed).fit_transform(vectors).astype(np.float64))
    from umap import UMAP

    fitted = UMAP(n_neighbors=min(15, len(vectors) - 1), random_state=seed, n_jobs=1)
    return Projection(np.asarray(fitted.fit_transform(vectors), np.float64))
