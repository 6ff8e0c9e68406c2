"""Predicting sentences in batches of like length, in the order they came."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import torch

from spanwise.batching import make_batch, plan
from spanwise.decoding import decode
from spanwise.model import Model
from spanwise.types import Entity, Sentence

CHUNK = 4096  # sentences whose lengths are sorted together
REACH = 512  # sentences before and behind a chunk that may be context


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
    before: list[Sentence] = []
    chunk = list(islice(stream, CHUNK))
    while chunk:
        ahead = list(islice(stream, REACH))
        prepared = model.encoder.prepare(chunk, [*before, *ahead, *context])
        yield from predict_prepared(model, chunk, prepared, batch_size=batch_size, threshold=threshold)
        before = [*before, *chunk][-REACH:]
        chunk = [*ahead, *islice(stream, CHUNK - len(ahead))]


@torch.inference_mode()
def predict_prepared(
    model: Model, sentences: Sequence[Sentence], prepared: Sequence[Any], *, batch_size: int = 64, threshold: float = 0.0
) -> list[Sentence]:
    """The same for sentences that the model's encoder has prepared already."""
    training = model.training
    model.eval()
    device = next(model.parameters()).device
    costs = np.array([model.encoder.cost(item) for item in prepared], np.int64)
    found: list[tuple[Entity, ...]] = [()] * len(sentences)
    for numbers in plan(costs, batch_size, None, None):
        batch = make_batch(model.encoder, model.head, sentences, prepared, numbers).to(device)
        spans = model.score(batch)
        host = [t.cpu().numpy() for t in (spans.sentence, spans.start, spans.end, spans.label, spans.score)]
        decoded = decode(
            host[0], host[1], host[2], host[3], host[4], count=len(numbers), types=model.labels.entities,
            policy=model.head.decoding,
        )  # fmt: skip
        for number, entities in zip(numbers, decoded, strict=True):
            found[number] = tuple(entity for entity in entities if (entity.score or 0.0) >= threshold)
    model.train(training)
    return [replace(s, entities=entities, relations=(), links=()) for s, entities in zip(sentences, found, strict=True)]
