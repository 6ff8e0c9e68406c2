"""Prediction with a torch model, in batches of sentences of similar length."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch

from spanwise.batching.batches import to_device
from spanwise.core.types import Sentence
from spanwise.decoding.decode import Predictions
from spanwise.decoding.thresholds import MinScore, Thresholds, apply_threshold, lowest_threshold, with_default
from spanwise.heads.abilities import CachesSentences, HasRelationThreshold, HasThreshold, find_ability, heads_with
from spanwise.heads.base import Head
from spanwise.models.model import Model
from spanwise.prediction.base import BasePredictor, score_scale
from spanwise.prediction.encoding import encode_batches
from spanwise.prediction.streaming import stream_in_chunks
from spanwise.runtime.cpu_linear import use_cpu_linear
from spanwise.runtime.device import full_precision, should_use_cuda

NO_THRESHOLDS = Thresholds()


class Predictor(BasePredictor):
    """A torch model on one device, ready to predict."""

    def __init__(self, model: Model, device: str = "auto") -> None:
        super().__init__()
        is_on_gpu = should_use_cuda(device)
        self.model = model.to("cuda" if is_on_gpu else "cpu").eval()
        if not is_on_gpu:
            use_cpu_linear(self.model)
        self.types, self.needs_spans = model.labels.entities, model.needs_spans
        self.finds_relations = model.head.prediction_head.finds_relations
        self.relation_types = model.labels.relations if self.finds_relations else ()
        self.thresholds = model.config.thresholds or {}
        self.scale = score_scale(model.config.calibration)
        with temporary_threshold(model.head, 0.5) as default:
            self.default_threshold = None if default is None else self.scale.calibrate(default)
        self._process = os.getpid()

    def predict_chunk(
        self, sentences: Sequence[Sentence], context: Sequence[Sentence], *, threshold: Thresholds, batch_size: int
    ) -> list[Sentence]:  # fmt: skip
        if self._process != os.getpid():  # forked: torch would wait forever for threads that the fork lacks
            self._process = os.getpid()
            torch.set_num_threads(1)
        return predict_chunk(self.model, sentences, context, batch_size=batch_size, threshold=threshold)


def predict(
    model: Model,
    sentences: Iterable[Sentence],
    *,
    batch_size: int = 64,
    threshold: Thresholds = NO_THRESHOLDS,
    context: Sequence[Sentence] = (),
) -> Iterator[Sentence]:
    """Yield the sentences in order with predictions in place of their entities and relations.

    Memory holds a few thousand sentences at a time. ``threshold`` drops entities and relations with
    a lower score. A value below the head's default threshold makes the head predict more; 0 means
    the default. Scores are those of the head; ``Predictor`` also calibrates them.
    """
    predict_some = partial(predict_chunk, model, batch_size=batch_size, threshold=threshold)
    return stream_in_chunks(predict_some, sentences, context=context, uses_windows=not model.needs_spans)


def predict_chunk(
    model: Model, sentences: Sequence[Sentence], context: Sequence[Sentence], *, batch_size: int, threshold: Thresholds
) -> list[Sentence]:  # fmt: skip
    """Predict sentences that fit in memory; the encoder may read ``context`` of the same documents."""
    head, prepared = model.head, model.encoder.prepare(sentences, context)
    predicted = predict_with_heads([head], model, sentences, prepared, batch_size=batch_size, threshold=threshold)[head]
    for part in heads_with(head, CachesSentences):
        part.clear_cache()
    return predicted


@torch.inference_mode()
@full_precision()
def predict_with_heads(
    heads: Iterable[Head], model: Model, sentences: Sequence[Sentence], prepared: Sequence[Any], *, batch_size: int = 64,
    threshold: Thresholds = NO_THRESHOLDS,
) -> dict[Head, list[Sentence]]:  # fmt: skip
    """Predict with several heads of one encoder; each sentence is encoded once."""
    by_head: dict[Head, list[Predictions]] = {head: [Predictions(())] * len(sentences) for head in heads}
    with ExitStack() as stack:
        for head in by_head:
            stack.enter_context(temporary_thresholds(head, threshold))
        for indices, states, device in encode_batches(model, prepared, batch_size):
            batch = [sentences[index] for index in indices]
            for head, predictions in by_head.items():
                decoded = head.decode(head.score(states, to_device(head.targets(batch, gold=False), device)), len(batch))
                for index, prediction in zip(indices, decoded, strict=True):
                    predictions[index] = prediction
    return {head: with_predictions(head, sentences, predictions, threshold) for head, predictions in by_head.items()}


def with_predictions(
    head: Head, sentences: Sequence[Sentence], predictions: Sequence[Predictions], threshold: Thresholds
) -> list[Sentence]:  # fmt: skip
    """Replace the annotations of sentences by a head's predictions that reach the threshold."""
    paired = zip(sentences, predictions, strict=True)
    predicted = [sentence.with_predictions(*prediction) for sentence, prediction in paired]
    if not threshold:
        return predicted
    adjustable, relations = find_ability(head, HasRelationThreshold), threshold.relations
    if adjustable is not None:
        relations = with_default(relations, head.labels.relations, adjustable.relation_threshold)
    return list(apply_threshold(predicted, Thresholds(threshold.entities, relations)))


@contextmanager
def temporary_thresholds(head: Head, threshold: Thresholds) -> Iterator[None]:
    """Lower the head's thresholds of entities and relations within the context."""
    with temporary_threshold(head, threshold.entities), _temporary_relation_threshold(head, threshold.relations):
        yield


@contextmanager
def _temporary_relation_threshold(head: Head, threshold: MinScore) -> Iterator[None]:
    """Lower the head's threshold of relations within the context, as far as any relation type needs."""
    adjustable = find_ability(head, HasRelationThreshold)
    requested = lowest_threshold(threshold)
    if adjustable is None or not 0 < requested < adjustable.relation_threshold:
        yield
        return
    default = adjustable.set_relation_threshold(requested)
    try:
        yield
    finally:
        adjustable.set_relation_threshold(default)


@contextmanager
def temporary_threshold(head: Head, threshold: MinScore) -> Iterator[float | None]:
    """Lower the head's threshold of entities to ``threshold`` within the context; yield the head's default.

    The head keeps its own threshold if that is lower. With thresholds by type, entities below the
    threshold of their type are dropped before overlaps are resolved. A single threshold does not
    need this: the more probable of two overlapping entities wins, so every entity that it displaces
    has a lower score.
    """
    by_type, requested = threshold if isinstance(threshold, Mapping) else {}, lowest_threshold(threshold)
    adjustable = find_ability(head, HasThreshold)
    default = adjustable.set_threshold(requested) if adjustable and 0 < requested < 1 else None
    heads = heads_with(head, Head)
    try:
        if adjustable and default is not None and default < requested:
            adjustable.set_threshold(default)  # `apply_threshold` drops the rest afterwards
        for part in heads if by_type else ():
            part.min_scores = {type: by_type.get(type) or default or 0.0 for type in part.labels.entities}
        yield default
    finally:
        if adjustable and default is not None:
            adjustable.set_threshold(default)
        for part in heads:
            part.min_scores = None
