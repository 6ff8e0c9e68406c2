"""Probability of the gold label: violin and volcano figures of SNG (sections 3.3 to 3.5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spanwise.analysis.figures.scatter import scatter_figure
from spanwise.analysis.figures.style import MAX_BARS
from spanwise.analysis.figures.violin import FoundAndMissed, violin_figure
from spanwise.analysis.figures.volcano import volcano_figure
from spanwise.analysis.projection import pca
from spanwise.analysis.sample import NO_ENTITY, CorrectEntities, contiguous_entities, sample_sentences
from spanwise.analysis.section import Plot, Section, Table, limit_note
from spanwise.analysis.vector_section import scatter_table
from spanwise.core.counting import counted
from spanwise.core.types import Entity, Sentence
from spanwise.models.model import Model
from spanwise.prediction.span_vectors import span_probabilities

Floats = npt.NDArray[np.float64]
MIN_PROBABILITY = 1e-6  # lower probabilities of the gold type are clipped, because ratios divide by them
MAX_SENTENCES = 1000
TAGS = ("Up", "Stable", "Down")

CAPTIONS = {
    "violin": (
        "Distribution of the probability of the gold type, for entities that were found (upper half, blue) and missed (lower "
        "half, orange); white bars are medians, numbers at the right are counts. Missed entities with high probabilities were "
        "dropped by decoding or a threshold."
    ),
    "volcano": (
        "One point per gold entity. Horizontal: log2 of the highest class probability divided by that of the gold type; 0 "
        "means that the gold type is the most probable class. Vertical: D, the variance of the probabilities divided by the "
        "probability of the gold type. Points at the upper right are confident errors."
    ),
    "pca": (
        "Probabilities of all classes for gold entities, on their first two principal components, coloured by gold type. "
        "Filled triangles were predicted correctly, hollow circles were missed."
    ),
}


@dataclass(frozen=True)
class GoldProbabilities:
    """Probabilities ``values`` [n, K] of n gold entities for K ``classes``; the last may be ``NO_ENTITY``."""

    classes: tuple[str, ...]
    entities: tuple[tuple[str, Entity], ...]  # each with the id of its sentence
    values: Floats
    is_found: npt.NDArray[np.bool_]  # whether the model predicted the entity
    unscored: int  # gold entities of the same sentences without a probability

    @property
    def gold_classes(self) -> npt.NDArray[np.int64]:
        """Index of each entity's type among the classes."""
        indices = {name: index for index, name in enumerate(self.classes)}
        return np.array([indices[entity.type] for _, entity in self.entities], np.int64)

    @property
    def of_gold(self) -> Floats:
        """Probability of each entity's gold type."""
        return self.values[np.arange(len(self.values)), self.gold_classes]


@dataclass(frozen=True)
class Discrepancy:
    """Values of the volcano figure: ``ratio`` is log2(p_pred / p_gold), ``desire`` is D = var(p) / p_gold (section 3.5).

    p_pred is the highest probability of all classes, so ratios are never negative and the tag Down
    never occurs.
    """

    predicted_classes: npt.NDArray[np.int64]
    of_predicted: Floats
    ratio: Floats
    desire: Floats

    @property
    def tags(self) -> list[str]:
        return [TAGS[0] if ratio > 0 else TAGS[1] if ratio == 0 else TAGS[2] for ratio in self.ratio]


def discrepancy(values: Floats, gold_classes: npt.NDArray[np.int64]) -> Discrepancy:
    """Compute the discrepancy from probabilities [n, K] and the indices of the gold classes.

    >>> result = discrepancy(np.array([[0.5, 0.25, 0.25], [0.5, 0.25, 0.25]]), np.array([0, 1]))
    >>> result.ratio.tolist(), result.desire.round(4).tolist(), result.tags
    ([0.0, 1.0], [0.0278, 0.0556], ['Stable', 'Up'])
    """
    of_gold = values[np.arange(len(values)), gold_classes].clip(min=MIN_PROBABILITY)
    of_predicted = values.max(1, initial=0.0).clip(min=MIN_PROBABILITY)
    return Discrepancy(values.argmax(1), of_predicted, np.log2(of_predicted / of_gold), values.var(1) / of_gold)


def gold_probabilities(
    model: Model, gold: Sequence[Sentence], correct: CorrectEntities, *, context: Sequence[Sentence] = (), seed: int = 0
) -> GoldProbabilities:
    """Compute the probabilities of the contiguous gold entities of at most ``MAX_SENTENCES`` sentences."""
    indices = sample_sentences(gold, MAX_SENTENCES, seed)
    sentences = [gold[index] for index in indices]
    candidates = [contiguous_entities(sentence) for sentence in sentences]
    ranges = [[entity.range for entity in sentence_entities] for sentence_entities in candidates]
    probabilities = span_probabilities(model, sentences, ranges, context=context)
    entities: list[tuple[str, Entity]] = []
    rows: list[Floats] = []
    is_found: list[bool] = []
    for index, sentence_entities, (spans, values) in zip(indices, candidates, probabilities, strict=True):
        scored = {(start, end): row for (start, end), row in zip(spans.tolist(), values.astype(np.float64), strict=True)}
        for entity in sentence_entities:
            if entity.range in scored and entity.type in model.labels.entities:
                entities.append((gold[index].id, entity))
                rows.append(scored[entity.range])
                is_found.append((index, entity) in correct)
    classes = model.labels.entities if model.needs_spans else (*model.labels.entities, NO_ENTITY)
    total = sum(len(set(sentence.entities)) for sentence in sentences)
    table = np.array(rows, np.float64).reshape(-1, len(classes))
    return GoldProbabilities(classes, tuple(entities), table, np.array(is_found, bool), total - len(rows))


def probability_section(
    model: Model, gold: Sequence[Sentence], correct: CorrectEntities, *, context: Sequence[Sentence] = (), seed: int = 0
) -> Section:
    """Analyse how probable the gold types are to the model."""
    probabilities = gold_probabilities(model, gold, correct, context=context, seed=seed)
    title = "Probability of the gold label"
    if not probabilities.entities:
        return Section("probabilities", title, "Not available: the model has no probability for any sampled gold entity.")
    volcano = discrepancy(probabilities.values, probabilities.gold_classes)
    by_type = _by_type(probabilities)
    tags = np.array(volcano.tags)
    tables = {
        "by_type": _type_table(by_type),
        "tags": _tag_table(probabilities, volcano, tags),
        "entities": _entity_table(probabilities, volcano),
    }
    figures = {
        "violin": Plot(lambda: violin_figure(by_type), CAPTIONS["violin"] + limit_note(MAX_BARS, len(by_type))),
        "volcano": Plot(
            lambda: volcano_figure(volcano.ratio, volcano.desire, {tag: tags == tag for tag in TAGS}), CAPTIONS["volcano"]
        ),
    }
    if len(probabilities.classes) > 2 and len(probabilities.values) > 2:
        projection = pca(probabilities.values)
        types = [entity.type for _, entity in probabilities.entities]
        figures["pca"] = Plot(
            lambda: scatter_figure(projection, types, "component", is_found=probabilities.is_found), CAPTIONS["pca"]
        )
        tables["pca"] = scatter_table(projection, types, probabilities.is_found, "Points of the PCA figure")
    return Section("probabilities", title, _text(probabilities, volcano, tags), tables, figures)


def _by_type(probabilities: GoldProbabilities) -> dict[str, FoundAndMissed]:
    """Return the gold types' probabilities of found and missed entities, overall and by type, the most frequent first."""
    of_gold, is_found = probabilities.of_gold, probabilities.is_found
    types = np.array([entity.type for _, entity in probabilities.entities])
    names, counts = np.unique(types, return_counts=True)
    rows = {}
    if len(names) > 1:
        rows["all types"] = FoundAndMissed(of_gold[is_found], of_gold[~is_found])
    for _, name in sorted(zip(-counts, names.tolist(), strict=True)):
        is_type = types == name
        rows[name] = FoundAndMissed(of_gold[is_type & is_found], of_gold[is_type & ~is_found])
    return rows


def _type_table(by_type: dict[str, FoundAndMissed]) -> Table:
    columns = ("type", "entities", "outcome", "count", "lower_quartile", "median", "upper_quartile")
    rows = []
    for name, outcomes in by_type.items():
        for outcome, values in zip(("found", "missed"), outcomes, strict=True):
            quartiles = np.quantile(values, (0.25, 0.5, 0.75)).tolist() if len(values) else (None, None, None)
            rows.append((name, len(outcomes.hits) + len(outcomes.misses), outcome, len(values), *quartiles))
    return Table(columns, tuple(rows), "Probability of the gold type")


def _tag_table(probabilities: GoldProbabilities, volcano: Discrepancy, tags: npt.NDArray[np.str_]) -> Table:
    rows = []
    for tag in TAGS:
        has_tag = tags == tag
        medians = [float(np.median(values[has_tag])) if has_tag.any() else None for values in (volcano.ratio, volcano.desire)]
        rows.append((tag, int(has_tag.sum()), int((has_tag & probabilities.is_found).sum()), *medians))
    columns = ("tag", "entities", "found", "median log2(p_pred / p_gold)", "median D")
    return Table(columns, tuple(rows), "Tags of the volcano figure")


def _entity_table(probabilities: GoldProbabilities, volcano: Discrepancy) -> Table:
    columns = (
        "sentence", "start", "end", "type", "most_probable", "found", "p_gold", "p_pred", "log2(p_pred / p_gold)", "D", "tag",
    )  # fmt: skip
    numbers = zip(probabilities.of_gold, volcano.of_predicted, volcano.ratio, volcano.desire, strict=True)
    rows = (
        (id, *entity.range, entity.type, probabilities.classes[best], int(is_found), *(round(float(x), 6) for x in row), tag)
        for (id, entity), best, is_found, row, tag in zip(
            probabilities.entities, volcano.predicted_classes, probabilities.is_found, numbers, volcano.tags, strict=True
        )
    )
    return Table(columns, tuple(rows), "All entities")


def _text(probabilities: GoldProbabilities, volcano: Discrepancy, tags: npt.NDArray[np.str_]) -> str:
    is_found, of_gold, is_up = probabilities.is_found, probabilities.of_gold, tags == "Up"
    medians = [
        f"{np.median(of_gold[selected]):.3f} for {outcome} entities ({selected.sum():,})"
        for selected, outcome in ((is_found, "found"), (~is_found, "missed"))
        if selected.any()
    ]
    sentences = [
        f"This section shows the probability that the model gives to the gold type of {counted(len(is_found), 'gold entity')}. "
        f"Its median is {' and '.join(medians)}."
    ]
    if probabilities.unscored:
        sentences.append(
            f"Gold entities without a probability: {probabilities.unscored:,} (too wide, discontinuous, of an unknown type, or "
            "pruned)."
        )
    if is_up.any():
        competitor = probabilities.classes[np.bincount(volcano.predicted_classes[is_up]).argmax()]
        sentences.append(
            f"Entities for which another class is more probable (tag Up): {is_up.sum():,}; most often it is “{competitor}”."
        )
    if dropped := int((~is_found & ~is_up).sum()):
        sentences.append(
            f"Entities missed although their type was the most probable: {dropped:,}; decoding or a threshold dropped them."
        )
    return " ".join(sentences)
