"""Span vectors before the last layer, and the weights of that layer (DSpERT, section 5)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spanwise.analysis.cosines import LEVELS, OVERLAPS, ClassCosines
from spanwise.analysis.figures.cosines import cosines_figure
from spanwise.analysis.figures.norms import norms_figure
from spanwise.analysis.figures.overlaps import overlaps_figure
from spanwise.analysis.figures.scatter import scatter_figure
from spanwise.analysis.figures.style import MAX_BARS
from spanwise.analysis.projection import PROJECTIONS, Projection, pca, project
from spanwise.analysis.sample import NO_ENTITY, CorrectEntities
from spanwise.analysis.section import COORDINATES, Plot, Section, Table, limit_note
from spanwise.analysis.span_sample import SpanSample, span_sample
from spanwise.analysis.vector_tables import measure_vectors
from spanwise.core.counting import counted
from spanwise.core.types import Sentence
from spanwise.heads import head_values
from spanwise.heads.abilities import HasSpanVectors, find_ability
from spanwise.models.model import Model

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
    measures = measure_vectors(model, sample, head.class_weights)
    cosines, weight_cosines, tables = measures.cosines, measures.weight_cosines, dict(measures.tables)
    figures = {
        "norms": Plot(lambda: norms_figure(measures.norms), CAPTIONS["norms"] + limit_note(MAX_BARS, len(measures.norms))),
        "cosines": Plot(
            lambda: cosines_figure(cosines.classes, cosines.means),
            CAPTIONS["cosines"] + limit_note(MAX_BARS, len(cosines.classes)),
        ),
        "weights": Plot(
            lambda: cosines_figure(weight_cosines.classes, weight_cosines.means),
            CAPTIONS["weights"] + limit_note(MAX_BARS, len(weight_cosines.classes)),
        ),
    }
    if "overlaps" in tables:
        figures["overlaps"] = Plot(lambda: overlaps_figure(OVERLAPS, sample.cosines), CAPTIONS["overlaps"])
    for method in dict.fromkeys(("pca", projection)):
        _add_projection(method, sample, tables, figures, seed)
    return Section("vectors", title, _text(sample, measures.types, cosines), tables, figures)


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
        tables["pca_all"] = Table(("class", *COORDINATES), rows, "Points of the PCA figure with other spans")


def scatter_table(projection: Projection, types: Sequence[str], is_found: npt.NDArray[np.bool_], title: str) -> Table:
    rows = zip(types, is_found.tolist(), *projection.points.T.tolist(), strict=True)
    return Table(("type", "found", *COORDINATES), tuple((type, int(correct), x, y) for type, correct, x, y in rows), title)


def _text(sample: SpanSample, types: Sequence[str], cosines: ClassCosines) -> str:
    sentences = [
        f"These are the vectors that the last layer classifies, for {counted(len(sample.vectors), 'gold entity')} in "
        f"{counted(sample.sentences, 'sentence')}."
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
