"""Predicting sentences in batches of like length, in the order they came."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import torch

from spanwise.batching import moved
from spanwise.decoding import Found
from spanwise.device import exact_products
from spanwise.evaluation.threshold import at_least
from spanwise.heads.base import Head
from spanwise.inference.encoding import encoded
from spanwise.model import Model
from spanwise.types import Sentence

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

    Only some thousand sentences are in memory at a time. ``threshold`` drops entities and relations whose score is lower.
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


def predict_prepared(
    model: Model, sentences: Sequence[Sentence], prepared: Sequence[Any], *, batch_size: int = 64, threshold: float = 0.0
) -> list[Sentence]:
    """The same for sentences that the model's encoder has prepared already."""
    return predict_with([model.head], model, sentences, prepared, batch_size=batch_size, threshold=threshold)[model.head]


@torch.inference_mode()
@exact_products()
def predict_with(
    heads: Iterable[Head], model: Model, sentences: Sequence[Sentence], prepared: Sequence[Any], *, batch_size: int = 64,
    threshold: float = 0.0,
) -> dict[Head, list[Sentence]]:  # fmt: skip
    """What each of the heads, which learned on the model's encoder, predicts; each sentence is encoded once."""
    every: dict[Head, list[Found]] = {head: [Found(())] * len(sentences) for head in heads}
    for numbers, states, device in encoded(model, prepared, batch_size):
        chosen = [sentences[number] for number in numbers]
        for head, found in every.items():
            read = head.read(head.score(states, moved(head.targets(chosen, gold=False), device)), len(chosen))
            for number, one in zip(numbers, read, strict=True):
                found[number] = one
    return {
        head: list(
            at_least((replace(s, **own._asdict(), links=()) for s, own in zip(sentences, found, strict=True)), threshold)
        )
        for head, found in every.items()
    }
