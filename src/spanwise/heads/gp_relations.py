"""GPLinker: GlobalPointer for entities, and two matrices of word pairs for each relation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator
from torch import Tensor

from spanwise.core.types import Sentence
from spanwise.encoders.base import Encoder, TokenStates
from spanwise.heads.base import Labels, ScoredPairs, ScoredSpans
from spanwise.heads.pair_pointer import FullPairPointer, SharedPairPointer, pack_cells, pair_cells
from spanwise.heads.partial import Known, known_targets
from spanwise.heads.pointer import GlobalPointer, PointerSettings
from spanwise.heads.relations import RelationHead, RelationSettings
from spanwise.heads.sentence_cache import Ints, SentenceCache
from spanwise.heads.span_head import pack_rows
from spanwise.heads.wrapper import name_targets, select_targets
from spanwise.spans.matching import PackedSpans

ROLES = ("subject", "object")
FORMS = {"full": FullPairPointer, "shared": SharedPairPointer}


class PointerRelationSettings(RelationSettings):
    """Settings of ``PointerRelations``; ``entities`` may be any entity head."""

    entities: dict[str, Any] = Field(
        default_factory=lambda: {"kind": "global-pointer"}, description="the head for entities: its kind and settings"
    )
    form: Literal["full", "shared"] = Field(
        default="full", description="full: a query and a key per relation; shared: one product for all relations"
    )
    size: int = Field(default=64, ge=1, description="size of queries and keys")
    roles: bool = Field(
        default=False, description="also learn which spans are subjects and objects, as published; losses are then summed"
    )

    @model_validator(mode="after")
    def _check_size(self) -> Self:
        if self.roles and self.size % 2:
            raise ValueError(
                f"size: expected an even number with roles, whose pointer rotates pairs of components, found {self.size}"
            )
        return self


class PointerRelations(RelationHead):
    """Relation head that scores two entities by a matrix over their first words and one over their last words.

    The relation is predicted if both scores exceed the cutoff. Its loss is the mean of the losses of
    its two matrices.

    GPLinker has no types of entities. Its entity pointer has two heads: the subjects and the objects
    of any relation. ``roles`` adds this pointer to the typed entities: a relation also needs its first
    entity to be scored as a subject and its second as an object, and the losses of all matrices are
    summed, as published.

    Method: GPLinker, by the author of GlobalPointer. Use it for triples whose entities have no types,
    as in WebNLG. ``SpanRelations`` classifies pairs of spans instead, also reads the words between
    them, and is better for the typed entities of CoNLL04 (docs/results/relations.md).

    >>> from spanwise.encoders.static import StaticEncoder, StaticSettings
    >>> encoder = StaticEncoder.build(StaticSettings(hidden=8), [Sentence("s1", ("aspirin", "helps"))])
    >>> entities = {"kind": "global-pointer", "decoding": "nested"}
    >>> head = PointerRelations(encoder, Labels(("Drug",), ("treats",)), PointerRelationSettings(entities=entities))
    >>> type(head.wrapped).__name__, head.finds_relations
    ('GlobalPointer', True)
    """

    settings_class = PointerRelationSettings
    settings: PointerRelationSettings

    def __init__(self, encoder: Encoder, labels: Labels, settings: PointerRelationSettings) -> None:
        super().__init__(encoder, labels, settings)
        self.pointer = FORMS[settings.form](encoder.width, len(labels.relations), settings.size)
        self._cells = SentenceCache(self._positive_cells)
        self.role_pointer: GlobalPointer | None = None
        if settings.roles:
            roles = PointerSettings(size=settings.size, dropout=settings.dropout, decoding="overlapping", discontinuous=False)
            self.role_pointer = GlobalPointer(encoder.width, Labels(ROLES), roles)

    @classmethod
    def build(cls, encoder: Encoder, labels: Labels, settings: PointerRelationSettings) -> PointerRelations:
        return cls(encoder, labels, settings)

    def relation_targets(self, sentences: Sequence[Sentence], generator: np.random.Generator | None) -> dict[str, Tensor]:
        """``cells``: the positive cells of all matrices, packed; with ``roles`` also the spans of subjects and objects."""
        targets = {"cells": pack_cells([self._cells(sentence) for sentence in sentences])}
        if self.role_pointer is not None:
            rows = pack_rows([self._role_rows(sentence) for sentence in sentences])
            targets |= name_targets("roles", rows | known_targets(sentences, ROLES, self.marked_share))
        return targets

    def relation_loss(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Tensor:
        known = Known.select(targets)
        losses = self.pointer.loss(self.dropout(states.words), states.mask, targets["cells"], known).sum(1)
        if self.role_pointer is None:
            return losses / 2
        return losses + self.role_pointer.loss(states, select_targets(targets, "roles")).sums

    def score_pairs(self, states: TokenStates, spans: ScoredSpans) -> ScoredPairs:
        packed = PackedSpans(spans.sentence, spans.start, spans.end)
        pairs = self.pointer.score_pairs(states.words, packed, self.cutoff)
        if self.role_pointer is None:
            return pairs
        is_subject, is_object = self.role_pointer.span_scores(states, packed).unbind(1)
        rows = ((is_subject[pairs.first] > 0) & (is_object[pairs.second] > 0)).nonzero().squeeze(1)
        return ScoredPairs(*(column[rows] for column in (pairs.first, pairs.second, pairs.label, pairs.score)))

    def _role_rows(self, sentence: Sentence) -> Ints:
        """Start, end and role of each subject and object: [n, 3]."""
        ranges = [entity.range for entity in sentence.entities]
        relations = [relation for relation in sentence.relations if relation.type in self.relation_index]
        rows = {(*ranges[relation.head], 0) for relation in relations} | {(*ranges[relation.tail], 1) for relation in relations}
        return np.array(sorted(rows), np.int64).reshape(-1, 3)

    def _positive_cells(self, sentence: Sentence) -> Ints:
        ranges = [entity.range for entity in sentence.entities]
        rows = [
            (self.relation_index[relation.type], *ranges[relation.head], *ranges[relation.tail])
            for relation in sentence.relations
            if relation.type in self.relation_index
        ]
        return pair_cells(np.array(rows, np.int64).reshape(-1, 5), len(self.labels.relations))
