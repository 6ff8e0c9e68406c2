"""Entities and relations by pointers: GlobalPointer for the entities, a matrix over first words and one over last words for
each relation (GPLinker, by GlobalPointer's author)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from pydantic import Field
from torch import Tensor

from spanwise.core.types import Sentence
from spanwise.encoders.base import Encoder, TokenStates
from spanwise.heads.base import Labels, ScoredPairs, ScoredSpans
from spanwise.heads.memo import Ints, Memo
from spanwise.heads.pair_pointer import FullPairPointer, SharedPairPointer, packed_cells, pair_cells
from spanwise.heads.relations import RelationHead, RelationSettings
from spanwise.spans.matching import PackedSpans

FORMS = {"full": FullPairPointer, "shared": SharedPairPointer}


class PointerRelationSettings(RelationSettings):
    """What may be set; any head may stand for the entities' pointer."""

    entities: dict[str, Any] = Field(default_factory=lambda: {"kind": "global-pointer"})
    # full: a query and a key for every relation; shared: one product for all, and what each adds (Efficient GlobalPointer)
    form: Literal["full", "shared"] = "full"
    size: int = Field(default=64, ge=1)  # of the vectors that are multiplied


class PointerRelations(RelationHead):
    """A relation holds between two entities when its matrix for first words scores theirs above the bar, and so for last words.

    Its loss is that of its matrices, of which those for first and those for last words count half each.
    """

    settings_class = PointerRelationSettings
    settings: PointerRelationSettings

    def __init__(self, encoder: Encoder, labels: Labels, settings: PointerRelationSettings) -> None:
        super().__init__(encoder, labels, settings)
        self.pointer = FORMS[settings.form](encoder.width, len(labels.relations), settings.size)
        self._cells = Memo(self._positives)

    @classmethod
    def build(cls, encoder: Encoder, labels: Labels, settings: PointerRelationSettings) -> PointerRelations:
        return cls(encoder, labels, settings)

    def relation_targets(self, sentences: Sequence[Sentence], generator: np.random.Generator | None) -> dict[str, Tensor]:
        """``cells``: the positive cells of all matrices, packed."""
        return {"cells": packed_cells([self._cells(sentence) for sentence in sentences])}

    def relation_loss(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Tensor:
        return self.pointer.loss(self.dropout(states.words), states.mask, targets["cells"]).sum(1) / 2

    def pairs(self, states: TokenStates, spans: ScoredSpans) -> ScoredPairs:
        return self.pointer.pairs(states.words, PackedSpans(spans.sentence, spans.start, spans.end), self.bar)

    def _positives(self, sentence: Sentence) -> Ints:
        ranges = [entity.range for entity in sentence.entities]
        rows = [
            (self.relation_place[relation.type], *ranges[relation.head], *ranges[relation.tail])
            for relation in sentence.relations
            if relation.type in self.relation_place
        ]
        return pair_cells(np.array(rows, np.int64).reshape(-1, 5), len(self.labels.relations))
