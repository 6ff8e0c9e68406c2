"""Tables of span vectors and of the classifier's weights (DSpERT, Tables 4 and 5), without figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from spanwise.analysis.cosines import LEVELS, OVERLAPS, ClassCosines, class_cosines
from spanwise.analysis.sample import NO_ENTITY
from spanwise.analysis.section import Cell, Table
from spanwise.analysis.span_sample import SpanSample
from spanwise.models.model import Model

Vectors = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class VectorMeasures:
    """Norms and cosines of the span vectors of a sample by class, and cosines of the classifier's weights."""

    types: list[str]  # the most frequent first
    norms: Vectors
    cosines: ClassCosines
    weight_cosines: ClassCosines
    tables: dict[str, Table]


def measure_vectors(model: Model, sample: SpanSample, class_weights: Tensor) -> VectorMeasures:
    """Measure the span vectors of a sample and the weights of the layer that classifies them."""
    types = sorted(set(sample.types), key=lambda name: (-sample.types.count(name), name))
    labels = np.array(sample.types)
    classes: dict[str, npt.NDArray[Any]] = {type: sample.vectors[labels == type] for type in types}
    if len(sample.other_vectors):
        classes[NO_ENTITY] = sample.other_vectors
    weights = _weights_by_class(model, class_weights, types)
    cosines, weight_cosines = class_cosines(classes), class_cosines(weights)
    norms = {name: np.linalg.norm(vectors, axis=1) for name, vectors in classes.items()}
    weight_norms = tuple((name, float(np.linalg.norm(row))) for name, row in weights.items())
    tables = {
        "summary": _summary(classes, cosines, weights),
        "classes": _class_table(cosines, norms),
        "cosines": _matrix(cosines, "Mean cosine of span vectors"),
        "weights": Table(("class", "norm"), weight_norms, "Norm of the classifier's weights"),
        "weight_cosines": _matrix(weight_cosines, "Cosine of the classifier's weights"),
    }
    if any(len(values) for values in sample.cosines[1:]):
        tables["overlaps"] = _overlap_table(sample)
    return VectorMeasures(types, norms, cosines, weight_cosines, tables)


def _weights_by_class(model: Model, weights: Tensor, types: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
    """Return the classifier's weights for each class, [1, d] each, starting with ``types``."""
    names = model.labels.entities if model.needs_spans else (*model.labels.entities, NO_ENTITY)
    rows = dict(zip(names, weights.detach().float().cpu().numpy()[:, None], strict=True))
    return {name: rows[name] for name in dict.fromkeys((*types, *names)) if name in rows}


def _summary(classes: Vectors, cosines: ClassCosines, weights: Vectors) -> Table:
    """Return the rows of the paper's Table 5."""
    types = [name for name in classes if name != NO_ENTITY]
    mean_norm = float(np.linalg.norm(np.concatenate([classes[type] for type in types]), axis=1).mean())
    rows: list[tuple[Cell, ...]] = [
        ("span vectors", "mean norm of entities", mean_norm),
        ("span vectors", "cosine within a type", cosines.mean_within(types)),
        ("span vectors", "cosine between types", cosines.mean_between(types, types)),
        ("span vectors", "cosine between types and other spans", cosines.mean_between(types, [NO_ENTITY])),
    ]
    weight_types = [name for name in weights if name != NO_ENTITY]
    norms = np.linalg.norm(np.concatenate(list(weights.values())), axis=1)
    rows += [
        ("weights", "mean norm", float(norms.mean())),
        ("weights", "absolute cosine", absolute_cosine(weights, list(combinations(weights, 2)))),
        ("weights", "absolute cosine between types", absolute_cosine(weights, list(combinations(weight_types, 2)))),
    ]
    if NO_ENTITY in weights:
        pairs = [(type, NO_ENTITY) for type in weight_types]
        rows.append(("weights", f"absolute cosine between types and {NO_ENTITY}", absolute_cosine(weights, pairs)))
    return Table(("of", "measure", "value"), tuple(rows), "Summary")


def absolute_cosine(weights: Vectors, pairs: Sequence[tuple[str, str]]) -> float | None:
    """Return the mean absolute cosine of the weights [1, d] of pairs of classes; None without pairs.

    >>> rows = {"A": np.array([[1.0, 0.0]]), "B": np.array([[-2.0, 0.0]]), "C": np.array([[0.0, 1.0]])}
    >>> absolute_cosine(rows, [("A", "B"), ("A", "C")])
    0.5
    """
    cosines = class_cosines(weights)
    values = [abs(cosines.means[cosines.classes.index(first), cosines.classes.index(second)]) for first, second in pairs]
    return float(np.mean(values)) if values else None


def _class_table(cosines: ClassCosines, norms: Vectors) -> Table:
    rows = (
        (name, len(values), float(values.mean()), float(values.std()), None if np.isnan(within) else float(within))
        for (name, values), within in zip(norms.items(), cosines.within, strict=True)
    )
    return Table(("class", "spans", "mean_norm", "sd_of_norms", "cosine_within"), tuple(rows), "Classes")


def _matrix(cosines: ClassCosines, title: str) -> Table:
    rows = (
        (name, *(None if np.isnan(mean) else float(mean) for mean in row))
        for name, row in zip(cosines.classes, cosines.means, strict=True)
    )
    return Table(("class", *cosines.classes), tuple(rows), title)


def _overlap_table(sample: SpanSample) -> Table:
    """Return the rows for all ``OVERLAPS``, then for the three levels of the paper's Table 4."""
    rows: list[tuple[Cell, ...]] = []
    levels = {name: (index,) for index, name in enumerate(OVERLAPS)} | LEVELS
    for name, indices in levels.items():
        values = np.concatenate([sample.cosines[index] for index in indices])
        numbers = (float(values.mean()), float(values.std())) if len(values) else (None, None)
        rows.append((name, len(values), *numbers))
    return Table(("overlap", "pairs", "mean_cosine", "sd"), tuple(rows), "Cosine by overlap")
