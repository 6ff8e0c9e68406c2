"""Optional abilities of heads: base classes that a head adds to ``Head``.

Ask for one with ``find_ability``, which also searches the head inside a wrapper.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn

from spanwise.core.types import Sentence
from spanwise.encoders.base import TokenStates
from spanwise.encoders.fixed_shapes import SizeTable
from spanwise.heads.base import Head
from spanwise.heads.outputs import SpanVectors
from spanwise.heads.partial import pad_known, without_known
from spanwise.heads.wrapper import HeadWrapper
from spanwise.losses.smoothing import SoftSpans


class HasThreshold(Head):
    """Head that predicts entities above a threshold, which can be lowered to get more.

    A head that takes the best label of each span or word has no second best and no threshold.
    """

    @abstractmethod
    def set_threshold(self, threshold: float) -> float | None:
        """Set the threshold and return the previous one; return None if it cannot be changed."""


class HasRelationThreshold(Head):
    """Head that predicts relations above a threshold, which can be lowered to get more."""

    @property
    @abstractmethod
    def relation_threshold(self) -> float:
        """The current threshold."""

    @abstractmethod
    def set_relation_threshold(self, threshold: float) -> float:
        """Set the threshold of relations and return the previous one."""


class HasSpanProbabilities(Head):
    """Head that gives every span that it scores a probability for each class."""

    @abstractmethod
    def span_probabilities(self, states: TokenStates, targets: Mapping[str, Tensor]) -> SpanVectors:
        """Probabilities of all types and, if the task is to predict entities, of NONE as the last class.

        ``targets`` are those for scoring. Spans that are not scored (too wide, pruned) are omitted.
        """


class HasSpanVectors(Head):
    """Head that gives every span that it scores a vector, which one linear layer classifies."""

    @abstractmethod
    def span_vectors(self, states: TokenStates, targets: Mapping[str, Tensor]) -> SpanVectors:
        """The vector before the logits of every span that is scored; ``targets`` are those for scoring."""

    @property
    @abstractmethod
    def class_weights(self) -> Tensor:
        """The weights [classes, d] of the layer that classifies the span vectors."""


class LearnsProbabilities(Head):
    """Head that learns probabilities of spans, as other models give them (see ``TaughtSentence``), not only entities."""

    @abstractmethod
    def target_spans(self, sentences: Sequence[Sentence]) -> list[SoftSpans]:
        """The spans of each sentence and the probabilities that the head learns for them; others have the probability 0."""


class Tunable(Head):
    """Head with settings that are chosen on dev after training."""

    @abstractmethod
    def tune(self, gold: Sequence[Sentence], predict: Callable[[], Iterable[Sentence]]) -> bool:
        """Choose the open settings on dev and return whether anything changed.

        ``predict`` returns the sentences of ``gold`` with the current predictions of the head.
        """

    def predict_tuned(self, gold: Sequence[Sentence], predict: Callable[[], Iterable[Sentence]]) -> list[Sentence]:
        """Return the predictions that ``tune`` would lead to, without changing the head.

        Epochs are compared by them. A head whose settings do not change its predictions needs no
        other implementation.
        """
        return list(predict())


class RepeatsExamples(Head):
    """Head that repeats training sentences with rare examples, so that an epoch has enough of them."""

    @abstractmethod
    def repeat(self, sentences: Sequence[Sentence]) -> list[Sentence]:
        """The training sentences, followed by the copies."""


class Prunes(Head):
    """Head that drops most candidate spans after scoring them cheaply."""

    @abstractmethod
    def count_kept_gold(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Tensor:
        """How many gold spans of each sentence survive pruning [B]; ``targets`` are those with gold."""


class UsesCudaGraphs(Head):
    """Head that can record a part of its forward and backward pass as CUDA graphs."""

    @abstractmethod
    def enable_cuda_graphs(self) -> None:
        """Record from now on. Requires one device and gradients that are used before the next batch."""


class TrainsInBfloat16(Head):
    """Head that can compute parts of its forward and backward pass in bfloat16, where they take longer than a small encoder."""

    @abstractmethod
    def train_in_bfloat16(self) -> None:
        """Use bfloat16 in training from now on; results stay float32."""


class HasFixedShapes(Head):
    """Head with a loss without host-side sizes, so that a whole training step can be recorded as a CUDA graph."""

    @property
    def is_recordable(self) -> bool:
        """Whether this holds with the head's settings."""
        return True

    @abstractmethod
    def size_table(self, sentences: Sequence[Sentence]) -> SizeTable:
        """The sizes of the targets of each sentence, from which those of a batch follow."""

    @abstractmethod
    def pad_targets(self, targets: Mapping[str, Tensor], sizes: Mapping[str, int], shape: torch.Size) -> dict[str, Tensor]:
        """Pad the targets of a batch to ``sizes``, named as in ``size_table``, so that its loss does not change.

        ``shape`` is that of the mask of the padded batch: sentences and words. The last word is always padding.
        """

    def pad(
        self, targets: Mapping[str, Tensor], sizes: Mapping[str, int], shape: torch.Size, *, is_partial: bool
    ) -> dict[str, Tensor]:  # fmt: skip
        """Pad the targets of a batch; if ``is_partial``, every batch gets the marks of partial annotation."""
        known = pad_known(targets, shape, len(self.labels.entities)) if is_partial else {}
        return self.pad_targets(without_known(targets), sizes, shape) | known


class LearnsPartial(Head):
    """Head that learns from partially annotated sentences: what ``Sentence.annotated`` leaves open is no negative example.

    Base classes whose ``targets`` include ``known_targets`` and whose ``loss`` uses them have this ability.
    """


class CachesSentences(Head):
    """Head that remembers values of sentences between calls."""

    @abstractmethod
    def clear_cache(self) -> None:
        """Free the cached values; called while predicting a stream of sentences."""


class HasParameterGroups(Head):
    """Head with parameters that are optimised differently from the rest of the head."""

    def pretrained_parameters(self) -> Iterator[nn.Parameter]:
        """Pretrained parameters, trained with the encoder's learning rate."""
        return iter(())

    def separately_clipped_parameters(self) -> Iterator[nn.Parameter]:
        """Parameters with a separate loss, whose gradients are clipped separately."""
        return iter(())


class RenamesWeights(Head):
    """Head with other weight names than the head that its configuration names."""

    @abstractmethod
    def transfer_name(self, name: str) -> str:
        """The name under which a weight is matched with another model's when training starts from it."""


Ability = TypeVar("Ability", bound=Head)


def find_ability(head: Head, ability: type[Ability]) -> Ability | None:
    """The head or the head inside its wrappers that has an ability; None if neither has it.

    Call ``targets`` of the result: a wrapper may name its targets differently.
    """
    while not isinstance(head, ability):
        if not isinstance(head, HeadWrapper):
            return None
        head = head.wrapped
    return head


def first_without(head: Head, ability: type[Head]) -> Head | None:
    """The first head inside a head, wrappers excepted, that does not have an ability."""
    return next((part for part in heads_with(head, Head) if not isinstance(part, HeadWrapper | ability)), None)


def heads_with(module: nn.Module, ability: type[Ability]) -> list[Ability]:
    """All heads inside a module that have an ability."""
    return [part for part in module.modules() if isinstance(part, ability)]
