"""Settings of heads with deep span representations."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import ClassVar, Literal, Self

from pydantic import Field

from spanwise.core.types import Sentence
from spanwise.heads.span_settings import SoftmaxSettings
from spanwise.heads.units import UnitSettings
from spanwise.spans.deep import Aggregation

SPANS_PER_ENTITY, EXTRA_SPANS = 8.0, 4  # kept spans per expected entity, and additional ones per sentence


class DeepSettings(UnitSettings, SoftmaxSettings):
    """Settings common to all deep heads; the defaults are DSpERT's (appendix C).

    By default, ``max_width`` covers 99.9 % of the training entities but is at most 25, because the
    costs grow with it.
    """

    coverage: ClassVar[float | None] = 99.9
    max_automatic_width: ClassVar[int | None] = 25  # the paper's largest size

    smoothing: float = Field(
        default=0.1, ge=0.0, lt=1.0, description="probability of a gold span that its neighbours share (epsilon)"
    )
    depth: int | None = Field(
        default=None, ge=0, description="layers of the span transformer, from the top; by default all of the encoder's"
    )
    share_weights: bool = Field(default=False, description="use the encoder's layers instead of copies")
    aggregation: Aggregation = Field(
        default="max", description="aggregation of the words that enter the lowest of these layers"
    )
    width_size: int = Field(default=25, ge=1, description="size of the width embedding")
    hidden: int = Field(default=300, ge=1, description="size of the classified vector")
    start_dropout: float = Field(default=0.2, ge=0.0, lt=1.0, description="dropout on the aggregated words")
    dropout: float = Field(default=0.4, ge=0.0, lt=1.0, description="dropout on a span's state and width embedding")
    hidden_dropout: float = Field(default=0.2, ge=0.0, lt=1.0, description="dropout on the classified vector")


class DeepSpanSettings(DeepSettings):
    """Settings of ``DeepSpan``."""

    lstm: int = Field(
        default=200, ge=0, description="size of the BiLSTM over the spans of one width, per direction; 0: no BiLSTM"
    )
    lstm_dropout: float = Field(default=0.5, ge=0.0, lt=1.0, description="dropout on the input of the BiLSTM")
    single_lstm: bool = Field(
        default=False, description="use another BiLSTM for spans of one unit, as in the published main model"
    )
    chunk: int | None = Field(
        default=None, ge=1, description="sentences per pass of the span transformer; fewer need less memory; all by default"
    )


class ShallowSpanSettings(DeepSpanSettings):
    """Settings of ``ShallowSpan``: no layers, spans are aggregates of the top states (section 4.3)."""

    depth: Literal[0] = Field(default=0, description="layers of the span transformer; a shallow head has none")


class PrunedSpanSettings(DeepSettings):
    """Settings of ``PrunedSpan``."""

    budget: float | None = Field(
        default=None, gt=0, description="kept spans per word; by default 8 times the training entities per word"
    )
    lstm: int = Field(default=200, ge=0, description="size of the BiLSTM over the kept spans, per direction; 0: no BiLSTM")
    lstm_dropout: float = Field(default=0.5, ge=0.0, lt=1.0, description="dropout on the input of the BiLSTM")

    def resolve(self, sentences: Sequence[Sentence]) -> Self:
        resolved = super().resolve(sentences)
        entities = sum(len(set(sentence.entities)) for sentence in sentences)
        if self.budget is not None or not entities:
            return resolved
        words = sum(len(sentence.words) for sentence in sentences)
        return resolved.model_copy(update={"budget": ceil(1000 * SPANS_PER_ENTITY * entities / words) / 1000})
