"""What a head is: states in, a loss or scored spans out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict
from torch import Tensor, nn

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.decoding.decode import Policy, Predictions, decode
from spanwise.encoders.base import Encoder, TokenStates


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

    @property
    def fragmented(self) -> tuple[str, ...]:
        """The types whose entities may have several fragments; ``heads/discontinuous.py`` finds these beside the head."""
        return ()


@dataclass(slots=True)
class Losses:
    """A batch's loss as sums and counts of instances (words, spans …) per sentence, ``[B]`` each.

    Their quotient over the batch is the mean per instance that training minimises; row by row it is a sentence's own loss, the
    same whatever batch the sentence stands in. A loss of several terms is made by ``Losses.joined``.
    """

    sums: Tensor
    counts: Tensor
    parts: dict[str, Tensor] = field(default_factory=dict)  # what else to log: the terms of a joined loss
    total: Tensor | None = None  # the batch's mean where it is no quotient of the sums and counts
    instances: Tensor | None = None  # of what a bundle takes the mean, where ``counts`` counts something larger than instances

    @property
    def mean(self) -> Tensor:
        return self.sums.sum() / self.counts.sum().clamp(min=1) if self.total is None else self.total

    @property
    def mean_per_instance(self) -> Tensor:
        return self.mean if self.instances is None else self.sums.sum() / self.instances.sum().clamp(min=1)

    @classmethod
    def joined(cls, terms: Mapping[str, tuple[float, Losses]]) -> Losses:
        """The weighted sum of the terms' means per instance; of a sentence, the weighted sum of its own means.

        >>> from torch import tensor
        >>> words, spans = Losses(tensor([2.0, 0.0]), tensor([4.0, 4.0])), Losses(tensor([1.0, 1.0]), tensor([1.0, 2.0]))
        >>> losses = Losses.joined({"words": (0.5, words), "spans": (1.0, spans)})
        >>> float(losses.mean), losses.sums.tolist()
        (0.7916666865348816, [1.25, 0.5])
        """
        means = {name: losses.mean_per_instance for name, (_, losses) in terms.items()}
        parts = {f"{name}.{part}": value for name, (_, losses) in terms.items() for part, value in losses.parts.items()}
        rows, total = None, None
        for name, (weight, losses) in terms.items():
            counts = losses.counts if losses.instances is None else losses.instances
            row, mean = weight * losses.sums / counts.clamp(min=1), weight * means[name]
            rows, total = (row, mean) if rows is None or total is None else (rows + row, total + mean)
        if rows is None:
            raise ValueError("a loss needs a term")
        return cls(rows, torch.ones_like(rows), means | parts, total)

    def plus(self, name: str, terms: Mapping[str, Losses]) -> Losses:
        """This loss, called ``name`` among the parts, and added to each sentence's own mean those of other terms.

        Instances stay what they are, so that a bundle weighs the sum as it would weigh this loss alone.

        >>> from torch import tensor
        >>> spans, links = Losses(tensor([2.0, 0.0]), tensor([4.0, 4.0])), Losses(tensor([1.0, 0.0]), tensor([1.0, 1.0]))
        >>> losses = spans.plus("spans", {"links": links})
        >>> float(losses.mean), losses.sums.tolist()
        (0.75, [6.0, 0.0])
        """
        sums, total, parts = self.sums, self.total, {name: self.mean, **self.parts}
        for other, losses in terms.items():
            sums = sums + losses.sums / losses.counts.clamp(min=1) * self.counts
            total = None if total is None else total + losses.mean
            parts[other] = losses.mean
        return Losses(sums, self.counts, parts, total, self.instances)


@dataclass(slots=True)
class ScoredPairs:
    """Pairs of proposed spans, packed: ``first`` and ``second`` are places among the ``ScoredSpans``, ``score`` is 0-1."""

    first: Tensor
    second: Tensor
    label: Tensor
    score: Tensor


@dataclass(slots=True)
class ScoredSpans:
    """Spans a head proposes, packed: five tensors of one length. ``score`` is 0-1, ``label`` a place in ``Labels.entities``.

    ``pairs`` are between them: relations, or what joins the fragments of one entity.
    """

    sentence: Tensor
    start: Tensor
    end: Tensor
    label: Tensor
    score: Tensor
    pairs: ScoredPairs | None = field(default=None, kw_only=True)

    @property
    def columns(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        return self.sentence, self.start, self.end, self.label, self.score


@dataclass(slots=True)
class SpanVectors:
    """A vector ``[S, d]`` for each of some spans, and which spans these are, packed."""

    sentence: Tensor
    start: Tensor
    end: Tensor
    vectors: Tensor


class Head(nn.Module, ABC):
    """One method. Built with ``build``; trained by ``loss``; read out by ``score``.

    ``targets`` runs on the host, in worker processes: it turns the sentences of a batch into tensors. With a ``generator`` it
    prepares training (and may sample); without, it prepares scoring: everything the head will ever score, no gold needed.
    ``gold=True`` without a generator asks for the full gold (all negatives), as the batch-consistency test and dev losses do.
    """

    settings_class: ClassVar[type[HeadSettings]]
    prunes: bool = False  # whether it drops most spans unseen; how many of gold it keeps is then part of the metrics
    finds_relations: ClassVar[bool] = False  # whether relations between the entities are found too; dev then scores both
    family: ClassVar[str] = "span"  # what it judges: spans, or the words of a "sequence". A bundle has one head of either
    tasks: ClassVar[tuple[str, ...]] = ("entities",)  # what it can be built for; a head that can do more has a setting ``task``
    task: str = "entities"  # what it is built for: to find entities, or the "typing" of those that the sentences come with

    def __init__(self, labels: Labels, settings: HeadSettings) -> None:
        super().__init__()
        self.labels, self.settings = labels, settings

    @classmethod
    @abstractmethod
    def build(cls, encoder: Encoder, labels: Labels, settings: Any) -> Head: ...

    def training_example(self, sentence: Sentence) -> Sentence | None:
        """What this head needs of a sentence to learn all there is to learn from it; None where that is nothing."""
        return sentence

    @abstractmethod
    def targets(
        self, sentences: Sequence[Sentence], *, gold: bool, generator: np.random.Generator | None = None
    ) -> dict[str, Tensor]: ...

    @abstractmethod
    def loss(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Losses: ...

    @abstractmethod
    def score(self, states: TokenStates, targets: Mapping[str, Tensor]) -> ScoredSpans: ...

    def read(self, scored: ScoredSpans, count: int) -> list[Predictions]:
        """What is found in each of ``count`` sentences, from what ``score`` proposed for them."""
        sentence, start, end, label, score = (column.detach().cpu().numpy() for column in scored.columns)
        entities = decode(
            sentence, start, end, label, score,
            count=count, types=self.labels.entities, policy=self.decoding, min_scores=self.min_scores,
        )  # fmt: skip
        return [Predictions(own) for own in entities]

    def out_of_reach(self, sentence: Sentence) -> int:
        """How many of the sentence's entities this head can never predict (too wide, overlapping …), said before training."""
        return 0

    def tune(self, gold: Sequence[Sentence], predict: Callable[[], Iterable[Sentence]]) -> bool:
        """Settle on dev what is left open until training is over, such as a threshold; whether anything was.

        ``predict`` gives the sentences of ``gold`` with what the head, as it is by then, finds in them.
        """
        return False

    def set_threshold(self, threshold: float) -> float | None:
        """Propose entities that score more than this from now on; what the threshold was so far.

        None where there is no such thing: a head that takes the best label of each span or word proposes no second best.
        """
        return None

    def kept_gold(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Tensor:
        """Where ``prunes``: how many gold spans of each sentence are not dropped ``[B]``; ``targets`` are those with gold."""
        raise NotImplementedError

    def forget(self) -> None:
        """Let go of what is remembered of sentences, which will not come again: called while a stream of them is predicted."""

    def record_steps(self) -> None:
        """Called before training on one CUDA device, where each batch's gradients are used before the next batch comes."""

    def pretrained_parameters(self) -> Iterator[nn.Parameter]:
        """Its parameters that come from pretraining and learn at the lower rate."""
        return iter(())

    def separately_clipped_parameters(self) -> Iterator[nn.Parameter]:
        """Its parameters that have a loss of their own, so that their gradients are clipped by themselves."""
        return iter(())

    def span_vectors(self, states: TokenStates, targets: Mapping[str, Tensor]) -> SpanVectors:
        """The vector before the logits of every span that the head judges; ``targets`` are those for scoring."""
        raise SpanwiseError(f"{type(self).__name__} has no vector for each span")

    @property
    def templates(self) -> Tensor | None:
        """The weights ``[classes, d]`` of the layer that classifies the ``span_vectors``; None where the head has no such."""
        return None

    def span_probabilities(self, states: TokenStates, targets: Mapping[str, Tensor]) -> SpanVectors:
        """A probability for each type of every span that the head judges, and last, where it is to find entities, for NONE.

        ``targets`` are those for scoring. Spans that are not judged at all (too wide, dropped unseen) are left out.
        """
        raise SpanwiseError(f"{type(self).__name__} has no probability for each span")

    @property
    def branches(self) -> Mapping[str, Head]:
        """The heads that learn together here, by name; each is scored on dev by itself."""
        return {}

    @property
    def inner(self) -> Head:
        """The head that its configuration names: this one, or the one that it is put around."""
        return self

    @property
    def prediction_head(self) -> Head:
        """The head that predicts: this one, or one of its branches. Nothing else need be kept when training is over."""
        return self

    #: "flat", "nested", "overlapping" or a ``SoftNms``: what ``decoding.decode`` makes of the scored spans.
    decoding: Policy = "nested"
    #: The score that an entity of each type must have, while a prediction asks for one.
    min_scores: Mapping[str, float] | None = None


def select_targets(targets: Mapping[str, Tensor], name: str) -> dict[str, Tensor]:
    """The targets under a name, as ``name.key``, by their keys: what one of several heads is handed.

    >>> select_targets({"span.start": torch.zeros(2), "sequence.tags": torch.zeros(3)}, "span")
    {'start': tensor([0., 0.])}
    """
    return {key.removeprefix(f"{name}."): value for key, value in targets.items() if key.startswith(f"{name}.")}
