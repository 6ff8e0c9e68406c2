"""The settings of the heads that represent every span by a vector of its own."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from spanwise.core.types import Sentence
from spanwise.heads.span_head import SoftmaxSettings
from spanwise.spans.deep import Aggregation

WIDEST = 25  # the paper's largest size, and what an automatic width is bounded by
TIMES, SPARE = 8.0, 4  # a sentence keeps so many times the expected number of entities, and so many spans more


class DeepSettings(SoftmaxSettings):
    """What may be set of all of them; the defaults are DSpERT's (appendix C).

    ``max_width`` is, unless given, the smallest that covers 99.9 % of the training entities, at most 25; costs grow with it.
    """

    coverage: ClassVar[float | None] = 99.9

    smoothing: float = Field(default=0.1, ge=0.0, lt=1.0)
    depth: int | None = Field(default=None, ge=0)  # layers of the span transformer, from the top; all of the encoder's if None
    share_weights: bool = False  # use the encoder's layers themselves, not a copy
    aggregation: Aggregation = "max"  # of the words below the lowest of these layers
    unit: Literal["words", "subwords"] = "words"  # what spans are made of and ``max_width`` counts
    width_size: int = Field(default=25, ge=1)  # of the embedding of a span's size
    hidden: int = Field(default=300, ge=1)  # size of the vector that is classified
    start_dropout: float = Field(default=0.2, ge=0.0, lt=1.0)  # of the words that are aggregated
    dropout: float = Field(default=0.4, ge=0.0, lt=1.0)  # of a span's state and size
    hidden_dropout: float = Field(default=0.2, ge=0.0, lt=1.0)  # of the vector that is classified

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.unit == "subwords" and self.max_width is None:
            raise ValueError("with unit subwords max_width must be given: it then counts subwords")
        if self.unit == "subwords" and self.fragmented:
            raise ValueError("fragments of discontinuous entities are made of words: not for unit subwords")
        return self

    def fitted(self, sentences: Sequence[Sentence]) -> Self:
        found = super().fitted(sentences)
        if self.unit == "subwords":
            found = found.model_copy(update={"discontinuous": False})
        is_given = self.max_width is not None or found.max_width is None
        return found if is_given else found.model_copy(update={"max_width": min(found.max_width or 1, WIDEST)})


class DeepSpanSettings(DeepSettings):
    """Of the head that represents all spans."""

    lstm: int = Field(default=200, ge=0)  # size per direction of the BiLSTM along the starts of one size; 0 for none
    lstm_dropout: float = Field(default=0.5, ge=0.0, lt=1.0)  # of what it reads
    chunk: int | None = Field(default=None, ge=1)  # sentences whose spans are deepened at a time, to need less memory


class ShallowSpanSettings(DeepSpanSettings):
    """Of the paper's comparison (section 4.3): no layers, spans are aggregates of the top states."""

    depth: Literal[0] = 0


class PrunedSpanSettings(DeepSettings):
    """Of the head that deepens only likely spans."""

    budget: float | None = Field(default=None, gt=0)  # kept spans per word; 8 times the training entities per word if None
    lstm: int = Field(default=200, ge=0)  # size per direction of the BiLSTM along the kept spans; 0 for none
    lstm_dropout: float = Field(default=0.5, ge=0.0, lt=1.0)  # of what it reads

    def fitted(self, sentences: Sequence[Sentence]) -> Self:
        found = super().fitted(sentences)
        entities = sum(len(set(sentence.entities)) for sentence in sentences)
        if self.budget is not None or not entities:
            return found
        return found.model_copy(update={"budget": ceil(1000 * TIMES * entities / sum(len(s.words) for s in sentences)) / 1000})
