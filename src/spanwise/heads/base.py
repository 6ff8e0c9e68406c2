"""What a head is: states in, a loss or scored spans out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from pydantic import BaseModel, ConfigDict
from torch import Tensor, nn

from spanwise.encoders.base import Encoder, TokenStates
from spanwise.types import Sentence


@dataclass(frozen=True)
class Labels:
    """The inventory a model was trained with; a type's number is its place."""

    entities: tuple[str, ...]
    relations: tuple[str, ...] = ()

    def to_json(self) -> dict[str, list[str]]:
        return {"entities": list(self.entities), "relations": list(self.relations)}

    @classmethod
    def from_json(cls, record: Mapping[str, Sequence[str]]) -> Self:
        return cls(tuple(record["entities"]), tuple(record.get("relations", ())))


class HeadSettings(BaseModel):
    """Base of every head's settings: an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def fitted(self, sentences: Sequence[Sentence]) -> Self:
        """These settings with what they leave open decided by the training sentences; settled ones stay as they are."""
        return self


@dataclass(slots=True)
class Losses:
    """A batch's loss as sums and counts of instances (words, spans …) per sentence, ``[B]`` each.

    Their quotient over the batch is the mean per instance that training minimises; row by row it is a sentence's own loss, the
    same whatever batch the sentence stands in.
    """

    sums: Tensor
    counts: Tensor
    parts: dict[str, Tensor] = field(default_factory=dict)  # what else to log: the losses of a bundle's branches

    @property
    def mean(self) -> Tensor:
        return self.sums.sum() / self.counts.sum().clamp(min=1)


@dataclass(slots=True)
class ScoredSpans:
    """Spans a head proposes, packed: five tensors of one length. ``score`` is 0-1, ``label`` a place in ``Labels.entities``."""

    sentence: Tensor
    start: Tensor
    end: Tensor
    label: Tensor
    score: Tensor


class Head(nn.Module, ABC):
    """One method. Built with ``build``; trained by ``loss``; read out by ``score``.

    ``targets`` runs on the host, in worker processes: it turns the sentences of a batch into tensors. With a ``generator`` it
    prepares training (and may sample); without, it prepares scoring: everything the head will ever score, no gold needed.
    ``gold=True`` without a generator asks for the full gold (all negatives), as the batch-consistency test and dev losses do.
    """

    settings_class: ClassVar[type[HeadSettings]]

    def __init__(self, labels: Labels, settings: HeadSettings) -> None:
        super().__init__()
        self.labels, self.settings = labels, settings

    @classmethod
    @abstractmethod
    def build(cls, encoder: Encoder, labels: Labels, settings: Any) -> Head: ...

    @abstractmethod
    def targets(
        self, sentences: Sequence[Sentence], *, gold: bool, generator: np.random.Generator | None = None
    ) -> dict[str, Tensor]: ...

    @abstractmethod
    def loss(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Losses: ...

    @abstractmethod
    def score(self, states: TokenStates, targets: Mapping[str, Tensor]) -> ScoredSpans: ...

    def out_of_reach(self, sentence: Sentence) -> int:
        """How many of the sentence's entities this head can never predict (too wide, overlapping …), said before training."""
        return 0

    #: "flat", "nested" or "discontinuous": what ``decoding.decode`` makes of the scored spans.
    decoding: str = "nested"
