"""Span vectors before the last layer, and the weights of that layer (DSpERT, section 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from spanwise.analysis.cosines import LEVELS, OVERLAPS, ClassCosines, class_cosines
from spanwise.analysis.figures.cosines import cosines_figure
from spanwise.analysis.figures.norms import norms_figure
from spanwise.analysis.figures.overlaps import overlaps_figure
from spanwise.analysis.figures.scatter import scatter_figure
from spanwise.analysis.projection import PROJECTIONS, Projection, pca, project
from spanwise.analysis.sample import NO_ENTITY, CorrectEntities
from spanwise.analysis.section import Cell, Plot, Section, Table
from spanwise.analysis.span_sample import SpanSample, span_sample
from spanwise.core.types import Sentence
from spanwise.heads import head_values
from spanwise.heads.abilities import HasSpanVectors, find_ability
from spanwise.models.model import Model

Vectors = Mapping[str, npt.NDArray[Any]]

CAPTIONS = {
    "norms": "Length of the span vectors of each class: mean (point) plus and minus one standard deviation (line).",
    "cosines": (
        "Mean cosine of span vectors, within classes (diagonal) and between them. Classes are easy to separate if the "
        "diagonal is high and the other cells are low."
    ),
    "weights": (
        "Cosine of the classifier's weight vectors of two classes: blue is positive, red negative. Classes with a high cosine "
        "get similar scores."
    ),
    "overlaps": (
        "Cosine of an entity and another span of its sentence, by the overlap of the two spans: mean (point) and the range "
        "between the quartiles (bar). High values on the right mean that the model hardly distinguishes overlapping spans."
    ),
    "pca_all": (
        "Vectors of entities and of random other spans on their first two principal components. The less the two groups mix, "
        "the easier it is to detect entities."
    ),
}


def vector_section(
    model: Model, gold: Sequence[Sentence], correct: CorrectEntities, *, context: Sequence[Sentence] = (),
    projection: str = "pca", seed: int = 0,
) -> Section:  # fmt: skip
    """Analyse norms, cosines and projections of span vectors, and the classifier's weights."""
    title = "Span vectors"
    head = find_ability(model.head, HasSpanVectors)
    if head is None:
        kind = head_values(model.head.prediction_head)["kind"]
        return Section("vectors", title, f"Not available: the head {kind} has no span vectors that a linear layer classifies.")
    sample = span_sample(model, gold, correct, context=context, seed=seed)
    if len(sample.vectors) < 3:
        return Section("vectors", title, "Not available: fewer than three gold entities have a span vector.")
    types = sorted(set(sample.types), key=lambda name: (-sample.types.count(name), name))
    labels = np.array(sample.types)
    classes: dict[str, npt.NDArray[Any]] = {type: sample.vectors[labels == type] for type in types}
    if len(sample.other_vectors):
        classes[NO_ENTITY] = sample.other_vectors
    weights = _weights_by_class(model, head.class_weights, types)
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
    figures = {
        "norms": Plot(lambda: norms_figure(norms), CAPTIONS["norms"]),
        "cosines": Plot(lambda: cosines_figure(cosines.classes, cosines.means), CAPTIONS["cosines"]),
        "weights": Plot(lambda: cosines_figure(weight_cosines.classes, weight_cosines.means), CAPTIONS["weights"]),
    }
    if any(len(values) for values in sample.cosines[1:]):
        tables["overlaps"] = _overlap_table(sample)
        figures["overlaps"] = Plot(lambda: overlaps_figure(OVERLAPS, sample.cosines), CAPTIONS["overlaps"])
    for method in dict.fromkeys(("pca", projection)):
        _add_projection(method, sample, tables, figures, seed)
    return Section("vectors", title, _text(sample, types, cosines), tables, figures)


def _weights_by_class(model: Model, weights: Tensor, types: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
    """Return the classifier's weights for each class, [1, d] each, starting with ``types``."""
    names = model.labels.entities if model.needs_spans else (*model.labels.entities, NO_ENTITY)
    rows = dict(zip(names, weights.detach().float().cpu().numpy()[:, None], strict=True))
    return {name: rows[name] for name in dict.fromkeys((*types, *names)) if name in rows}


def _add_projection(
    method: str, sample: SpanSample, tables: dict[str, Table], figures: dict[str, Plot], seed: int
) -> None:  # fmt: skip
    """Draw entities by type (the paper's Figure 4), and by PCA also together with other spans."""
    projection, axis = project(sample.vectors, method, seed), PROJECTIONS[method]
    name = "the first two principal components" if method == "pca" else f"a plane by {axis}"
    figures[method] = Plot(
        lambda: scatter_figure(projection, sample.types, axis, is_found=sample.is_correct),
        f"Vectors of gold entities on {name}, coloured by type. Filled triangles were predicted correctly, hollow circles were "
        "missed. Misses between two clusters are ambiguous for the model; misses inside a cluster of another type are confused "
        "with it.",
    )
    tables[method] = scatter_table(projection, sample.types, sample.is_correct, f"Points of the {method.upper()} figure")
    if method == "pca" and len(sample.other_vectors):
        all_vectors = pca(np.concatenate((sample.vectors, sample.other_vectors)))
        labels = ["entity"] * len(sample.vectors) + [NO_ENTITY] * len(sample.other_vectors)
        figures["pca_all"] = Plot(lambda: scatter_figure(all_vectors, labels, axis, grey=NO_ENTITY), CAPTIONS["pca_all"])
        rows = tuple((label, x, y) for label, (x, y) in zip(labels, all_vectors.points.tolist(), strict=True))
        tables["pca_all"] = Table(("class", "x", "y"), rows, "Points of the PCA figure with other spans")


def scatter_table(projection: Projection, types: Sequence[str], is_found: npt.NDArray[np.bool_], title: str) -> Table:
    rows = zip(types, is_found.tolist(), *projection.points.T.tolist(), strict=True)
    return Table(("type", "found", "x", "y"), tuple((type, int(correct), x, y) for type, correct, x, y in rows), title)


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


def _text(sample: SpanSample, types: Sequence[str], cosines: ClassCosines) -> str:
    sentences = [
        f"These are the vectors that the last layer classifies, for {len(sample.vectors):,} gold entities in "
        f"{sample.sentences:,} sentences."
    ]
    means = [
        ("within a type", cosines.mean_within(types)),
        ("between types", cosines.mean_between(types, types)),
        ("between entities and other spans", cosines.mean_between(types, [NO_ENTITY])),
    ]
    known = [f"{value:.2f} {pairs}" for pairs, value in means if value is not None]
    if known:
        sentences.append(
            f"Their mean cosine is {', '.join(known)}. The higher the first number is above the others, the easier the classes "
            "are to separate."
        )
    disjoint, strong = (
        np.concatenate([sample.cosines[index] for index in LEVELS[name]]) for name in ("no overlap", "strong overlap")
    )
    if len(disjoint) and len(strong):
        sentences.append(
            f"The mean cosine of an entity and another span of its sentence is {disjoint.mean():.2f} if they share no word and "
            f"{strong.mean():.2f} if they overlap by more than half. A large difference means that overlapping spans are hard "
            "to distinguish."
        )
    return " ".join(sentences)
