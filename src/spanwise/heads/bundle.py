"""Bundling Learning: a sequence and a span head on one encoder (Ji et al. 2022, section 3.1.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator
from torch import Tensor, nn

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.encoders.base import Encoder, TokenStates
from spanwise.heads import head_class, head_values, make_head, resolve_head_values, wrapped_head_settings
from spanwise.heads.abilities import Tunable, find_ability
from spanwise.heads.base import Head, HeadSettings, Labels, Losses
from spanwise.heads.wrapper import HeadWrapper, name_targets, select_targets


class BundleSettings(HeadSettings):
    """Settings of ``Bundle``: a sequence head and a span head, each with its ``kind`` and settings.

    The defaults are the paper's. ``alpha`` is the weight of the sequence loss; the span loss has the
    weight 1 - ``alpha``.
    """

    alpha: float = Field(
        default=0.1, ge=0.0, le=1.0, description="weight of the sequence loss; the span loss has the weight 1 - alpha"
    )
    branch: Literal["sequence", "span"] = Field(default="span", description="the branch that predicts")
    sequence: dict[str, Any] = Field(
        default_factory=lambda: {"kind": "seqner"}, description="the sequence head: its kind and settings"
    )
    span: dict[str, Any] = Field(
        default_factory=lambda: {"kind": "spanner"}, description="the span head: its kind and settings"
    )

    @property
    def branches(self) -> dict[str, dict[str, Any]]:
        return {"sequence": self.sequence, "span": self.span}

    @property
    def weights(self) -> dict[str, float]:
        return {"sequence": self.alpha, "span": 1 - self.alpha}

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name, values in self.branches.items():
            wrapped_head_settings(values, f"head.{name}")
            family = head_class(values["kind"]).family
            if family != name:
                raise SpanwiseError(f"head.{name}: expected a {name} head, found {values['kind']}, a {family} head")
        if not self.weights[self.branch]:
            raise SpanwiseError(f"head: alpha {self.alpha:g} gives no weight to the {self.branch} branch, which predicts")
        return self

    def resolve(self, sentences: Sequence[Sentence]) -> Self:
        """Resolve the settings of both branches."""
        update = {name: resolve_head_values(values, f"head.{name}", sentences) for name, values in self.branches.items()}
        return self.model_copy(update=update)


class Bundle(HeadWrapper, Tunable):
    """A sequence head and a span head that are trained on one encoder; one of them predicts.

    The loss is L = alpha * L_sequence + (1 - alpha) * L_span, each a mean per instance (Eq. 19). A
    branch with weight 0 is not built.

    Paper: Ji et al., "Bundling Learning", 2022, section 3.1.4.

    Use it to reproduce the paper. Training costs as much as both heads; prediction costs the same as
    with the predicting branch alone. By bundling, a span head gains 0.5 to 0.7 F1 and a sequence
    head nothing measurable (docs/papers.md).

    >>> from spanwise.encoders.static import StaticEncoder, StaticSettings
    >>> encoder = StaticEncoder.build(StaticSettings(hidden=8), [Sentence("s1", ("aspirin", "helps"))])
    >>> span = {"kind": "spanner", "max_width": 2, "decoding": "flat"}
    >>> bundle = Bundle.build(encoder, Labels(("Drug",)), BundleSettings(span=span))
    >>> sorted(bundle.branches), type(bundle.prediction_head).__name__
    (['sequence', 'span'], 'SpanNer')
    """

    family = "joint"
    settings_class = BundleSettings
    settings: BundleSettings

    def __init__(self, labels: Labels, settings: BundleSettings, heads: Mapping[str, Head]) -> None:
        super().__init__(labels, settings)
        self.heads = nn.ModuleDict(heads)
        self.wrapped_name = settings.branch

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

    @property
    def wrapped(self) -> Head:
        return self.prediction_head

    def targets(
        self, sentences: Sequence[Sentence], *, gold: bool, generator: np.random.Generator | None = None
    ) -> dict[str, Tensor]:
        """The targets of both branches under their names; for scoring, only those of the one that predicts."""
        heads = self.branches if gold else {self.settings.branch: self.prediction_head}
        targets: dict[str, Tensor] = {}
        for name, head in heads.items():
            targets |= name_targets(name, head.targets(sentences, gold=gold, generator=generator))
        return targets

    def loss(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Losses:
        weights = self.settings.weights
        terms = {
            name: (weights[name], head.loss(states, select_targets(targets, name))) for name, head in self.branches.items()
        }
        return Losses.weighted_sum(terms)

    def tune(self, gold: Sequence[Sentence], predict: Callable[[], Iterable[Sentence]]) -> bool:
        """Tune the branch that predicts, and keep its settings in those of the bundle."""
        tunable = find_ability(self.prediction_head, Tunable)
        if tunable is None or not tunable.tune(gold, predict):
            return False
        self.settings = self.settings.model_copy(update={self.settings.branch: head_values(self.prediction_head)})
        return True

    def predict_tuned(self, gold: Sequence[Sentence], predict: Callable[[], Iterable[Sentence]]) -> list[Sentence]:
        tunable = find_ability(self.prediction_head, Tunable)
        return list(predict()) if tunable is None else tunable.predict_tuned(gold, predict)
