"""The vectors by which a model judges spans, for whoever wants to look at them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from spanwise.batching import moved
from spanwise.device import exact_products
from spanwise.inference.encoding import encoded
from spanwise.model import Model
from spanwise.types import Sentence, Span


class SentenceVectors(NamedTuple):
    """The spans of a sentence [n, 2] (start, end; words) and their vectors [n, d], in text order."""

    spans: npt.NDArray[np.int64]
    vectors: npt.NDArray[np.float32]


@torch.inference_mode()
@exact_products()
def span_vectors(
    model: Model,
    sentences: Sequence[Sentence],
    spans: Sequence[Iterable[Span]] | None = None,
    *,
    batch_size: int = 64,
    context: Sequence[Sentence] = (),
) -> list[SentenceVectors]:
    """The vectors before the logits of all spans of each sentence, or of those in ``spans``, one iterable per sentence.

    Spans that the model's head does not judge (wider than its widest) have none and are left out.
    """
    prepared = model.encoder.prepare(sentences, context)
    wanted = None if spans is None else [set(map(tuple, own)) for own in spans]
    found: list[SentenceVectors | None] = [None] * len(sentences)
    for numbers, states, device in encoded(model, prepared, batch_size):
        targets = model.head.targets([sentences[number] for number in numbers], gold=False)
        packed = model.head.span_vectors(states, moved(targets, device))
        owner, start, end = (column.cpu().numpy() for column in (packed.sentence, packed.start, packed.end))
        vectors = packed.vectors.float().cpu().numpy()
        order = np.lexsort((end, start, owner))
        places = np.stack((start, end), 1)
        for row, number in enumerate(numbers):
            own = order[owner[order] == row]
            if wanted is not None:
                own = own[[tuple(span) in wanted[number] for span in places[own].tolist()]]
            found[number] = SentenceVectors(places[own], vectors[own])
    return [vectors for vectors in found if vectors is not None]
