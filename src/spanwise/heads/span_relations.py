"""Any head for the entities, and a classifier of pairs of them for the relations, learned together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from pydantic import Field
from torch import Tensor, nn

from spanwise.core.types import Sentence
from spanwise.encoders.base import Encoder, TokenStates
from spanwise.heads.base import Labels, ScoredPairs, ScoredSpans
from spanwise.heads.memo import Ints, Memo
from spanwise.heads.relations import RelationHead, RelationSettings
from spanwise.heads.span_head import owners
from spanwise.spans.matching import PackedSpans
from spanwise.spans.pairs import PairLayer

PAIRS = 1 << 16  # that are judged at a time


class SpanRelationSettings(RelationSettings):
    """What may be set."""

    entities: dict[str, Any] = Field(default_factory=lambda: {"kind": "biaffine"})
    wrong: int = Field(
        default=2, ge=0
    )  # spans a sentence that are no entities, paired in training so that such pairs are known


class GoldPairs(NamedTuple):
    """A sentence's distinct entities [n, 3] as start, end and label, and its relations [m, 3] as type and places among them."""

    entities: Ints
    relations: Ints


class SpanRelations(RelationHead):
    """Every pair of entities gets a probability for every relation; several may hold.

    Pairs of gold entities teach the layer, and pairs with spans that are no entities: a few at random, half of them gold ones
    with another boundary, for such are the mistakes it will be handed. The loss is binary cross-entropy.
    """

    settings_class = SpanRelationSettings
    settings: SpanRelationSettings

    def __init__(self, encoder: Encoder, labels: Labels, settings: SpanRelationSettings) -> None:
        super().__init__(encoder, labels, settings)
        self.layer = PairLayer(encoder.width, len(labels.entities))
        self.classifier = nn.Linear(encoder.width, len(labels.relations))
        self._gold = Memo(self._gold_pairs)

    @classmethod
    def build(cls, encoder: Encoder, labels: Labels, settings: SpanRelationSettings) -> SpanRelations:
        return cls(encoder, labels, settings)

    def relation_targets(self, sentences: Sequence[Sentence], generator: np.random.Generator | None) -> dict[str, Tensor]:
        """``spans`` [4, S]: sentence, start, end, label; ``pairs`` [2, P] of them; ``positives``: places in [P, R]."""
        known = [self._gold(sentence) for sentence in sentences]
        spans = [gold.entities for gold in known]
        if generator is not None and self.settings.wrong:
            spans = [
                np.concatenate([own, self._wrong(own, len(sentence.words), generator)])
                for own, sentence in zip(spans, sentences, strict=True)
            ]
        counts = np.array([len(own) for own in spans], np.int64)
        first, second = all_pairs(counts)
        # The pair (i, j) of a sentence with n spans stands at i * n + j behind the pairs of the sentences before it.
        begins = np.cumsum(counts**2) - counts**2
        rows = np.concatenate([*(gold.relations for gold in known), np.empty((0, 3), np.int64)])
        owner = owners([gold.relations for gold in known])
        pair = begins[owner] + rows[:, 1] * counts[owner] + rows[:, 2]
        columns = np.concatenate([*spans, np.empty((0, 3), np.int64)]).T
        return {
            "spans": torch.from_numpy(np.concatenate([owners(spans)[None], columns])),
            "pairs": torch.from_numpy(np.stack([first, second])),
            "positives": torch.from_numpy(pair * len(self.labels.relations) + rows[:, 0]),
        }

    def relation_loss(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Tensor:
        sentence, start, end, label = targets["spans"].unbind(0)
        first, second = targets["pairs"].unbind(0)
        logits = self.logits(self.dropout(states.words), PackedSpans(sentence, start, end), label, first, second)
        gold = torch.zeros_like(logits).view(-1).index_fill(0, targets["positives"], 1.0).view_as(logits)
        values = F.binary_cross_entropy_with_logits(logits, gold, reduction="none").sum(1)
        return values.new_zeros(len(states.words)).index_add(0, sentence[first], values)

    def pairs(self, states: TokenStates, spans: ScoredSpans) -> ScoredPairs:
        counts = np.bincount(spans.sentence.cpu().numpy(), minlength=len(states.words))
        first, second = (torch.from_numpy(side).to(states.words.device) for side in all_pairs(counts))
        packed = PackedSpans(spans.sentence, spans.start, spans.end)
        found = []
        for low in range(0, max(1, len(first)), PAIRS):
            one, other = first[low : low + PAIRS], second[low : low + PAIRS]
            logits = self.logits(states.words, packed, spans.label, one, other)
            pair, label = (logits > self.bar).nonzero().unbind(1)
            found.append((one[pair], other[pair], label, logits[pair, label].sigmoid()))
        return ScoredPairs(*(torch.cat(column) for column in zip(*found, strict=True)))

    def logits(self, words: Tensor, spans: PackedSpans, label: Tensor, first: Tensor, second: Tensor) -> Tensor:
        """The scores of all relations for each pair: [P, R] in float32."""
        hidden = self.dropout(self.layer(words, spans, label, first, second))
        scores: Tensor = self.classifier(hidden).float()
        return scores

    def _gold_pairs(self, sentence: Sentence) -> GoldPairs:
        known = [(*entity.range, self.entity_place.get(entity.type, -1)) for entity in sentence.entities]
        place = {row: number for number, row in enumerate(dict.fromkeys(row for row in known if row[2] >= 0))}
        relations = {
            (self.relation_place[relation.type], place[known[relation.head]], place[known[relation.tail]])
            for relation in sentence.relations
            if relation.type in self.relation_place and known[relation.head] in place and known[relation.tail] in place
        }
        return GoldPairs(np.array(list(place), np.int64).reshape(-1, 3), np.array(sorted(relations), np.int64).reshape(-1, 3))

    def _wrong(self, gold: Ints, length: int, generator: np.random.Generator) -> Ints:
        """At most ``wrong`` spans that are no entities, with labels: random ones, and gold ones with a boundary moved."""
        count = self.settings.wrong
        if not len(gold) or not count:
            return np.empty((0, 3), np.int64)
        rows = gold[generator.integers(len(gold), size=count)].copy()
        # Half of them stay where they are and move a boundary; the others begin anywhere, as wide as a gold one.
        moved = np.arange(count) < (count + 1) // 2
        step = generator.choice([-2, -1, 1, 2], size=count)
        side = generator.integers(2, size=count)
        rows[np.arange(count), side] += np.where(moved, step, 0)
        shift = generator.integers(length, size=count) - rows[:, 0]
        rows[:, :2] += np.where(moved, 0, shift)[:, None]
        inside = (rows[:, 0] >= 0) & (rows[:, 1] <= length) & (rows[:, 0] < rows[:, 1])
        new = ~(rows[:, None, :2] == gold[None, :, :2]).all(2).any(1)
        wrong: Ints = rows[inside & new]
        return wrong


def all_pairs(counts: Ints) -> tuple[Ints, Ints]:
    """Every pair of spans of one sentence, each span with itself too, for sentences with so many spans one after another.

    >>> [side.tolist() for side in all_pairs(np.array([2, 0, 1]))]
    [[0, 0, 1, 1, 2], [0, 1, 0, 1, 2]]
    """
    squares = counts**2
    owner = np.repeat(np.arange(len(counts)), squares)
    begin, width = (np.cumsum(counts) - counts)[owner], counts[owner]
    place = np.arange(squares.sum()) - (np.cumsum(squares) - squares)[owner]
    return begin + place // width, begin + place % width
