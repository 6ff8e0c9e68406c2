"""The contract of a head: from word states to a loss or to predictions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn

from spanwise.config.validation import TypeNames, validate_settings
from spanwise.core.types import Sentence
from spanwise.decoding.decode import Policy, Predictions, decode
from spanwise.encoders.base import Encoder, TokenStates
from spanwise.heads.batch_loss import Losses
from spanwise.heads.onnx import OnnxGraph
from spanwise.heads.outputs import ScoredPairs, ScoredSpans, SpanVectors

__all__ = [
    "Head", "HeadSettings", "Labels", "Losses", "OnnxGraph", "ScoredPairs", "ScoredSpans", "SpanVectors",
]  # fmt: skip


class _LabelsRecord(BaseModel):
    """The content of ``labels.json``."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    entities: TypeNames = Field(min_length=1)
    relations: TypeNames = ()


@dataclass(frozen=True)
class Labels:
    """The entity and relation types a model is trained with; the index of a type is its position."""

    entities: tuple[str, ...]
    relations: tuple[str, ...] = ()

    def to_json(self) -> dict[str, list[str]]:
        return {"entities": list(self.entities), "relations": list(self.relations)}

    @classmethod
    def from_json(cls, record: Mapping[str, Any], source: str = "labels") -> Self:
        """Validate a record; ``source`` is its file, for errors."""
        labels = validate_settings(_LabelsRecord, record, source)
        return cls(labels.entities, labels.relations)


class HeadSettings(BaseModel):
    """Base of every head's settings. Unknown keys are an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    def resolve(self, sentences: Sequence[Sentence]) -> Self:
        """Replace automatic values (``auto`` or None) by values computed from the training sentences."""
        return self

    @property
    def discontinuous_types(self) -> tuple[str, ...]:
        """Types whose entities may have several fragments; ``make_head`` adds ``Discontinuous`` for them."""
        return ()

    @property
    def relation_head(self) -> dict[str, Any] | None:
        """The kind and settings of the relation head that ``make_head`` builds around this head; None for no relations."""
        return None


class Head(nn.Module, ABC):
    """Base of all heads: one method of entity recognition on top of an encoder.

    A subclass implements ``build``, ``targets``, ``loss`` and ``score``. ``decode`` turns what
    ``score`` returns into entities; most heads use the default. Optional abilities (span vectors, a
    threshold, tuning on dev, ...) are base classes in ``spanwise.heads.abilities``.

    ``targets`` runs on the CPU, in worker processes, and converts sentences to tensors. With a
    ``generator`` it prepares training and may sample negatives. Without one it prepares scoring: all
    candidates, no gold needed. ``gold=True`` without a generator gives the full gold with all
    negatives, for dev losses.
    """

    settings_class: ClassVar[type[HeadSettings]]
    #: What the head classifies: "span", the words of a "sequence", or both ("joint").
    family: ClassVar[str] = "span"
    #: Tasks it can be built for. A head with more than one has a setting ``task``.
    tasks: ClassVar[tuple[str, ...]] = ("entities",)
    #: The task it was built for: predict "entities", or "typing" of the entities in the input.
    task: str = "entities"
    finds_relations: ClassVar[bool] = False
    #: How ``decode`` resolves overlaps: "flat", "nested", "overlapping" or a ``SoftNms``.
    decoding: Policy = "nested"
    #: Minimum score of each type, set while a prediction requests thresholds by type.
    min_scores: Mapping[str, float] | None = None
    #: The share of the entities that is marked in sentences of incomplete annotation; set when a model is built for training.
    marked_share: float = 0.2

    def __init__(self, labels: Labels, settings: HeadSettings) -> None:
        super().__init__()
        self.labels, self.settings = labels, settings

    @classmethod
    @abstractmethod
    def build(cls, encoder: Encoder, labels: Labels, settings: Any) -> Head:
        """Build the head for an encoder; ``settings`` are resolved (see ``HeadSettings.resolve``)."""

    def training_example(self, sentence: Sentence) -> Sentence | None:
        """The part of a sentence that the head learns from; None to skip the sentence."""
        return sentence

    @abstractmethod
    def targets(
        self, sentences: Sequence[Sentence], *, gold: bool, generator: np.random.Generator | None = None
    ) -> dict[str, Tensor]:
        """The tensors that ``loss`` (with ``gold``) or ``score`` needs for a batch."""

    @abstractmethod
    def loss(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Losses:
        """The loss of each sentence."""

    @abstractmethod
    def score(self, states: TokenStates, targets: Mapping[str, Tensor]) -> ScoredSpans:
        """The candidate entities of a batch and their scores."""

    def decode(self, scored: ScoredSpans, count: int) -> list[Predictions]:
        """Choose the predictions of each of ``count`` sentences among the scored spans."""
        sentence, start, end, label, score = (column.detach().cpu().numpy() for column in scored.columns)
        entities = decode(
            sentence, start, end, label, score,
            log_odds=None if scored.log_odds is None else scored.log_odds.detach().float().cpu().numpy(),
            count=count, types=self.labels.entities, policy=self.decoding, min_scores=self.min_scores,
        )  # fmt: skip
        return [Predictions(sentence_entities) for sentence_entities in entities]

    def count_unreachable(self, sentence: Sentence) -> int:
        """How many gold entities of the sentence the head can never predict (too wide, overlapping, ...)."""
        return 0

    @property
    def widest_span(self) -> str | None:
        """The widest span that the head scores, such as "10 words"; None if it scores no spans."""
        return None

    @property
    def discontinuous_types(self) -> tuple[str, ...]:
        """The types for which the head predicts entities of several fragments."""
        return ()

    @property
    def branches(self) -> Mapping[str, Head]:
        """Heads that are trained together here, by name; dev scores each of them."""
        return {}

    @property
    def prediction_head(self) -> Head:
        """The head that predicts: this one or one of its branches. Only it is exported."""
        return self

    @property
    def configured_head(self) -> Head:
        """The head that the configuration names: this one or, for ``Discontinuous``, the one it wraps."""
        return self

    @property
    def onnx(self) -> OnnxGraph | str:
        """The ONNX graph of the head, or the reason why it has none."""
        return "it does not declare one"
