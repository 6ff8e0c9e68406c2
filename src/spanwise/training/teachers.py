"""Probabilities and predictions of trained models, the teachers, for the sentences that a student learns from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import torch

from spanwise.batching.batches import to_device
from spanwise.core.counting import counted
from spanwise.core.types import Entity, Relation, Sentence, Span
from spanwise.decoding.decode import Policy, Predictions, add_entities, decode
from spanwise.encoders.base import TokenStates
from spanwise.heads.abilities import CachesSentences, HasSpanProbabilities, find_ability, heads_with
from spanwise.heads.base import Head, Labels
from spanwise.losses.smoothing import SoftSpans
from spanwise.models.model import Model
from spanwise.prediction.encoding import encode_batches
from spanwise.prediction.streaming import CHUNK
from spanwise.runtime.device import full_precision, should_use_cuda
from spanwise.runtime.progress import ProgressBar, listen

MIN_PROBABILITY = 0.01  # lower probabilities are not stored; the student learns NONE for these spans
MIN_VOTE = 0.5  # mean probability of an entity, or share of the teachers for a relation, that makes it a pseudo-label
BATCH_SIZE = 32

EntityKey: TypeAlias = tuple[str, tuple[Span, ...]]


class Opinion(NamedTuple):
    """The predictions of one teacher, or the mean of all teachers, for a sentence.

    ``spans`` are probabilities of contiguous entities. ``predictions`` are entities and relations, for
    the parts of a student that learn only labels.
    """

    spans: SoftSpans
    predictions: Predictions


@dataclass
class _Votes:
    """Sums over the teachers for one sentence."""

    spans: SoftSpans
    discontinuous: dict[EntityKey, float] = field(default_factory=dict)
    relations: Counter[tuple[str, EntityKey, EntityKey]] = field(default_factory=Counter)


@dataclass
class _Voters:
    """How many teachers predict entities, and relations and discontinuous entities of each type."""

    entities: int = 0
    relations: Counter[str] = field(default_factory=Counter)
    discontinuous: Counter[str] = field(default_factory=Counter)

    def add(self, head: Head) -> None:
        self.entities += 1
        self.relations.update(head.labels.relations if head.finds_relations else ())
        self.discontinuous.update(head.discontinuous_types)


def ask_teachers(
    teachers: Sequence[Path], labels: Labels, sentences: Sequence[Sentence], *, policy: Policy = "nested",
    context: Sequence[Sentence] = (), device: str = "auto", log: Callable[[str], None] = print,
) -> list[Opinion]:  # fmt: skip
    """Return the mean opinion of trained models on each sentence.

    One teacher is in memory at a time. ``labels`` are the types of the student, which all teachers
    must know; their other types are ignored. ``policy`` decides between overlapping predictions.
    """
    votes, voters = [_Votes(to_spans(())) for _ in sentences], _Voters()
    for number, folder in enumerate(teachers, 1):
        model = Model.load(folder)
        log(f"teacher {number} of {len(teachers)}: {folder} reads {counted(len(sentences), 'sentence')}")
        voters.add(model.head.prediction_head)
        model = model.to("cuda" if should_use_cuda(device) else "cpu")
        with _progress(len(sentences)):
            for vote, opinion in zip(votes, opinions(model, labels, sentences, context), strict=True):
                _add(vote, opinion, labels)
    return [_summarise(vote, labels, voters, policy) for vote in votes]


def opinions(model: Model, labels: Labels, sentences: Sequence[Sentence], context: Sequence[Sentence]) -> Iterator[Opinion]:
    """The opinion of one model on each sentence, in order."""
    for start in range(0, len(sentences), CHUNK):
        yield from _chunk_opinions(model, labels, sentences[start : start + CHUNK], context)


@torch.inference_mode()
@full_precision()
def _chunk_opinions(
    model: Model, labels: Labels, sentences: Sequence[Sentence], context: Sequence[Sentence]
) -> list[Opinion]:  # fmt: skip
    head = model.head
    # Taggers have no probability of a whole span: their predictions count with their scores.
    scorer = find_ability(head, HasSpanProbabilities)
    scorer = scorer if scorer is not None and scorer.family == "span" else None
    results = [Opinion(to_spans(()), Predictions(()))] * len(sentences)
    for indices, states, device in encode_batches(model, model.encoder.prepare(sentences, context), BATCH_SIZE):
        batch = [sentences[index] for index in indices]
        decoded = head.decode(head.score(states, to_device(head.targets(batch, gold=False), device)), len(batch))
        if scorer is None:
            spans = [_scored_entities(predictions, labels) for predictions in decoded]
        else:
            spans = _span_probabilities(scorer, labels, states, batch, device)
        for index, sentence_spans, predictions in zip(indices, spans, decoded, strict=True):
            results[index] = Opinion(sentence_spans, predictions)
    for part in heads_with(head, CachesSentences):
        part.clear_cache()
    return results


def _span_probabilities(
    scorer: HasSpanProbabilities, labels: Labels, states: TokenStates, batch: Sequence[Sentence], device: torch.device
) -> list[SoftSpans]:  # fmt: skip
    """The probabilities of the student's types above ``MIN_PROBABILITY``, for each sentence of a batch."""
    packed = scorer.span_probabilities(states, to_device(scorer.targets(batch, gold=False), device))
    columns = torch.tensor([scorer.labels.entities.index(type) for type in labels.entities], device=device)
    probabilities = packed.vectors.float().index_select(1, columns)
    row, label = (probabilities > MIN_PROBABILITY).nonzero(as_tuple=True)
    sentence, start, end = (column.index_select(0, row) for column in (packed.sentence, packed.start, packed.end))
    arrays = [column.cpu().numpy() for column in (sentence, start, end, label, probabilities[row, label])]
    order = np.lexsort((arrays[3], arrays[2], arrays[1], arrays[0]))
    index, *spans = (array[order] for array in arrays)
    cuts = np.searchsorted(index, np.arange(1, len(batch)))
    return [SoftSpans(*parts) for parts in zip(*(np.split(column, cuts) for column in spans), strict=True)]


def _scored_entities(predictions: Predictions, labels: Labels) -> SoftSpans:
    """Predicted contiguous entities with their scores as probabilities."""
    rows = [
        (*entity.range, labels.entities.index(entity.type), 1.0 if entity.score is None else entity.score)
        for entity in predictions.entities
        if not entity.is_discontinuous and entity.type in labels.entities
    ]
    return to_spans(rows)


def to_spans(rows: Sequence[tuple[int, int, int, float]]) -> SoftSpans:
    """Convert rows of start, end, label and probability to columns."""
    columns = np.array(rows, np.float64).reshape(-1, 4).T
    start, end, label = columns[:3].astype(np.int64)
    return SoftSpans(start, end, label, columns[3].astype(np.float32))


def _add(vote: _Votes, opinion: Opinion, labels: Labels) -> None:
    """Add the opinion of one teacher on a sentence."""
    vote.spans = _sum(vote.spans, opinion.spans)
    keys: list[EntityKey] = [(entity.type, entity.fragments) for entity in opinion.predictions.entities]
    for entity, key in zip(opinion.predictions.entities, keys, strict=True):
        if entity.is_discontinuous and entity.type in labels.entities:
            score = 1.0 if entity.score is None else entity.score
            vote.discontinuous[key] = vote.discontinuous.get(key, 0.0) + score
    for relation in opinion.predictions.relations:
        if relation.type in labels.relations:
            vote.relations[relation.type, keys[relation.head], keys[relation.tail]] += 1


def _sum(left: SoftSpans, right: SoftSpans) -> SoftSpans:
    """Add the probabilities of equal rows; sums of several teachers may exceed 1."""
    rows = np.concatenate([np.stack(spans[:3], 1) for spans in (left, right)])
    masses = np.concatenate((left.mass, right.mass)).astype(np.float64)
    keys, index = np.unique(rows, axis=0, return_inverse=True)
    sums = np.bincount(index.reshape(-1), masses, len(keys)).astype(np.float32)
    return SoftSpans(keys[:, 0], keys[:, 1], keys[:, 2], sums)


def _summarise(vote: _Votes, labels: Labels, voters: _Voters, policy: Policy) -> Opinion:
    """The mean probabilities, and what most of the teachers predict that can predict it."""
    spans = vote.spans._replace(mass=(vote.spans.mass / voters.entities).astype(np.float32))
    spans = spans.select(spans.mass >= MIN_PROBABILITY)
    chosen = spans.select(spans.mass >= MIN_VOTE)
    sentence = np.zeros(len(chosen.start), np.int64)
    (entities,) = decode(sentence, *chosen, count=1, types=labels.entities, policy=policy)
    more = [
        Entity(type, fragments, score=round(mean, 6))
        for (type, fragments), total in sorted(vote.discontinuous.items())
        if (mean := total / voters.discontinuous[type]) >= MIN_VOTE
    ]
    predictions = add_entities(Predictions(entities), more)
    index = {(entity.type, entity.fragments): position for position, entity in enumerate(predictions.entities)}
    relations = tuple(
        Relation(type, index[head], index[tail])
        for (type, head, tail), count in sorted(vote.relations.items())
        if head in index and tail in index and count / voters.relations[type] >= MIN_VOTE
    )
    return Opinion(spans, Predictions(predictions.entities, relations))


@contextmanager
def _progress(total: int) -> Iterator[None]:
    """Show a bar with the number of sentences that a teacher has read."""
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        bar.show(done, lambda: "sentences")

    with ProgressBar(total) as bar, listen(advance):
        yield
