"""The probabilities of candidate spans, from any model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from spanwise.core.types import Sentence
from spanwise.prediction.base import BasePredictor

if TYPE_CHECKING:
    from spanwise.models.model import Model


def predict_candidate_spans(
    predictor: BasePredictor, sentences: Iterable[Sentence], batch_size: int = 64
) -> Iterator[Sentence]:  # fmt: skip
    """Yield the sentences with all spans that may be entities, and their probabilities as scores.

    Models with a threshold predict with a low one. Torch models that take the best class of each span
    give the probabilities of all classes. Other models (sequence taggers, ONNX models without a
    threshold) give their predicted entities. Relations are not computed for more than these.
    """
    if predictor.default_threshold is not None:
        return predictor.stream(
            sentences, threshold=dict.fromkeys(predictor.types, predictor.min_threshold), batch_size=batch_size
        )
    if (model := _model_with_probabilities(predictor)) is not None:
        return _stream_probabilities(model, predictor, sentences)
    return predictor.stream(sentences, batch_size=batch_size)


def _model_with_probabilities(predictor: BasePredictor) -> Model | None:
    """The model of a torch predictor whose head scores spans; None for ONNX, taggers and the typing of given spans."""
    model: Model | None = getattr(predictor, "model", None)
    if model is None or predictor.needs_spans:
        return None
    from spanwise.heads.abilities import HasSpanProbabilities, find_ability

    scorer = find_ability(model.head, HasSpanProbabilities)
    return model if scorer is not None and scorer.family == "span" else None


def _stream_probabilities(model: Model, predictor: BasePredictor, sentences: Iterable[Sentence]) -> Iterator[Sentence]:
    """Decode the probabilities of all spans as if the model had a low threshold."""
    from spanwise.decoding.decode import decode
    from spanwise.decoding.soft_nms import SoftNms
    from spanwise.prediction.streaming import stream_in_chunks
    from spanwise.training.teachers import opinions

    decoding = model.head.prediction_head.decoding
    policy = decoding.policy if isinstance(decoding, SoftNms) else decoding

    def predict_chunk(chunk: Sequence[Sentence], context: Sequence[Sentence]) -> list[Sentence]:
        spans = [opinion.spans for opinion in opinions(model, model.labels, chunk, context)]
        index = np.repeat(np.arange(len(chunk)), [len(part.start) for part in spans])
        start, end, label, mass = (np.concatenate(columns) for columns in zip(*spans, strict=True))
        entities = decode(index, start, end, label, mass, count=len(chunk), types=model.labels.entities, policy=policy)
        return [sentence.with_predictions(spans) for sentence, spans in zip(chunk, entities, strict=True)]

    return map(predictor.scale.apply, stream_in_chunks(predict_chunk, sentences))
