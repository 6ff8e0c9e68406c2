"""The vectors by which a model judges spans, and the probabilities that come of it, for whoever wants to look at them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from spanwise.batching.batches import moved
from spanwise.core.types import Sentence, Span
from spanwise.encoders.base import TokenStates
from spanwise.heads.base import SpanVectors
from spanwise.models.model import Model
from spanwise.prediction.encoding import encoded
from spanwise.runtime.device import exact_products


class SentenceVectors(NamedTuple):
    """The spans of a sentence [n, 2] (start, end; words) and their vectors [n, d], in text order."""

    spans: npt.NDArray[np.int64]
    vectors: npt.NDArray[np.float32]


def span_vectors(
    model: Model,
    sentences: Sequence[Sentence],
    spans: Sequence[Iterable[Span]] | None = None,
    *,
    batch_size: int = 64,
    context: Sequence[Sentence] = (),
) -> list[SentenceVectors]:
    """The vectors before the logits of all spans of each sentence, or of those in ``spans``, one iterable per sentence.

    Spans that the model's head does not judge (wider than its widest, or pruned) have none and are left out.
    """
    return _asked(model, model.head.span_vectors, sentences, spans, batch_size, context)


def span_probabilities(
    model: Model,
    sentences: Sequence[Sentence],
    spans: Sequence[Iterable[Span]] | None = None,
    *,
    batch_size: int = 64,
    context: Sequence[Sentence] = (),
) -> list[SentenceVectors]:
    """The same with a probability for each type in place of a vector and last, where entities are to be found, for NONE."""
    return _asked(model, model.head.span_probabilities, sentences, spans, batch_size, context)


@torch.inference_mode()
@exact_products()
def _asked(
    model: Model, ask: Callable[[TokenStates, Mapping[str, Tensor]], SpanVectors], sentences: Sequence[Sentence],
    spans: Sequence[Iterable[Span]] | None, batch_size: int, context: Sequence[Sentence],
) -> list[SentenceVectors]:  # fmt: skip
    prepared = model.encoder.prepare(sentences, context)
    wanted = None if spans is None else [set(map(tuple, own)) for own in spans]
    found: list[SentenceVectors | None] = [None] * len(sentences)
    for numbers, states, device in encoded(model, prepared, batch_size):
        targets = model.head.targets([sentences[number] for number in numbers], gold=False)
        packed = ask(states, moved(targets, device))
        owner, start, end = (column.cpu().numpy() for column in (packed.sentence, packed.start, packed.end))
        vectors = packed.vectors.float().cpu().numpy()
        order = np.lexsort((end, start, owner))
        places, borders = np.stack((start, end), 1), np.searchsorted(owner[order], np.arange(len(numbers) + 1))
        for number, own in zip(numbers, np.split(order, borders[1:-1]), strict=True):
            if wanted is not None:
                own = own[[tuple(span) in wanted[number] for span in places[own].tolist()]]
            found[number] = SentenceVectors(places[own], vectors[own])
    return [vectors for vectors in found if vectors is not None]
