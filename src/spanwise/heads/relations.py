"""What the heads that find relations share: a head for the entities, and a layer that judges pairs of what it finds."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import log
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Relation, Sentence
from spanwise.decoding.decode import Predictions
from spanwise.decoding.thresholds import HIGHEST, LOWEST, best_threshold
from spanwise.encoders.base import Encoder, TokenStates
from spanwise.evaluation.relations import gold_relations, judged_relations
from spanwise.heads import fitted_values, head_class, inner_settings, make_head
from spanwise.heads.base import Head, HeadSettings, Labels, Losses, ScoredPairs, ScoredSpans, SpanVectors, select_targets
from spanwise.heads.memo import Ints

Floats = npt.NDArray[np.float64]
MOST = 100  # entities of a sentence that are paired, the surest: a model that has learned nothing yet may propose thousands


class RelationSettings(HeadSettings):
    """The head for the entities, with its ``kind`` and settings, and what holds of any layer for relations.

    A relation counts where it is more probable than ``threshold``. Left to ``dev``, that is what gives the best strict F1 there
    when training is over, and 0.5 until then: relations are rare, and less than half may be the better bet.
    """

    entities: dict[str, Any]
    weight: float = Field(default=1.0, gt=0.0)  # of the relations' loss beside the entities'
    threshold: Annotated[float, Field(gt=0.0, lt=1.0)] | Literal["dev"] = "dev"
    dropout: float = Field(default=0.1, ge=0.0, lt=1.0)

    @model_validator(mode="after")
    def _check(self) -> Self:
        inner_settings(self.entities, "head.entities")
        inner = head_class(self.entities["kind"])
        if inner.finds_relations or inner.family == "joint":
            what = "finds relations itself" if inner.finds_relations else "is made of two heads"
            raise SpanwiseError(f"head.entities: expected one head for entities, but {self.entities['kind']} {what}")
        return self

    def fitted(self, sentences: Sequence[Sentence]) -> Self:
        return self.model_copy(update={"entities": fitted_values(self.entities, "head.entities", sentences)})


@dataclass(slots=True)
class ScoredEntities(ScoredSpans):
    """The entities that the entities' head found, packed in the order in which they are found, and pairs between them."""

    found: list[Predictions]


class RelationHead(Head):
    """A head for entities and a layer for relations, which learn on the same states.

    The loss of a sentence is a sum over all that is judged in it, words or spans or types, and over all pairs and relations:
    heads differ in what they take the mean over, and sums can be weighed against one another. The mean is over sentences.

    Entities are found first, as the entities' head would alone. Then all pairs of a sentence's entities are judged, in both
    directions and each with itself. Equal pairs may have several relations, and an entity may be in any number of them. A
    discontinuous entity is told by its first and its last word. A corpus without entity types is one with a single type.
    """

    family = "joint"
    finds_relations: ClassVar[bool] = True
    settings: RelationSettings

    def __init__(self, encoder: Encoder, labels: Labels, settings: RelationSettings) -> None:
        super().__init__(labels, settings)
        if not labels.relations:
            raise SpanwiseError("the training data has no relations: take a recipe that finds entities alone")
        self.entities = make_head(encoder, labels, settings.entities)
        self.decoding, self.prunes = self.entities.decoding, self.entities.prunes
        self.dropout = nn.Dropout(settings.dropout)
        self._set_bar(0.5 if settings.threshold == "dev" else settings.threshold)
        self.entity_place = {kind: place for place, kind in enumerate(labels.entities)}
        self.relation_place = {kind: place for place, kind in enumerate(labels.relations)}

    @abstractmethod
    def relation_targets(self, sentences: Sequence[Sentence], generator: np.random.Generator | None) -> dict[str, Tensor]:
        """What the layer learns relations from."""

    @abstractmethod
    def relation_loss(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Tensor:
        """The loss of each sentence's relations [B], from ``relation_targets``; a sum over all that is judged."""

    @abstractmethod
    def pairs(self, states: TokenStates, spans: ScoredSpans) -> ScoredPairs:
        """The relations between spans, ordered by sentence, that are more probable than the threshold."""

    def targets(
        self, sentences: Sequence[Sentence], *, gold: bool, generator: np.random.Generator | None = None
    ) -> dict[str, Tensor]:
        """The entities' targets under ``entities`` and, with gold, those of the relations under ``relations``."""
        parts = {"entities": self.entities.targets(sentences, gold=gold, generator=generator)}
        if gold:
            parts["relations"] = self.relation_targets(sentences, generator)
        return {f"{name}.{key}": value for name, part in parts.items() for key, value in part.items()}

    def loss(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Losses:
        entities = self.entities.loss(states, select_targets(targets, "entities")).sums
        relations = self.relation_loss(states, select_targets(targets, "relations"))
        counts = states.mask.any(1).float()
        parts = {name: Losses(sums, counts).mean for name, sums in (("entities", entities), ("relations", relations))}
        return Losses(entities + self.settings.weight * relations, counts, parts)

    def score(self, states: TokenStates, targets: Mapping[str, Tensor]) -> ScoredEntities:
        """Waits twice: for the entities, and for what joins them."""
        count = len(states.words)
        found = self.entities.read(self.entities.score(states, select_targets(targets, "entities")), count)
        rows = [
            (where, *entity.range, self.entity_place[entity.type], entity.score or 0.0)
            for where, one in enumerate(found)
            for entity in one.entities
        ]
        columns = np.array(rows, np.float64).reshape(-1, 5).T
        paired = surest(columns[0], columns[4], MOST)
        device = states.words.device
        pairs = self.pairs(states, _packed(columns[:, paired], device))
        place = torch.from_numpy(paired).to(device)
        pairs = replace(pairs, first=place[pairs.first], second=place[pairs.second])
        return ScoredEntities(*_packed(columns, device).columns, found, pairs=pairs)

    def read(self, scored: ScoredSpans, count: int) -> list[Predictions]:
        assert isinstance(scored, ScoredEntities)
        assert scored.pairs is not None
        pairs = scored.pairs
        first, second, label = (column.cpu().numpy() for column in (pairs.first, pairs.second, pairs.label))
        score = pairs.score.detach().cpu().numpy()
        counts = np.array([len(one.entities) for one in scored.found], np.int64)
        ends = counts.cumsum()
        owner = np.searchsorted(ends, first, side="right")
        begins = (ends - counts)[owner]
        order = np.lexsort((label, second, first))
        rows = zip(*(column[order].tolist() for column in (owner, label, first - begins, second - begins, score)), strict=True)
        relations: list[tuple[Relation, ...]] = [()] * count
        for where, own in groupby(rows, key=lambda row: row[0]):
            relations[where] = tuple(
                Relation(self.labels.relations[kind], head, tail, score=round(value, 6)) for _, kind, head, tail, value in own
            )
        return [Predictions(one.entities, own) for one, own in zip(scored.found, relations, strict=True)]

    def tune(self, gold: Sequence[Sentence], predict: Callable[[], Iterable[Sentence]]) -> bool:
        if self.settings.threshold != "dev":
            return False
        self._set_bar(LOWEST)
        support = sum(len(gold_relations(sentence)) for sentence in gold)
        threshold = min(best_threshold(judged_relations(gold, predict()), support, LOWEST) or 0.5, HIGHEST)
        self._set_bar(threshold)
        self.settings = self.settings.model_copy(update={"threshold": threshold})
        return True

    def _set_bar(self, threshold: float) -> None:
        self.bar = log(threshold / (1 - threshold))

    def out_of_reach(self, sentence: Sentence) -> int:
        return self.entities.out_of_reach(sentence)

    def set_threshold(self, threshold: float) -> float | None:
        """Of the entities; relations have one of their own."""
        return self.entities.set_threshold(threshold)

    def kept_gold(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Tensor:
        return self.entities.kept_gold(states, select_targets(targets, "entities"))

    def pretrained_parameters(self) -> Iterator[nn.Parameter]:
        return self.entities.pretrained_parameters()

    def span_vectors(self, states: TokenStates, targets: Mapping[str, Tensor]) -> SpanVectors:
        return self.entities.span_vectors(states, select_targets(targets, "entities"))

    def span_probabilities(self, states: TokenStates, targets: Mapping[str, Tensor]) -> SpanVectors:
        return self.entities.span_probabilities(states, select_targets(targets, "entities"))

    @property
    def templates(self) -> Tensor | None:
        return self.entities.templates


def surest(sentence: Floats, score: Floats, most: int) -> Ints:
    """The places of the ``most`` items of each sentence that score highest, in order.

    >>> surest(np.array([0, 0, 0, 1]), np.array([0.5, 0.7, 0.6, 0.1]), 2).tolist()
    [1, 2, 3]
    """
    order = np.lexsort((-score, sentence))
    owner = sentence[order]
    return np.sort(order[np.arange(len(order)) - np.searchsorted(owner, owner) < most])


def _packed(columns: Floats, device: torch.device) -> ScoredSpans:
    sentence, start, end, label = torch.from_numpy(columns[:4].astype(np.int64)).to(device).unbind(0)
    return ScoredSpans(sentence, start, end, label, torch.from_numpy(columns[4].astype(np.float32)).to(device))
