"""The chosen texts with the model's predictions, for an annotation tool."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from spanwise.active_learning.candidates import Candidate
from spanwise.core.types import Sentence
from spanwise.decoding.thresholds import Threshold
from spanwise.prediction.base import BasePredictor

KEY = "suggestion"  # in the extra data of a sentence


def pre_annotate(
    predictor: BasePredictor, chosen: Sequence[Candidate], *, unit: str = "sentence", threshold: Threshold = 0.0,
    batch_size: int = 64,
) -> Iterator[Sentence]:  # fmt: skip
    """Yield the chosen sentences with predictions, the most valuable first.

    The key ``suggestion`` has the rank, the score, and where the sentence is from. A single sentence becomes
    a separate text, so that writers of documents do not join sentences that are far from each other.
    """
    places = [(rank, candidate) for rank, candidate in enumerate(chosen, 1) for _ in candidate.sentences]
    sentences = [replace(sentence, annotated=None) for candidate in chosen for sentence in candidate.sentences]
    predicted = predictor.stream(sentences, threshold=threshold, batch_size=batch_size)
    for (rank, candidate), sentence in zip(places, predicted, strict=True):
        note: dict[str, Any] = {"rank": rank, "score": round(candidate.score, 4)}
        if unit == "sentence":
            note |= {key: value for key in ("document", "position") if (value := getattr(sentence, key)) is not None}
            sentence = replace(sentence, document=None, position=None, start=None)
        yield replace(sentence, extra={**(sentence.extra or {}), KEY: note})
