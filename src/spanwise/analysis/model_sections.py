"""Sections that need the model: training, probabilities and span vectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from spanwise.analysis.probability_section import probability_section
from spanwise.analysis.projection import check_projection
from spanwise.analysis.sample import correct_entities
from spanwise.analysis.section import Section
from spanwise.analysis.training_section import training_section
from spanwise.analysis.vector_section import vector_section
from spanwise.core.types import Sentence
from spanwise.models.model import Model


def model_sections(
    model: Model, gold: Sequence[Sentence], predicted: Sequence[Sentence], *, run: Path | None = None,
    context: Sequence[Sentence] = (), projection: str = "pca", seed: int = 0,
) -> list[Section]:  # fmt: skip
    """Analyse a model on ``gold`` sentences and its predictions for them.

    ``run`` is the run folder with the metrics of the training. ``context`` are the sentences that the
    model may read as neighbours, as in prediction. ``projection`` ("pca", "tsne" or "umap") draws the
    span vectors in addition to PCA. If the model does not support a section, its text gives the reason.
    """
    check_projection(projection)
    correct = correct_entities(gold, predicted)
    sections = []
    if run is not None and (training := training_section(run, model.task)) is not None:
        sections.append(training)
    sections.append(probability_section(model, gold, correct, context=context, seed=seed))
    sections.append(vector_section(model, gold, correct, context=context, projection=projection, seed=seed))
    return sections
