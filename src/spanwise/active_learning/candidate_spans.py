"""The probabilities of candidate spans, from any model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from spanwise.core.types import Sentence
from spanwise.prediction.base import BasePredictor

if TYPE_CHECKING:
    from spanwise.models.model import Model

MIN_PROBABILITY = 0.01  # lower probabilities add almost no uncertainty
BATCH_SIZE = 32  # sentences whose spans are in memory together


def predict_candidate_spans(
    predictor: BasePredictor, sentences: Iterable[Sentence], batch_size: int = 64
) -> Iterator[Sentence]:  # fmt: skip
    """Yield the sentences with all spans that may be entities, and their probabilities as scores.

    Models with a threshold predict with a low one. Torch models that take the best class of each span
    or word give the probabilities of all spans and classes. ONNX models without a threshold give their
    predicted entities. Relations are not computed for more than these.
    """
    if predictor.default_threshold is not None:
        return predictor.stream(
            sentences, threshold=dict.fromkeys(predictor.types, predictor.min_threshold), batch_size=batch_size
        )
    if (model := _model_with_probabilities(predictor)) is not None:
        return _stream_probabilities(model, predictor, sentences)
    return predictor.stream(sentences, batch_size=batch_size)


def _model_with_probabilities(predictor: BasePredictor) -> Model | None:
    """The model of a torch predictor whose head has span probabilities; None for ONNX and the typing of given spans."""
    model: Model | None = getattr(predictor, "model", None)
    if model is None or predictor.needs_spans:
        return None
    from spanwise.heads.abilities import HasSpanProbabilities, find_ability

    model = model.for_prediction()
    return None if find_ability(model.head, HasSpanProbabilities) is None else model


def _stream_probabilities(model: Model, predictor: BasePredictor, sentences: Iterable[Sentence]) -> Iterator[Sentence]:
    """Decode the probabilities of all spans as if the model had a low threshold."""
    from spanwise.prediction.streaming import stream_in_chunks

    def predict_chunk(chunk: Sequence[Sentence], context: Sequence[Sentence]) -> list[Sentence]:
        predicted = list(chunk)
        by_length = sorted(range(len(chunk)), key=lambda index: len(chunk[index].words))
        for start in range(0, len(by_length), BATCH_SIZE):
            indices = by_length[start : start + BATCH_SIZE]
            others = [chunk[index] for index in (*by_length[:start], *by_length[start + BATCH_SIZE :])]
            for index, sentence in zip(indices, _decode(model, [chunk[i] for i in indices], [*others, *context]), strict=True):
                predicted[index] = sentence
        return predicted

    return map(predictor.scale.apply, stream_in_chunks(predict_chunk, sentences))


def _decode(model: Model, sentences: Sequence[Sentence], context: Sequence[Sentence]) -> list[Sentence]:
    from spanwise.decoding.decode import decode, overlap_policy
    from spanwise.prediction.span_vectors import span_probabilities

    types, policy = model.labels.entities, overlap_policy(model.head.decoding)
    columns: list[list[np.ndarray]] = [[], [], [], [], []]
    for index, scored in enumerate(span_probabilities(model, sentences, batch_size=BATCH_SIZE, context=context)):
        row, label = (scored.vectors[:, : len(types)] >= MIN_PROBABILITY).nonzero()
        start, end = scored.spans[row].T
        values = (np.full(len(row), index), start, end, label, scored.vectors[row, label])
        for column, value in zip(columns, values, strict=True):
            column.append(value)
    sentence, start, end, label, score = (np.concatenate(column) for column in columns)
    entities = decode(sentence, start, end, label, score, count=len(sentences), types=types, policy=policy)
    return [sentence.with_predictions(spans) for sentence, spans in zip(sentences, entities, strict=True)]
