"""How a model sees spans: the vectors that its last layer classifies, and that layer's weights (DSpERT, section 5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from spanwise.analysis.cosines import LEVELS, OVERLAPS, ClassCosines, class_cosines
from spanwise.analysis.figures.cosines import cosines_figure
from spanwise.analysis.figures.norms import norms_figure
from spanwise.analysis.figures.overlaps import overlaps_figure
from spanwise.analysis.figures.points import points_figure
from spanwise.analysis.part import Cell, Part, Table
from spanwise.analysis.projection import PROJECTIONS, pca, projected
from spanwise.analysis.sample import NONE, Predictions
from spanwise.analysis.span_sample import SpanSample, span_sample
from spanwise.core.types import Sentence
from spanwise.heads import head_values
from spanwise.models.model import Model

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Vectors = Mapping[str, npt.NDArray[Any]]


def representations_part(
    model: Model, gold: Sequence[Sentence], found: Predictions, *, context: Sequence[Sentence] = (),
    projection: str = "pca", seed: int = 0,
) -> Part:  # fmt: skip
    """Norms, cosines and projections of span vectors, and of the classifier's templates."""
    title = "Span vectors"
    if model.head.templates is None:
        kind = head_values(model.head.prediction_head)["kind"]
        text = f"The head {kind} has no vector for each span that a linear layer would classify: there is nothing to draw."
        return Part("vectors", title, text)
    sample = span_sample(model, gold, found, context=context, seed=seed)
    if len(sample.vectors) < 3:
        return Part("vectors", title, "Too few gold entities have a vector for anything to be said of them.")
    types = sorted(set(sample.types), key=lambda kind: (-sample.types.count(kind), kind))
    kinds = np.array(sample.types)
    classes: dict[str, npt.NDArray[Any]] = {kind: sample.vectors[kinds == kind] for kind in types}
    if len(sample.others):
        classes[NONE] = sample.others
    weights = _template_rows(model, model.head.templates, types)
    cosines, between = class_cosines(classes), class_cosines(weights)
    norms = {name: np.linalg.norm(own, axis=1) for name, own in classes.items()}
    tables = {
        "summary": _summary(classes, cosines, weights),
        "classes": _classes(cosines, norms),
        "cosines": _matrix(cosines),
        "templates": Table(("class", "norm"), tuple((name, float(np.linalg.norm(row))) for name, row in weights.items())),
        "template_cosines": _matrix(between),
    }
    figures: dict[str, Callable[[], Figure]] = {
        "norms": lambda: norms_figure(norms),
        "cosines": lambda: cosines_figure(cosines.classes, cosines.means),
        "templates": lambda: cosines_figure(between.classes, between.means),
    }
    if any(len(own) for own in sample.cosines[1:]):
        tables["overlaps"] = _overlaps(sample)
        figures["overlaps"] = lambda: overlaps_figure(OVERLAPS, sample.cosines)
    for method in dict.fromkeys(("pca", projection)):
        _project(method, sample, tables, figures, seed)
    return Part("vectors", title, _text(sample, types, cosines), tables, figures)


def _template_rows(model: Model, templates: Tensor, types: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
    """The classifier's weights for each class, [1, d] each; first those of the ``types``, in their order."""
    names = model.labels.entities if model.needs_spans else (*model.labels.entities, NONE)
    rows = dict(zip(names, templates.detach().float().cpu().numpy()[:, None], strict=True))
    return {name: rows[name] for name in dict.fromkeys((*types, *names)) if name in rows}


def _project(
    method: str, sample: SpanSample, tables: dict[str, Table], figures: dict[str, Callable[[], Figure]], seed: int
) -> None:
    """Entities by type, as figure 4 of the paper; and beside other spans, to see whether entities stand apart at all."""
    plane, axis = projected(sample.vectors, method, seed), PROJECTIONS[method]
    figures[method] = lambda: points_figure(plane, sample.types, axis, found=sample.found)
    rows = zip(sample.types, sample.found.tolist(), *plane.points.T.tolist(), strict=True)
    tables[method] = Table(("type", "found", "x", "y"), tuple((kind, int(found), x, y) for kind, found, x, y in rows))
    if method == "pca" and len(sample.others):
        whole = pca(np.concatenate((sample.vectors, sample.others)))
        kinds = ["entity"] * len(sample.vectors) + [NONE] * len(sample.others)
        figures["pca_all"] = lambda: points_figure(whole, kinds, axis, plain=NONE)
        tables["pca_all"] = Table(
            ("kind", "x", "y"), tuple((kind, x, y) for kind, (x, y) in zip(kinds, whole.points.tolist(), strict=True))
        )


def _summary(classes: Vectors, cosines: ClassCosines, weights: Vectors) -> Table:
    """The rows of the paper's table 5."""
    types = [name for name in classes if name != NONE]
    length = float(np.linalg.norm(np.concatenate([classes[kind] for kind in types]), axis=1).mean())
    rows: list[tuple[Cell, ...]] = [
        ("vectors", "mean norm of entities", length),
        ("vectors", "cosine within a type", cosines.mean_within(types)),
        ("vectors", "cosine between types", cosines.mean_between(types, types)),
        ("vectors", "cosine between types and other spans", cosines.mean_between(types, [NONE])),
    ]
    kinds = [name for name in weights if name != NONE]
    norms = np.linalg.norm(np.concatenate(list(weights.values())), axis=1)
    rows += [
        ("templates", "mean norm", float(norms.mean())),
        ("templates", "absolute cosine", absolute_cosine(weights, list(combinations(weights, 2)))),
        ("templates", "absolute cosine between types", absolute_cosine(weights, list(combinations(kinds, 2)))),
    ]
    if NONE in weights:
        pairs = [(kind, NONE) for kind in kinds]
        rows.append(("templates", f"absolute cosine between types and {NONE}", absolute_cosine(weights, pairs)))
    return Table(("of", "measure", "value"), tuple(rows))


def absolute_cosine(weights: Vectors, pairs: Sequence[tuple[str, str]]) -> float | None:
    """The mean over pairs of classes of how much their templates [1, d] point the same way or opposite ones.

    >>> rows = {"A": np.array([[1.0, 0.0]]), "B": np.array([[-2.0, 0.0]]), "C": np.array([[0.0, 1.0]])}
    >>> absolute_cosine(rows, [("A", "B"), ("A", "C")])
    0.5
    """
    cosines = class_cosines(weights)
    values = [abs(cosines.means[cosines.classes.index(one), cosines.classes.index(other)]) for one, other in pairs]
    return float(np.mean(values)) if values else None


def _classes(cosines: ClassCosines, norms: Vectors) -> Table:
    rows = (
        (name, len(own), float(own.mean()), float(own.std()), None if np.isnan(within) else float(within))
        for (name, own), within in zip(norms.items(), cosines.within, strict=True)
    )
    return Table(("class", "spans", "mean norm", "sd of norms", "cosine within"), tuple(rows))


def _matrix(cosines: ClassCosines) -> Table:
    rows = (
        (name, *(None if np.isnan(mean) else float(mean) for mean in row))
        for name, row in zip(cosines.classes, cosines.means, strict=True)
    )
    return Table(("class", *cosines.classes), tuple(rows))


def _overlaps(sample: SpanSample) -> Table:
    """By the finer levels, then by the three of the paper's table 4."""
    rows: list[tuple[Cell, ...]] = []
    levels = {name: (place,) for place, name in enumerate(OVERLAPS)} | LEVELS
    for name, places in levels.items():
        values = np.concatenate([sample.cosines[place] for place in places])
        numbers = (float(values.mean()), float(values.std())) if len(values) else (None, None)
        rows.append((name, len(values), *numbers))
    return Table(("overlap", "pairs", "mean cosine", "sd"), tuple(rows))


def _text(sample: SpanSample, types: Sequence[str], cosines: ClassCosines) -> str:
    lines = [
        f"The vectors that the last layer classifies, of {len(sample.vectors):,} entities in {sample.sentences:,} sentences."
    ]
    alike = [
        ("within a type", cosines.mean_within(types)),
        ("between types", cosines.mean_between(types, types)),
        ("between entities and other spans", cosines.mean_between(types, [NONE])),
    ]
    known = [f"{value:.2f} {what}" for what, value in alike if value is not None]
    if known:
        lines.append(
            f"Their mean cosine is {', '.join(known)}: "
            f"the higher the first stands above the others, the easier they are told apart."
        )
    apart, strong = (np.concatenate([sample.cosines[place] for place in LEVELS[name]]) for name in list(LEVELS)[::2])
    if len(apart) and len(strong):
        lines.append(
            f"With spans of their sentence that share no word it is {apart.mean():.2f}, "
            f"with those that share more than half of theirs {strong.mean():.2f}; "
            f"a large difference means that overlapping spans are hard to tell apart."
        )
    return " ".join(lines)
