"""How probable a model thinks what is true: the violin and volcano figures of SNG (Wang 2024, sections 3.3 to 3.5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spanwise.analysis.figures.points import points_figure
from spanwise.analysis.figures.violin import Halves, violin_figure
from spanwise.analysis.figures.volcano import volcano_figure
from spanwise.analysis.part import Part, Table
from spanwise.analysis.projection import pca
from spanwise.analysis.sample import NONE, Predictions, chosen, contiguous_entities
from spanwise.core.types import Entity, Sentence
from spanwise.models.model import Model
from spanwise.prediction.span_vectors import span_probabilities

Floats = npt.NDArray[np.float64]
LOWEST = 1e-6  # a smaller probability of the gold type counts as this one, lest its inverse leave the page
SENTENCES = 1000
TAGS = ("Up", "Stable", "Down")


@dataclass(frozen=True)
class GoldProbabilities:
    """The probabilities ``values`` [n, K] of n gold entities for each of K ``classes``, NONE last where the model has it."""

    classes: tuple[str, ...]
    entities: tuple[tuple[str, Entity], ...]  # each with the id of its sentence
    values: Floats
    found: npt.NDArray[np.bool_]  # whether the model predicted the entity
    unjudged: int  # gold entities of the same sentences that the model has no probability for

    @property
    def label(self) -> npt.NDArray[np.int64]:
        """The place of each entity's type among the classes."""
        place = {name: number for number, name in enumerate(self.classes)}
        return np.array([place[entity.type] for _, entity in self.entities], np.int64)

    @property
    def of_gold(self) -> Floats:
        return self.values[np.arange(len(self.values)), self.label]


@dataclass(frozen=True)
class Discrepancy:
    """The volcano's numbers: ``ratio`` is log2(p_pred / p_gold), ``desire`` is D = var(p) / p_gold (section 3.5).

    p_pred is the highest probability of all classes, so no ratio is below 0, and the tag Down never occurs.
    """

    predicted: npt.NDArray[np.int64]
    of_predicted: Floats
    ratio: Floats
    desire: Floats

    @property
    def tags(self) -> list[str]:
        return [TAGS[0] if ratio > 0 else TAGS[1] if ratio == 0 else TAGS[2] for ratio in self.ratio]


def discrepancy(values: Floats, label: npt.NDArray[np.int64]) -> Discrepancy:
    """From the probabilities of all classes [n, K] and the places of the gold ones.

    >>> seen = discrepancy(np.array([[0.5, 0.25, 0.25], [0.5, 0.25, 0.25]]), np.array([0, 1]))
    >>> seen.ratio.tolist(), seen.desire.round(4).tolist(), seen.tags
    ([0.0, 1.0], [0.0278, 0.0556], ['Stable', 'Up'])
    """
    of_gold = values[np.arange(len(values)), label].clip(min=LOWEST)
    predicted = values.argmax(1)
    of_predicted = values.max(1, initial=0.0).clip(min=LOWEST)
    return Discrepancy(predicted, of_predicted, np.log2(of_predicted / of_gold), values.var(1) / of_gold)


def gold_probabilities(
    model: Model, gold: Sequence[Sentence], found: Predictions, *, context: Sequence[Sentence] = (), seed: int = 0
) -> GoldProbabilities:
    """Those of the contiguous gold entities of at most ``SENTENCES`` sentences."""
    places = chosen(gold, SENTENCES, seed)
    sentences = [gold[place] for place in places]
    asked = [contiguous_entities(sentence) for sentence in sentences]
    answers = span_probabilities(model, sentences, [[entity.range for entity in own] for own in asked], context=context)
    entities: list[tuple[str, Entity]] = []
    rows: list[Floats] = []
    is_found: list[bool] = []
    for place, own, (spans, values) in zip(places, asked, answers, strict=True):
        known = {(start, end): row for (start, end), row in zip(spans.tolist(), values.astype(np.float64), strict=True)}
        for entity in own:
            if entity.range in known and entity.type in model.labels.entities:
                entities.append((gold[place].id, entity))
                rows.append(known[entity.range])
                is_found.append((place, entity) in found)
    classes = model.labels.entities if model.needs_spans else (*model.labels.entities, NONE)
    total = sum(len(set(sentence.entities)) for sentence in sentences)
    table = np.array(rows, np.float64).reshape(-1, len(classes))
    return GoldProbabilities(classes, tuple(entities), table, np.array(is_found, bool), total - len(rows))


def probabilities_part(
    model: Model, gold: Sequence[Sentence], found: Predictions, *, context: Sequence[Sentence] = (), seed: int = 0
) -> Part:
    judged = gold_probabilities(model, gold, found, context=context, seed=seed)
    title = "Probabilities of what is true"
    if not judged.entities:
        return Part("probabilities", title, "The model has no probability for any gold entity that was looked at.")
    seen = discrepancy(judged.values, judged.label)
    halves = _halves(judged)
    tags = np.array(seen.tags)
    plane = pca(judged.values) if len(judged.classes) > 2 and len(judged.values) > 2 else None
    figures = {
        "violin": lambda: violin_figure(halves),
        "volcano": lambda: volcano_figure(seen.ratio, seen.desire, {tag: tags == tag for tag in TAGS}),
    }
    tables = {"by_type": _by_type(halves), "tags": _by_tag(judged, seen, tags), "entities": _entities(judged, seen)}
    if plane is not None:
        kinds = [entity.type for _, entity in judged.entities]
        figures["pca"] = lambda: points_figure(plane, kinds, "component", found=judged.found)
        rows = zip(kinds, judged.found.tolist(), *plane.points.T.tolist(), strict=True)
        tables["pca"] = Table(("type", "found", "x", "y"), tuple((kind, int(found), x, y) for kind, found, x, y in rows))
    return Part("probabilities", title, _text(judged, seen, tags), tables, figures)


def _halves(judged: GoldProbabilities) -> dict[str, Halves]:
    """The gold types' probabilities of found and missed entities, of all and by type, the commonest first."""
    of_gold, kinds = judged.of_gold, np.array([entity.type for _, entity in judged.entities])
    names, counts = np.unique(kinds, return_counts=True)
    order = sorted(zip(-counts, names.tolist(), strict=True))
    halves = {"all types": Halves(of_gold[judged.found], of_gold[~judged.found])}
    for _, name in order:
        own = kinds == name
        halves[name] = Halves(of_gold[own & judged.found], of_gold[own & ~judged.found])
    if len(names) == 1:
        del halves["all types"]
    return halves


def _by_type(halves: dict[str, Halves]) -> Table:
    columns = ("type", "entities", "outcome", "count", "lower quartile", "median", "upper quartile")
    rows = []
    for name, both in halves.items():
        for outcome, values in zip(("found", "missed"), both, strict=True):
            cuts = np.quantile(values, (0.25, 0.5, 0.75)).tolist() if len(values) else (None, None, None)
            rows.append((name, len(both.found) + len(both.missed), outcome, len(values), *cuts))
    return Table(columns, tuple(rows))


def _by_tag(judged: GoldProbabilities, seen: Discrepancy, tags: npt.NDArray[np.str_]) -> Table:
    rows = []
    for tag in TAGS:
        own = tags == tag
        middle = [float(np.median(values[own])) if own.any() else None for values in (seen.ratio, seen.desire)]
        rows.append((tag, int(own.sum()), int((own & judged.found).sum()), *middle))
    return Table(("tag", "entities", "found", "median log2(p_pred / p_gold)", "median D"), tuple(rows))


def _entities(judged: GoldProbabilities, seen: Discrepancy) -> Table:
    columns = (
        "sentence",
        "start",
        "end",
        "type",
        "likeliest",
        "found",
        "p_gold",
        "p_pred",
        "log2(p_pred / p_gold)",
        "D",
        "tag",
    )
    numbers = zip(judged.of_gold, seen.of_predicted, seen.ratio, seen.desire, strict=True)
    rows = (
        (name, *entity.range, entity.type, judged.classes[likeliest], int(found), *(round(float(x), 6) for x in row), tag)
        for (name, entity), likeliest, found, row, tag in zip(
            judged.entities, seen.predicted, judged.found, numbers, seen.tags, strict=True
        )
    )
    return Table(columns, tuple(rows))


def _text(judged: GoldProbabilities, seen: Discrepancy, tags: npt.NDArray[np.str_]) -> str:
    found, of_gold, up = judged.found, judged.of_gold, tags == "Up"
    outcomes = ((found, "found"), (~found, "missed"))
    medians = [f"{np.median(of_gold[own]):.3f} for the {own.sum():,} that were {what}" for own, what in outcomes if own.any()]
    lines = [
        f"How probable the model thinks the right type of {len(found):,} gold entities: the median is {' and '.join(medians)}."
    ]
    if judged.unjudged:
        lines.append(
            f"{judged.unjudged:,} more were never judged: too wide, discontinuous, of an unknown type or dropped before."
        )
    if up.any():
        over = judged.classes[np.bincount(seen.predicted[up]).argmax()]
        lines.append(f"Another class is likelier for {up.sum():,} (tag Up), most often {over}.")
    hidden = int((~found & ~up).sum())
    if hidden:
        lines.append(f"{hidden:,} were missed although their type was the likeliest: decoding or a threshold dropped them.")
    return " ".join(lines)
