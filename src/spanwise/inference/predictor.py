"""Predicting sentences in batches of like length, in the order they came."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np
import torch

from spanwise.batching import make_batch, plan
from spanwise.decoding import decode
from spanwise.model import Model
from spanwise.types import Entity, Sentence

CHUNK = 4096  # sentences whose lengths are sorted together


def predict(
    model: Model,
    sentences: Iterable[Sentence],
    *,
    batch_size: int = 64,
    threshold: float = 0.0,
    context: Sequence[Sentence] = (),
) -> Iterator[Sentence]:
    """The sentences with what the model finds in place of their entities and relations, one after another as they come.

    Only some thousand sentences are in memory at a time. ``threshold`` drops entities whose score is lower.
    """
    stream = iter(sentences)
    while chunk := list(islice(stream, CHUNK)):
        for sentence, entities in zip(chunk, _entities(model, chunk, batch_size, context), strict=True):
            kept = tuple(entity for entity in entities if (entity.score or 0.0) >= threshold)
            yield replace(sentence, entities=kept, relations=(), links=())


@torch.inference_mode()
def _entities(
    model: Model, sentences: Sequence[Sentence], batch_size: int, context: Sequence[Sentence]
) -> list[tuple[Entity, ...]]:
    training = model.training
    model.eval()
    device = next(model.parameters()).device
    prepared = model.encoder.prepare(sentences, context)
    costs = np.array([model.encoder.cost(item) for item in prepared], np.int64)
    results: list[tuple[Entity, ...]] = [()] * len(sentences)
    for numbers in plan(costs, batch_size, None, None):
        batch = make_batch(model.encoder, model.head, sentences, prepared, numbers).to(device)
        spans = model.score(batch)
        host = [t.cpu().numpy() for t in (spans.sentence, spans.start, spans.end, spans.label, spans.score)]
        decoded = decode(
            host[0], host[1], host[2], host[3], host[4], count=len(numbers), types=model.labels.entities,
            policy=model.head.decoding,
        )  # fmt: skip
        for number, entities in zip(numbers, decoded, strict=True):
            results[number] = entities
    model.train(training)
    return results
