"""The threshold that is best for a model, found on dev."""

from __future__ import annotations

from pathlib import Path

from spanwise.core.errors import SpanwiseError
from spanwise.corpora.splits import open_splits
from spanwise.decoding.thresholds import LOWEST
from spanwise.evaluation.calibration import at_threshold, calibration
from spanwise.evaluation.threshold_search import FoundThreshold
from spanwise.prediction.base import BasePredictor
from spanwise.prediction.scoring import predict_split

RELATIONS = "it is the best for entities; relations that score less are left out with it, too"
BEST_LABELS = "this model proposes the best label of each span or word only: a threshold can make it find less, never more"


def find_threshold(
    predictor: BasePredictor, data: str | Path, *, format: str | None = None, batch_size: int = 64
) -> FoundThreshold:  # fmt: skip
    """Try all thresholds on the data's dev split; a single file that is called neither train nor test is taken for it.

    The model proposes as much as it can, for which its head's own threshold is lowered. Where two entities cannot both be, the
    surer one wins: so what is kept above a threshold is what the head finds when this is its own.
    """
    splits = tuple(open_splits(data, format))
    split = "all" if splits == ("all",) else "dev"
    if split not in splits:
        raise SpanwiseError(f"{data}: a threshold is found on dev, but there is only {', '.join(splits)}")
    if predictor.needs_spans:
        raise SpanwiseError("this model types given spans, which all get a type: it has no threshold")
    done = predict_split(predictor, data, split=split, format=format, threshold=LOWEST, batch_size=batch_size)
    own = predictor.own_threshold
    notes = [BEST_LABELS] * (own is None) + [RELATIONS] * predictor.finds_relations
    found = calibration(done.gold, done.predicted, lowest=None if own is None else LOWEST)
    before = None if own is None else at_threshold(done.gold, done.predicted, own)
    return FoundThreshold(split, found, before, "; ".join(notes))
