"""Relations by classifying pairs of predicted entities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from pydantic import Field
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from spanwise.core.types import Sentence
from spanwise.decoding.entity_pairs import all_pairs
from spanwise.encoders.base import Encoder, TokenStates
from spanwise.encoders.recurrent import BiLSTM
from spanwise.heads.base import Labels, OnnxGraph, ScoredPairs, ScoredSpans
from spanwise.heads.onnx import RelationGraph
from spanwise.heads.partial import Known
from spanwise.heads.relations import RelationHead, RelationSettings
from spanwise.heads.sentence_cache import Ints, SentenceCache
from spanwise.heads.span_head import sentence_indices
from spanwise.spans.matching import PackedSpans
from spanwise.spans.pairs import PairLayer, SpanParts

MAX_VALUES = 1 << 24  # of the vectors and scores of pairs at a time: 64 MiB of float32, and some copies of them


class SpanRelationSettings(RelationSettings):
    """Settings of ``SpanRelations``; ``entities`` may be any entity head."""

    entities: dict[str, Any] = Field(
        default_factory=lambda: {"kind": "biaffine"}, description="the head for entities: its kind and settings"
    )
    wrong: int = Field(default=2, ge=0, description="negative spans per sentence that are paired in training")
    wrong_types: int = Field(default=0, ge=0, description="gold spans of a wrong type per sentence that are paired")
    distances: bool = Field(default=False, description="add an embedding of the order and distance of two spans")
    rank: int = Field(default=0, ge=0, description="size of a product of both spans; 0: no product")
    hidden: int = Field(default=0, ge=0, description="size of a BiLSTM over the words, for relations only; 0: none")


class GoldPairs(NamedTuple):
    """A sentence's distinct entities [n, 3] (start, end, label) and relations [m, 3] (type, head and tail index)."""

    entities: Ints
    relations: Ints


class SpanRelations(RelationHead):
    """Classifier of entity pairs: a probability for each relation, so that several may be predicted.

    Training uses pairs of gold entities and pairs with a few negative spans, because these are the
    mistakes that the entity head will make: random spans, gold spans with a moved boundary, and with
    ``wrong_types`` gold spans of a wrong type. The loss is binary cross-entropy.

    Use it if the words between two entities matter; the default recipe does. ``PointerRelations`` is
    faster and scores all word pairs at once.

    >>> from spanwise.encoders.static import StaticEncoder, StaticSettings
    >>> encoder = StaticEncoder.build(StaticSettings(hidden=8), [Sentence("s1", ("aspirin", "helps"))])
    >>> entities = {"kind": "biaffine", "decoding": "nested"}
    >>> head = SpanRelations(encoder, Labels(("Drug",), ("treats",)), SpanRelationSettings(entities=entities))
    >>> type(head.wrapped).__name__, head.finds_relations
    ('Biaffine', True)
    """

    settings_class = SpanRelationSettings
    settings: SpanRelationSettings

    def __init__(self, encoder: Encoder, labels: Labels, settings: SpanRelationSettings) -> None:
        super().__init__(encoder, labels, settings)
        width = encoder.width
        self.context = BiLSTM(width, settings.hidden) if settings.hidden else None
        if self.context is not None:
            width = self.context.width
        self.layer = PairLayer(width, len(labels.entities), has_distances=settings.distances, rank=settings.rank)
        self.classifier = nn.Linear(width, len(labels.relations))
        self._gold = SentenceCache(self._gold_pairs)

    @classmethod
    def build(cls, encoder: Encoder, labels: Labels, settings: SpanRelationSettings) -> SpanRelations:
        return cls(encoder, labels, settings)

    def relation_targets(self, sentences: Sequence[Sentence], generator: np.random.Generator | None) -> dict[str, Tensor]:
        """``spans`` [4, S]: sentence, start, end, label; ``pairs`` [2, P] of them; ``positives``: flat indices into [P, R]."""
        gold_pairs = [self._gold(sentence) for sentence in sentences]
        spans = [gold.entities for gold in gold_pairs]
        if generator is not None:
            spans = [
                np.concatenate(
                    [gold, self._sample_negatives(gold, len(sentence.words), generator), self._mistype(gold, generator)]
                )
                for gold, sentence in zip(spans, sentences, strict=True)
            ]
        counts = np.array([len(sentence_spans) for sentence_spans in spans], np.int64)
        first, second = all_pairs(counts)
        # The pair (i, j) of a sentence with n spans has the index i * n + j after the pairs of all earlier sentences.
        offset = np.cumsum(counts**2) - counts**2
        rows = np.concatenate([*(gold.relations for gold in gold_pairs), np.empty((0, 3), np.int64)])
        sentence_index = sentence_indices([gold.relations for gold in gold_pairs])
        pair = offset[sentence_index] + rows[:, 1] * counts[sentence_index] + rows[:, 2]
        columns = np.concatenate([*spans, np.empty((0, 3), np.int64)]).T
        return {
            "spans": torch.from_numpy(np.concatenate([sentence_indices(spans)[None], columns])),
            "pairs": torch.from_numpy(np.stack([first, second])),
            "positives": torch.from_numpy(pair * len(self.labels.relations) + rows[:, 0]),
        }

    def relation_loss(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Tensor:
        """With more than ``pairs_at_once`` pairs, they are computed in groups, and again for their gradients."""
        sentence, start, end, label = targets["spans"].unbind(0)
        first, second = targets["pairs"].unbind(0)
        words = self.dropout(self._contextualize(states))
        parts = self.layer.span_parts(words, PackedSpans(sentence, start, end), label)
        size, known = self.pairs_at_once, Known.select(targets)
        if len(first) <= size:
            values = self._pair_losses(parts, first, second, targets["positives"], known)
        else:
            groups = []
            for low in range(0, len(first), size):
                heads, tails = first[low : low + size], second[low : low + size]
                positives = targets["positives"] - low * len(self.labels.relations)
                groups.append(checkpoint(self._pair_losses, parts, heads, tails, positives, known, use_reentrant=False))
            values = torch.cat(groups)
        return values.new_zeros(len(states.words)).index_add(0, sentence[first], values)

    def _pair_losses(
        self, parts: SpanParts, first: Tensor, second: Tensor, positives: Tensor, known: Known | None
    ) -> Tensor:  # fmt: skip
        """The loss of each pair [P], summed over relations. ``positives`` outside of [P, R] are those of other pairs."""
        logits = self._classify(self.layer.pairs(parts, first, second))
        count = logits.numel()
        # Selecting the positives of these pairs would make the CPU wait for their number: the others share an extra cell.
        cells = positives.masked_fill((positives < 0) | (positives >= count), count)
        gold = logits.new_zeros(count + 1).index_fill(0, cells, 1.0)[:count].view_as(logits)
        values = F.binary_cross_entropy_with_logits(logits, gold, reduction="none")
        if known is not None:
            sentence, start, end = parts.spans
            both = torch.minimum(start[first], start[second]), torch.maximum(end[first], end[second])
            is_open = known.is_open_pair(sentence[first], *both).unsqueeze(1)
            unmarked = F.softplus(logits + known.log_masses(is_open, sentence[first]))
            values = values - unmarked.masked_fill(gold > 0, 0.0)
        return values.sum(1)

    def score_pairs(self, states: TokenStates, spans: ScoredSpans) -> ScoredPairs:
        counts = np.bincount(spans.sentence.cpu().numpy(), minlength=len(states.words))
        first, second = (torch.from_numpy(side).to(states.words.device) for side in all_pairs(counts))
        packed, words = PackedSpans(spans.sentence, spans.start, spans.end), self._contextualize(states)
        pairs, size = [], self.pairs_at_once
        for low in range(0, max(1, len(first)), size):
            heads, tails = first[low : low + size], second[low : low + size]
            logits = self.logits(words, packed, spans.label, heads, tails)
            pair, label = (logits > self.cutoff).nonzero().unbind(1)
            pairs.append((heads[pair], tails[pair], label, logits[pair, label].sigmoid()))
        return ScoredPairs(*(torch.cat(column) for column in zip(*pairs, strict=True)))

    @property
    def pairs_at_once(self) -> int:
        """The number of pairs that are computed together, which bounds the memory."""
        return max(1, MAX_VALUES // (self.classifier.in_features + self.classifier.out_features))

    @property
    def onnx(self) -> OnnxGraph | str:
        """The graph of the entity head, and one that scores pairs of its decoded entities."""
        graph = self.entities.onnx
        if isinstance(graph, str):
            return graph
        relations = RelationGraph(
            compute=self._pair_logits, types=self.labels.relations, threshold=self.relation_threshold,
            has_joint_scores=self.settings.joint_scores,
        )  # fmt: skip
        return replace(graph, relations=relations)

    def _pair_logits(self, states: TokenStates, inputs: Mapping[str, Tensor]) -> Tensor:
        spans = PackedSpans(inputs["sentence"], inputs["start"], inputs["end"])
        return self.logits(self._contextualize(states), spans, inputs["label"], inputs["pair_first"], inputs["pair_second"])

    def logits(self, words: Tensor, spans: PackedSpans, label: Tensor, first: Tensor, second: Tensor) -> Tensor:
        """The logits of all relations for each pair: [P, R] in float32."""
        return self._classify(self.layer(words, spans, label, first, second))

    def _classify(self, pairs: Tensor) -> Tensor:
        scores: Tensor = self.classifier(self.dropout(pairs)).float()
        return scores

    def _contextualize(self, states: TokenStates) -> Tensor:
        """The words that the relation layer reads [B, T, d]."""
        if self.context is None:
            return states.words
        words: Tensor = self.context(self.dropout(states.words).float(), states.mask.sum(1))
        return words

    def _gold_pairs(self, sentence: Sentence) -> GoldPairs:
        rows = [(*entity.range, self.entity_index.get(entity.type, -1)) for entity in sentence.entities]
        index = {row: position for position, row in enumerate(dict.fromkeys(row for row in rows if row[2] >= 0))}
        relations = {
            (self.relation_index[relation.type], index[rows[relation.head]], index[rows[relation.tail]])
            for relation in sentence.relations
            if relation.type in self.relation_index and rows[relation.head] in index and rows[relation.tail] in index
        }
        return GoldPairs(np.array(list(index), np.int64).reshape(-1, 3), np.array(sorted(relations), np.int64).reshape(-1, 3))

    def _sample_negatives(self, gold: Ints, length: int, generator: np.random.Generator) -> Ints:
        """At most ``wrong`` labelled spans that are not gold: random spans, and gold spans with a moved boundary."""
        count = self.settings.wrong
        if not len(gold) or not count:
            return np.empty((0, 3), np.int64)
        rows = gold[generator.integers(len(gold), size=count)].copy()
        # One half moves a boundary of a gold span; the other half has the width of a gold span and a random start.
        is_moved = np.arange(count) < (count + 1) // 2
        step = generator.choice([-2, -1, 1, 2], size=count)
        side = generator.integers(2, size=count)
        rows[np.arange(count), side] += np.where(is_moved, step, 0)
        shift = generator.integers(length, size=count) - rows[:, 0]
        rows[:, :2] += np.where(is_moved, 0, shift)[:, None]
        is_span = (rows[:, 0] >= 0) & (rows[:, 1] <= length) & (rows[:, 0] < rows[:, 1])
        is_gold = (rows[:, None, :2] == gold[None, :, :2]).all(2).any(1)
        negatives: Ints = rows[is_span & ~is_gold]
        return negatives

    def _mistype(self, gold: Ints, generator: np.random.Generator) -> Ints:
        """At most ``wrong_types`` gold spans with another type, which they do not have as well."""
        count, types = self.settings.wrong_types, len(self.labels.entities)
        if not len(gold) or not count or types == 1:
            return np.empty((0, 3), np.int64)
        rows = gold[generator.integers(len(gold), size=count)].copy()
        rows[:, 2] = (rows[:, 2] + generator.integers(1, types, size=count)) % types
        is_gold = (rows[:, None] == gold[None]).all(2).any(1)
        mistyped: Ints = rows[~is_gold]
        return mistyped
