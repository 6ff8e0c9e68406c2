"""What only the model itself can tell: its losses, its probabilities, its span vectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from spanwise.analysis.losses import losses_part
from spanwise.analysis.part import Part
from spanwise.analysis.probabilities import probabilities_part
from spanwise.analysis.projection import check_projection
from spanwise.analysis.representations import representations_part
from spanwise.analysis.sample import found_entities
from spanwise.core.types import Sentence
from spanwise.models.model import Model


def model_parts(
    model: Model, gold: Sequence[Sentence], predicted: Sequence[Sentence], *, run: Path | None = None,
    context: Sequence[Sentence] = (), projection: str = "pca", seed: int = 0,
) -> list[Part]:  # fmt: skip
    """The parts of an analysis that need the model: ``gold`` sentences and the same text as the model ``predicted`` it.

    ``run`` is its run folder, for the losses of its training; ``context`` are the sentences that may be read beside these, as
    in prediction. ``projection`` is how vectors are drawn beside PCA: "tsne" or "umap". A question that this kind of model has
    no answer to is a part without figures, whose text says why.
    """
    check_projection(projection)
    found = found_entities(gold, predicted)
    parts = []
    if run is not None and (losses := losses_part(run, model.task)) is not None:
        parts.append(losses)
    parts.append(probabilities_part(model, gold, found, context=context, seed=seed))
    parts.append(representations_part(model, gold, found, context=context, projection=projection, seed=seed))
    return parts
