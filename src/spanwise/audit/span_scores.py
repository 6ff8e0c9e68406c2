"""The log-odds that a model gives to the spans of sentences that it was not trained on."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from spanwise.batching.batches import to_device
from spanwise.batching.plan import Ints
from spanwise.core.types import Sentence, Span
from spanwise.decoding.decode import Predictions
from spanwise.encoders.base import TokenStates
from spanwise.heads.abilities import CachesSentences, HasSpanProbabilities, find_ability, heads_with
from spanwise.models.model import Model
from spanwise.prediction.encoding import encode_batches
from spanwise.prediction.streaming import CHUNK
from spanwise.prediction.windows import split_into_windows, window_ranges
from spanwise.runtime.device import full_precision

MIN_PROBABILITY = 0.003  # spans below are stored only if they are requested
NOT_PREDICTED = MIN_PROBABILITY / 2  # probability of spans that a tagger does not predict
EDGE = 1e-6  # probabilities are limited to EDGE .. 1 - EDGE, because float32 has no more
BATCH_SIZE = 32

Rows = npt.NDArray[np.float64]


class SpanScores(NamedTuple):
    """Scored spans of several sentences: one row per span and type, sorted by sentence, start, end and type.

    ``sentence`` is an index into the scored sentences, ``label`` one into the types.
    """

    sentence: npt.NDArray[np.int32]
    start: npt.NDArray[np.int32]
    end: npt.NDArray[np.int32]
    label: npt.NDArray[np.int32]
    log_odds: npt.NDArray[np.float32]


def score_spans(
    model: Model, types: Sequence[str], sentences: Sequence[Sentence], requested: Sequence[Collection[Span]],
    context: Sequence[Sentence] = (),
) -> SpanScores:  # fmt: skip
    """Score the spans of sentences with a model.

    Rows are all spans and types with a probability of at least ``MIN_PROBABILITY``, and all types of the
    ``requested`` spans of each sentence. Taggers have no probability of an arbitrary span: for them the
    rows are their predicted entities, and the requested spans with ``NOT_PREDICTED``. ``context`` are other
    sentences of the same documents.
    """
    # Long sentences are scored in windows, as in prediction.
    windows, places, wanted = [], [], []
    for index, (sentence, spans) in enumerate(zip(sentences, requested, strict=True)):
        for window, (start, end) in zip(split_into_windows(sentence), window_ranges(len(sentence.words)), strict=True):
            windows.append(window)
            places.append((index, start))
            wanted.append([Span(a - start, b - start) for a, b in spans if start <= a and b <= end])
    offsets = np.array(places, np.float64).reshape(-1, 2)
    rows: list[Rows] = [np.zeros((0, 5))]
    for first in range(0, len(windows), CHUNK):
        part = slice(first, first + CHUNK)
        for indices, table in _score_chunk(model, types, windows[part], wanted[part], context):
            places_of_rows = offsets[np.asarray(indices)[table[:, 0].astype(np.int64)] + first]
            table[:, 0] = places_of_rows[:, 0]
            table[:, 1:3] += places_of_rows[:, 1:]
            rows.append(table)
    table = np.concatenate(rows)
    # Windows overlap: if a span is in two of them, the higher probability counts.
    table = table[np.lexsort((-table[:, 4], *table[:, 3::-1].T))]
    is_first = np.append(True, (np.diff(table[:, :4], axis=0) != 0).any(1))[: len(table)]
    sentence_index, begin, end_index, label = table[is_first, :4].T.astype(np.int32)
    probability = np.clip(table[is_first, 4], EDGE, 1 - EDGE)
    log_odds = np.log(probability / (1 - probability)).astype(np.float32)
    return SpanScores(sentence_index, begin, end_index, label, log_odds)


@torch.inference_mode()
@full_precision()
def _score_chunk(
    model: Model, types: Sequence[str], sentences: Sequence[Sentence], requested: Sequence[Collection[Span]],
    context: Sequence[Sentence],
) -> list[tuple[Ints, Rows]]:  # fmt: skip
    """The sentences of each batch and its rows, in which sentences are counted within the batch."""
    head, tables = model.head, []
    scorer = find_ability(head, HasSpanProbabilities)
    scorer = scorer if scorer is not None and scorer.family == "span" else None
    for indices, states, device in encode_batches(model, model.encoder.prepare(sentences, context), BATCH_SIZE):
        batch = [sentences[index] for index in indices]
        if scorer is not None:
            spans = [requested[index] for index in indices]
            tables.append((indices, _span_rows(scorer, types, states, batch, spans, device)))
        else:
            decoded = head.decode(head.score(states, to_device(head.targets(batch, gold=False), device)), len(batch))
            rows = list(_entity_rows(decoded, types))
            if head.widest_span is None:  # otherwise a span may be missing because it is too wide
                rows += _rejected_rows(rows, [requested[index] for index in indices], len(types))
            tables.append((indices, np.array(rows, np.float64).reshape(-1, 5)))
    for part in heads_with(head, CachesSentences):
        part.clear_cache()
    return tables


def _span_rows(
    scorer: HasSpanProbabilities, types: Sequence[str], states: TokenStates, batch: Sequence[Sentence],
    requested: Sequence[Collection[Span]], device: torch.device,
) -> Rows:  # fmt: skip
    """The rows of a batch: sentence, start, end, label and probability."""
    packed = scorer.span_probabilities(states, to_device(scorer.targets(batch, gold=False), device))
    known = [(label, scorer.labels.entities.index(type)) for label, type in enumerate(types) if type in scorer.labels.entities]
    probabilities = packed.vectors.float().index_select(1, torch.tensor([column for _, column in known], device=device))

    # A span is one number, so that the requested ones are found without a loop over all spans.
    base = max(len(sentence.words) for sentence in batch) + 1
    keys = (packed.sentence.long() * base + packed.start) * base + packed.end
    wanted = [(index * base + start) * base + end for index, spans in enumerate(requested) for start, end in spans]
    is_requested = torch.isin(keys, torch.tensor(wanted, dtype=torch.long, device=device))

    row, column = ((probabilities >= MIN_PROBABILITY) | is_requested.unsqueeze(1)).nonzero(as_tuple=True)
    places = [part.index_select(0, row).cpu().numpy() for part in (packed.sentence, packed.start, packed.end)]
    labels = np.array([label for label, _ in known])[column.cpu().numpy()]
    return np.stack([*places, labels, probabilities[row, column].cpu().numpy()], 1).astype(np.float64)


def _entity_rows(decoded: Sequence[Predictions], types: Sequence[str]) -> Iterator[tuple[float, ...]]:
    """The predicted contiguous entities of a batch as rows."""
    for index, predictions in enumerate(decoded):
        for entity in predictions.entities:
            if not entity.is_discontinuous and entity.type in types:
                yield index, *entity.range, types.index(entity.type), 1.0 if entity.score is None else entity.score


def _rejected_rows(
    predicted: Sequence[tuple[float, ...]], requested: Sequence[Collection[Span]], type_count: int
) -> list[tuple[float, ...]]:  # fmt: skip
    """Rows of the requested spans and types of a batch that are not predicted."""
    known = {row[:4] for row in predicted}
    keys = product(((index, *span) for index, spans in enumerate(requested) for span in spans), range(type_count))
    return [(*place, label, NOT_PREDICTED) for place, label in keys if (*place, label) not in known]
