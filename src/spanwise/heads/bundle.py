"""Bundling Learning (Ji et al. 2022, section 3.1.4): a sequence and a span head learn on one encoder, one of them predicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator
from torch import Tensor, nn

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.decoding.decode import Predictions
from spanwise.encoders.base import Encoder, TokenStates
from spanwise.heads import fitted_values, head_class, inner_settings, make_head
from spanwise.heads.base import Head, HeadSettings, Labels, Losses, ScoredSpans, SpanVectors, select_targets


class BundleSettings(HeadSettings):
    """Any sequence head and any span head, each with its ``kind`` and settings; the defaults are the paper's.

    ``alpha`` is the weight of the sequence loss, and that of the span loss is what is left of 1.
    """

    alpha: float = Field(default=0.1, ge=0.0, le=1.0)
    branch: Literal["sequence", "span"] = "span"  # the one that predicts
    sequence: dict[str, Any] = Field(default_factory=lambda: {"kind": "seqner"})
    span: dict[str, Any] = Field(default_factory=lambda: {"kind": "spanner"})

    @property
    def branches(self) -> dict[str, dict[str, Any]]:
        return {"sequence": self.sequence, "span": self.span}

    @property
    def weights(self) -> dict[str, float]:
        return {"sequence": self.alpha, "span": 1 - self.alpha}

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name, values in self.branches.items():
            inner_settings(values, f"head.{name}")
            family = head_class(values["kind"]).family
            if family != name:
                raise SpanwiseError(f"head.{name}: expected a {name} head, but {values['kind']} is a {family} head")
        if not self.weights[self.branch]:
            raise SpanwiseError(f"head: with alpha {self.alpha:g} the {self.branch} branch learns nothing and cannot predict")
        return self

    def fitted(self, sentences: Sequence[Sentence]) -> Self:
        """With both branches' settings whole: their defaults, and what the sentences decide."""
        whole = {name: fitted_values(values, f"head.{name}", sentences) for name, values in self.branches.items()}
        return self.model_copy(update=whole)


class Bundle(Head):
    """Two heads on one encoder: L = alpha * L_sequence + (1 - alpha) * L_span, each loss a mean per instance (Eq. 19).

    Only the chosen branch predicts, so what it cannot reach is out of reach. A branch of no weight is not even built.
    """

    family = "joint"
    settings_class = BundleSettings
    settings: BundleSettings

    def __init__(self, labels: Labels, settings: BundleSettings, heads: Mapping[str, Head]) -> None:
        super().__init__(labels, settings)
        self.heads = nn.ModuleDict(heads)
        self.decoding = self.prediction_head.decoding

    @classmethod
    def build(cls, encoder: Encoder, labels: Labels, settings: BundleSettings) -> Bundle:
        weights = settings.weights
        heads = {name: make_head(encoder, labels, values) for name, values in settings.branches.items() if weights[name]}
        return cls(labels, settings, heads)

    @property
    def branches(self) -> dict[str, Head]:
        return dict(self.heads.items())  # type: ignore[arg-type]

    @property
    def prediction_head(self) -> Head:
        return self.branches[self.settings.branch]

    def targets(
        self, sentences: Sequence[Sentence], *, gold: bool, generator: np.random.Generator | None = None
    ) -> dict[str, Tensor]:
        """The branches' targets, each under the branch's name; for scoring only those of the one that predicts."""
        heads = self.branches if gold else {self.settings.branch: self.prediction_head}
        return {
            f"{name}.{key}": value
            for name, head in heads.items()
            for key, value in head.targets(sentences, gold=gold, generator=generator).items()
        }

    def loss(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Losses:
        weights = self.settings.weights
        terms = {
            name: (weights[name], head.loss(states, select_targets(targets, name))) for name, head in self.branches.items()
        }
        return Losses.joined(terms)

    def score(self, states: TokenStates, targets: Mapping[str, Tensor]) -> ScoredSpans:
        return self.prediction_head.score(states, select_targets(targets, self.settings.branch))

    def read(self, scored: ScoredSpans, count: int) -> list[Predictions]:
        return self.prediction_head.read(scored, count)

    def out_of_reach(self, sentence: Sentence) -> int:
        return self.prediction_head.out_of_reach(sentence)

    def set_threshold(self, threshold: float) -> float | None:
        return self.prediction_head.set_threshold(threshold)

    def pretrained_parameters(self) -> Iterator[nn.Parameter]:
        return chain.from_iterable(head.pretrained_parameters() for head in self.branches.values())

    def span_vectors(self, states: TokenStates, targets: Mapping[str, Tensor]) -> SpanVectors:
        return self.prediction_head.span_vectors(states, select_targets(targets, self.settings.branch))

    def span_probabilities(self, states: TokenStates, targets: Mapping[str, Tensor]) -> SpanVectors:
        return self.prediction_head.span_probabilities(states, select_targets(targets, self.settings.branch))

    @property
    def templates(self) -> Tensor | None:
        return self.prediction_head.templates
