"""Span vectors and type probabilities of a model, for analysis."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from spanwise.batching.batches import to_device
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence, Span
from spanwise.encoders.base import TokenStates
from spanwise.heads import head_values
from spanwise.heads.abilities import HasSpanProbabilities, HasSpanVectors, find_ability
from spanwise.heads.base import Head, SpanVectors
from spanwise.models.model import Model
from spanwise.prediction.encoding import encode_batches
from spanwise.runtime.device import full_precision


class SentenceVectors(NamedTuple):
    """Word ranges of the spans of a sentence [n, 2] and their vectors [n, d], in text order."""

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
    """Vectors before the logits, of all spans or of those in ``spans`` (one iterable per sentence).

    Spans that the head does not score (too wide or pruned) are omitted.
    """
    head = find_ability(model.head, HasSpanVectors)
    if head is None:
        raise SpanwiseError(f"the head {head_values(model.head)['kind']} has no span vectors")
    return _compute(model, head, head.span_vectors, sentences, spans, batch_size, context)


def span_probabilities(
    model: Model,
    sentences: Sequence[Sentence],
    spans: Sequence[Iterable[Span]] | None = None,
    *,
    batch_size: int = 64,
    context: Sequence[Sentence] = (),
) -> list[SentenceVectors]:
    """Type probabilities instead of vectors; heads that predict entities add NONE as the last column."""
    head = find_ability(model.head, HasSpanProbabilities)
    if head is None:
        raise SpanwiseError(f"the head {head_values(model.head)['kind']} has no span probabilities")
    return _compute(model, head, head.span_probabilities, sentences, spans, batch_size, context)


@torch.inference_mode()
@full_precision()
def _compute(
    model: Model, head: Head, function: Callable[[TokenStates, Mapping[str, Tensor]], SpanVectors],
    sentences: Sequence[Sentence], spans: Sequence[Iterable[Span]] | None, batch_size: int, context: Sequence[Sentence],
) -> list[SentenceVectors]:  # fmt: skip
    prepared = model.encoder.prepare(sentences, context)
    requested = None if spans is None else [set(map(tuple, ranges)) for ranges in spans]
    results: list[SentenceVectors | None] = [None] * len(sentences)
    for indices, states, device in encode_batches(model, prepared, batch_size):
        targets = head.targets([sentences[index] for index in indices], gold=False)
        packed = function(states, to_device(targets, device))
        sentence, start, end = (column.cpu().numpy() for column in (packed.sentence, packed.start, packed.end))
        vectors = packed.vectors.float().cpu().numpy()
        order = np.lexsort((end, start, sentence))
        ranges, splits = np.stack((start, end), 1), np.searchsorted(sentence[order], np.arange(len(indices) + 1))
        for index, rows in zip(indices, np.split(order, splits[1:-1]), strict=True):
            if requested is not None:
                rows = rows[[tuple(span) in requested[index] for span in ranges[rows].tolist()]]
            results[index] = SentenceVectors(ranges[rows], vectors[rows])
    return [result for result in results if result is not None]
