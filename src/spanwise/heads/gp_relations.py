"""GPLinker: GlobalPointer for entities, and two matrices of word pairs for each relation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from pydantic import Field
from torch import Tensor

from spanwise.core.types import Sentence
from spanwise.encoders.base import Encoder, TokenStates
from spanwise.heads.base import Labels, ScoredPairs, ScoredSpans
from spanwise.heads.pair_pointer import FullPairPointer, SharedPairPointer, pack_cells, pair_cells
from spanwise.heads.relations import RelationHead, RelationSettings
from spanwise.heads.sentence_cache import Ints, SentenceCache
from spanwise.spans.matching import PackedSpans

FORMS = {"full": FullPairPointer, "shared": SharedPairPointer}


class PointerRelationSettings(RelationSettings):
    """Settings of ``PointerRelations``; ``entities`` may be any entity head."""

    entities: dict[str, Any] = Field(
        default_factory=lambda: {"kind": "global-pointer"}, description="the head for entities: its kind and settings"
    )
    # full: a query and a key for each relation; shared: one product for all relations, as in Efficient GlobalPointer
    form: Literal["full", "shared"] = Field(
        default="full", description="full: a query and a key per relation; shared: one product for all relations"
    )
    size: int = Field(default=64, ge=1, description="size of queries and keys")


class PointerRelations(RelationHead):
    """Scores a relation between two entities by a matrix over their first words and one over their last words.

    The relation is predicted if both scores exceed the cutoff. Its loss is the mean of the losses of
    its two matrices.

    Method: GPLinker, by the author of GlobalPointer. Use it for relations between entities of any
    kind, also overlapping ones. ``SpanRelations`` classifies pairs of spans instead and also reads
    the words between them.
    """

    settings_class = PointerRelationSettings
    settings: PointerRelationSettings

    def __init__(self, encoder: Encoder, labels: Labels, settings: PointerRelationSettings) -> None:
        super().__init__(encoder, labels, settings)
        self.pointer = FORMS[settings.form](encoder.width, len(labels.relations), settings.size)
        self._cells = SentenceCache(self._positive_cells)

    @classmethod
    def build(cls, encoder: Encoder, labels: Labels, settings: PointerRelationSettings) -> PointerRelations:
        return cls(encoder, labels, settings)

    def relation_targets(self, sentences: Sequence[Sentence], generator: np.random.Generator | None) -> dict[str, Tensor]:
        """``cells``: the positive cells of all matrices, packed."""
        return {"cells": pack_cells([self._cells(sentence) for sentence in sentences])}

    def relation_loss(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Tensor:
        return self.pointer.loss(self.dropout(states.words), states.mask, targets["cells"]).sum(1) / 2

    def score_pairs(self, states: TokenStates, spans: ScoredSpans) -> ScoredPairs:
        return self.pointer.score_pairs(states.words, PackedSpans(spans.sentence, spans.start, spans.end), self.cutoff)

    def _positive_cells(self, sentence: Sentence) -> Ints:
        ranges = [entity.range for entity in sentence.entities]
        rows = [
            (self.relation_index[relation.type], *ranges[relation.head], *ranges[relation.tail])
            for relation in sentence.relations
            if relation.type in self.relation_index
        ]
        return pair_cells(np.array(rows, np.int64).reshape(-1, 5), len(self.labels.relations))
