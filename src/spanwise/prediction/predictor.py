"""Predicting sentences in batches of like length, in the order they came."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from spanwise.batching.batches import moved
from spanwise.core.types import Sentence
from spanwise.decoding.decode import Predictions
from spanwise.decoding.thresholds import Threshold, apply_threshold, lowest
from spanwise.heads.base import Head
from spanwise.models.model import Model
from spanwise.prediction.encoding import encoded
from spanwise.prediction.streaming import streamed
from spanwise.runtime.device import exact_products


def predict(
    model: Model,
    sentences: Iterable[Sentence],
    *,
    batch_size: int = 64,
    threshold: Threshold = 0.0,
    context: Sequence[Sentence] = (),
) -> Iterator[Sentence]:
    """The sentences with what the model finds in place of their entities and relations, one after another as they come.

    Only some thousand sentences are in memory at a time. ``threshold`` drops entities and relations whose score is lower. Where
    it is lower than the head's own (and not 0, which leaves it to the model), the head proposes more entities.
    """
    find = partial(predict_chunk, model, batch_size=batch_size, threshold=threshold)
    return streamed(find, sentences, context=context, whole=model.needs_spans)


def predict_chunk(
    model: Model, sentences: Sequence[Sentence], around: Sequence[Sentence], *, batch_size: int = 64, threshold: Threshold = 0.0
) -> list[Sentence]:
    """The same at once; ``around`` are other sentences of their documents, which the encoder may read."""
    prepared = model.encoder.prepare(sentences, around)
    found = predict_prepared(model, sentences, prepared, batch_size=batch_size, threshold=threshold)
    for module in model.modules():
        if isinstance(module, Head):
            module.forget()
    return found


def predict_prepared(
    model: Model, sentences: Sequence[Sentence], prepared: Sequence[Any], *, batch_size: int = 64, threshold: Threshold = 0.0
) -> list[Sentence]:
    """The same for sentences that the model's encoder has prepared already."""
    return predict_with([model.head], model, sentences, prepared, batch_size=batch_size, threshold=threshold)[model.head]


@torch.inference_mode()
@exact_products()
def predict_with(
    heads: Iterable[Head], model: Model, sentences: Sequence[Sentence], prepared: Sequence[Any], *, batch_size: int = 64,
    threshold: Threshold = 0.0,
) -> dict[Head, list[Sentence]]:  # fmt: skip
    """What each of the heads, which learned on the model's encoder, predicts; each sentence is encoded once."""
    every: dict[Head, list[Predictions]] = {head: [Predictions(())] * len(sentences) for head in heads}
    with ExitStack() as stack:
        for head in every:
            stack.enter_context(proposing(head, threshold))
        for numbers, states, device in encoded(model, prepared, batch_size):
            chosen = [sentences[number] for number in numbers]
            for head, found in every.items():
                read = head.read(head.score(states, moved(head.targets(chosen, gold=False), device)), len(chosen))
                for number, one in zip(numbers, read, strict=True):
                    found[number] = one
    return {
        head: list(
            apply_threshold((replace(s, **own._asdict(), links=()) for s, own in zip(sentences, found, strict=True)), threshold)
        )
        for head, found in every.items()
    }


@contextmanager
def proposing(head: Head, threshold: Threshold) -> Iterator[float | None]:
    """While it lasts, the head proposes entities from this score on if its own threshold, which is given, is higher.

    Where types have thresholds of their own, what is below that of its type is dropped before entities are chosen among those
    that clash. For one threshold this is needless: the surer of two wins, and what it drives out is below the threshold too.
    """
    bars, asked = threshold if isinstance(threshold, Mapping) else {}, lowest(threshold)
    own = head.set_threshold(asked) if 0 < asked < 1 else None
    heads = [module for module in head.modules() if isinstance(module, Head)]
    try:
        if own is not None and own < asked:
            head.set_threshold(own)  # what is over is dropped later
        for one in heads if bars else ():
            one.min_scores = {type: bars.get(type) or own or 0.0 for type in one.labels.entities}
        yield own
    finally:
        if own is not None:
            head.set_threshold(own)
        for one in heads:
            one.min_scores = None
