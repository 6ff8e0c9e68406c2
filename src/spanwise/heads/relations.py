"""Base class of heads that predict entities and relations between them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, log
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.decoding.decode import Predictions
from spanwise.decoding.entity_pairs import MAX_PAIRED_ENTITIES, Floats, add_relations, entity_columns, highest_scores
from spanwise.decoding.thresholds import MAX_THRESHOLD, MIN_THRESHOLD, best_threshold
from spanwise.encoders.base import Encoder, TokenStates
from spanwise.evaluation.relations import gold_relations, scored_relations
from spanwise.heads import head_class, head_values, make_head, resolve_head_values, wrapped_head_settings
from spanwise.heads.abilities import HasRelationThreshold, Tunable, find_ability
from spanwise.heads.base import Head, HeadSettings, Labels, Losses, OnnxGraph, ScoredPairs, ScoredSpans
from spanwise.heads.partial import known_targets
from spanwise.heads.wrapper import HeadWrapper, name_targets, select_targets

# Relations are open in sentences that list the annotated entity types. No sentence lists this type.
NO_TYPE = ("",)


class RelationSettings(HeadSettings):
    """Settings of relation heads: the entity head, with its ``kind`` and settings, and the relation layer.

    A relation is predicted if its probability exceeds ``threshold``. With ``dev``, the threshold is
    tuned for the best strict F1 on dev, after training and for the dev scores of each epoch: relations
    are rare, and a threshold below 0.5 is often better.
    """

    entities: dict[str, Any] = Field(description="the head for entities: its kind and settings")
    weight: float = Field(default=1.0, gt=0.0, description="weight of the relation loss; the entity loss has weight 1")
    threshold: Annotated[float, Field(gt=0.0, lt=1.0)] | Literal["dev"] = Field(
        default="dev", description="minimum probability of a relation; dev: chosen for the best F1 on dev"
    )
    dropout: float = Field(default=0.1, ge=0.0, lt=1.0, description="dropout on the words")
    joint_scores: bool = Field(default=False, description="multiply the score of a relation by those of its entities")

    @model_validator(mode="after")
    def _check(self) -> Self:
        wrapped_head_settings(self.entities, "head.entities")
        kind = self.entities["kind"]
        entity_head = head_class(kind)
        if entity_head.finds_relations or entity_head.family == "joint":
            problem = "predicts relations itself" if entity_head.finds_relations else "consists of two heads"
            raise SpanwiseError(f"head.entities: expected a single head for entities, but {kind} {problem}")
        return self

    def resolve(self, sentences: Sequence[Sentence]) -> Self:
        return self.model_copy(update={"entities": resolve_head_values(self.entities, "head.entities", sentences)})


@dataclass(slots=True)
class ScoredEntities(ScoredSpans):
    """The decoded entities, packed in their order, and scored pairs of them."""

    predictions: list[Predictions]


class RelationHead(HeadWrapper, HasRelationThreshold, Tunable):
    """Base of relation heads: an entity head and a relation layer, trained on the same states.

    The loss of a sentence is the sum of its entity loss over all instances and its relation loss over
    all pairs and relations. Heads differ in what they average over, but sums can be weighed against
    each other. The mean is over sentences.

    Entities are predicted first, by the entity head alone. Then all pairs of a sentence's entities
    are scored, in both directions and each entity with itself; of more than 100 entities, those with
    the highest scores. A pair may have several relations. A discontinuous entity is represented by its
    first and last word.
    """

    family = "joint"
    finds_relations: ClassVar[bool] = True
    wrapped_name = "entities"
    settings: RelationSettings
    cutoff: float  # of logits

    def __init__(self, encoder: Encoder, labels: Labels, settings: RelationSettings) -> None:
        super().__init__(labels, settings)
        if not labels.relations:
            raise SpanwiseError("the training data has no relations; use a recipe for entities only")
        self.entities = make_head(encoder, labels, settings.entities)
        self.dropout = nn.Dropout(settings.dropout)
        self._set_cutoff(0.5 if settings.threshold == "dev" else settings.threshold)
        self.entity_index = {type: index for index, type in enumerate(labels.entities)}
        self.relation_index = {type: index for index, type in enumerate(labels.relations)}

    @property
    def wrapped(self) -> Head:
        return self.entities

    @property
    def onnx(self) -> OnnxGraph | str:
        return "it decodes entities before it scores relations between them"

    @abstractmethod
    def relation_targets(self, sentences: Sequence[Sentence], generator: np.random.Generator | None) -> dict[str, Tensor]:
        """The tensors that ``relation_loss`` needs."""

    @abstractmethod
    def relation_loss(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Tensor:
        """The loss of each sentence [B], summed over all pairs and relations; ``targets`` are ``relation_targets``."""

    @abstractmethod
    def score_pairs(self, states: TokenStates, spans: ScoredSpans) -> ScoredPairs:
        """The relations above the threshold between spans, which are ordered by sentence."""

    def targets(
        self, sentences: Sequence[Sentence], *, gold: bool, generator: np.random.Generator | None = None
    ) -> dict[str, Tensor]:
        """The targets of the entity head under ``entities`` and, with gold, of the relations under ``relations``."""
        targets = name_targets("entities", self.entities.targets(sentences, gold=gold, generator=generator))
        if gold:
            relations = self.relation_targets(sentences, generator)
            known = known_targets(sentences, NO_TYPE, self.marked_share)
            targets |= name_targets("relations", relations | known)
        return targets

    def loss(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Losses:
        entities = self.entities.loss(states, self.wrapped_targets(targets)).sums
        relations = self.relation_loss(states, select_targets(targets, "relations"))
        counts = states.mask.any(1).float()
        parts = {name: Losses(sums, counts).mean for name, sums in (("entities", entities), ("relations", relations))}
        return Losses(entities + self.settings.weight * relations, counts, parts)

    def score(self, states: TokenStates, targets: Mapping[str, Tensor]) -> ScoredEntities:
        """Decode the entities, then score pairs of them. Waits for the GPU twice."""
        count = len(states.words)
        predictions = self.entities.decode(self.entities.score(states, self.wrapped_targets(targets)), count)
        columns = entity_columns(predictions, self.entity_index)
        paired = highest_scores(columns[0], columns[4], MAX_PAIRED_ENTITIES)
        device = states.words.device
        spans = _to_spans(columns[:, paired], device)
        pairs = self.score_pairs(states, spans)
        if self.settings.joint_scores:
            pairs = _joint_pairs(pairs, spans.score, self.relation_threshold)
        index = torch.from_numpy(paired).to(device)
        pairs = replace(pairs, first=index[pairs.first], second=index[pairs.second])
        return ScoredEntities(*_to_spans(columns, device).columns, predictions, pairs=pairs)

    def decode(self, scored: ScoredSpans, count: int) -> list[Predictions]:
        assert isinstance(scored, ScoredEntities)
        assert scored.pairs is not None
        pairs = scored.pairs
        first, second, label = (column.cpu().numpy() for column in (pairs.first, pairs.second, pairs.label))
        score = pairs.score.detach().cpu().numpy()
        return add_relations(scored.predictions, first, second, label, score, self.labels.relations)

    def tune(self, gold: Sequence[Sentence], predict: Callable[[], Iterable[Sentence]]) -> bool:
        """Tune the entity head first, because relations depend on its predictions."""
        update: dict[str, Any] = {}
        tunable = find_ability(self.entities, Tunable)
        if tunable is not None and tunable.tune(gold, predict):
            update["entities"] = head_values(self.entities)
        if self.settings.threshold == "dev":
            self._set_cutoff(MIN_THRESHOLD)
            update["threshold"] = _best_relation_threshold(gold, predict())
            self._set_cutoff(update["threshold"])
        self.settings = self.settings.model_copy(update=update)
        return bool(update)

    def predict_tuned(self, gold: Sequence[Sentence], predict: Callable[[], Iterable[Sentence]]) -> list[Sentence]:
        def predict_with_low_threshold() -> list[Sentence]:
            cutoff = self.cutoff
            try:
                self._set_cutoff(MIN_THRESHOLD)
                return list(predict())
            finally:
                self.cutoff = cutoff

        predict_relations = predict_with_low_threshold if self.settings.threshold == "dev" else predict
        tunable = find_ability(self.entities, Tunable)
        predicted = list(predict_relations()) if tunable is None else tunable.predict_tuned(gold, predict_relations)
        if self.settings.threshold != "dev":
            return predicted
        threshold = _best_relation_threshold(gold, predicted)
        return [
            replace(s, relations=tuple(relation for relation in s.relations if (relation.score or 0.0) > threshold))
            for s in predicted
        ]

    @property
    def relation_threshold(self) -> float:
        return 1 / (1 + exp(-self.cutoff))

    def set_relation_threshold(self, threshold: float) -> float:
        previous = self.relation_threshold
        self._set_cutoff(threshold)
        return previous

    def _set_cutoff(self, threshold: float) -> None:
        self.cutoff = log(threshold / (1 - threshold))


def _best_relation_threshold(gold: Sequence[Sentence], predicted: Iterable[Sentence]) -> float:
    """The threshold with the best strict F1 of relations; 0.5 if no relation is correct."""
    support = sum(len(gold_relations(sentence)) for sentence in gold)
    return min(best_threshold(scored_relations(gold, predicted), support, MIN_THRESHOLD) or 0.5, MAX_THRESHOLD)


def _joint_pairs(pairs: ScoredPairs, entity_scores: Tensor, threshold: float) -> ScoredPairs:
    """Multiply the scores of pairs by those of their entities; keep the pairs above a threshold."""
    score = pairs.score * entity_scores[pairs.first] * entity_scores[pairs.second]
    is_kept = score > threshold
    return ScoredPairs(pairs.first[is_kept], pairs.second[is_kept], pairs.label[is_kept], score[is_kept])


def _to_spans(columns: Floats, device: torch.device) -> ScoredSpans:
    sentence, start, end, label = torch.from_numpy(columns[:4].astype(np.int64)).to(device).unbind(0)
    return ScoredSpans(sentence, start, end, label, torch.from_numpy(columns[4].astype(np.float32)).to(device))
