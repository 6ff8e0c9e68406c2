"""Base class of heads with a span transformer (DSpERT, section 3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Self

import torch
from torch import Tensor, nn

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.encoders.base import Encoder, TokenStates
from spanwise.encoders.layers import LayerParts
from spanwise.encoders.recurrent import BiLSTM
from spanwise.heads.abilities import (
    HasParameterGroups,
    HasSpanProbabilities,
    HasSpanVectors,
    LearnsPartial,
    TrainsInBfloat16,
)
from spanwise.heads.base import Labels, OnnxGraph
from spanwise.heads.deep_settings import DeepSettings
from spanwise.heads.sentence_cache import Ints
from spanwise.heads.span_head import SoftmaxHead
from spanwise.heads.units import NO_ONNX, UnitHead
from spanwise.spans.deep import SpanTransformer


class DeepHead(
    UnitHead, SoftmaxHead, HasSpanVectors, HasSpanProbabilities, HasParameterGroups, LearnsPartial, TrainsInBfloat16
):  # fmt: skip
    """Base of deep heads: a span transformer and a classifier of its states.

    The classifier is [state; width embedding] -> ReLU layer -> softmax over C + 1 classes.

    Spans consist of words or, as in the authors' system, of subwords (``UnitHead``).
    """

    settings: DeepSettings

    def __init__(
        self, width: int, labels: Labels, settings: DeepSettings, layers: Sequence[LayerParts],
        subword_counts: Callable[[Sentence], Ints] | None, state_size: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(labels, settings)
        assert settings.max_width is not None  # the base class has checked it
        self.widest, self.depth = settings.max_width, len(layers)
        self.use_subwords(subword_counts)
        self.transformer = SpanTransformer(
            width, layers, shared=settings.share_weights, aggregation=settings.aggregation, dropout=settings.start_dropout
        )
        self.sizes = nn.Embedding(self.widest, settings.width_size)
        self.dropout = nn.Dropout(settings.dropout)
        self.hidden = nn.Linear((state_size or width) + settings.width_size, settings.hidden)
        self.hidden_dropout = nn.Dropout(settings.hidden_dropout)
        self.classifier = nn.Linear(settings.hidden, len(labels.entities) + 1)

    @classmethod
    def build(cls, encoder: Encoder, labels: Labels, settings: DeepSettings) -> Self:
        layers = [] if settings.depth == 0 else encoder.layer_parts()
        depth = len(layers) if settings.depth is None else settings.depth
        if depth > len(layers):
            raise SpanwiseError(f"head.depth: expected at most {len(layers)}, the layers of the encoder, found {depth}")
        encoder.request_outputs(layers=depth, subwords=settings.unit == "subwords")
        counts = encoder.subword_counts if settings.unit == "subwords" else None
        return cls(encoder.width, labels, settings, layers[len(layers) - depth :], counts)

    @property
    def onnx(self) -> OnnxGraph | str:
        if self.settings.unit == "subwords":
            return NO_ONNX
        return OnnxGraph.of_spans(self.score, self.decoding, self.max_width, span_widths=self.target_widths)

    @property
    def target_widths(self) -> tuple[int, ...]:
        """The widths of the spans that ``targets`` lists for scoring."""
        return ()

    def pretrained_parameters(self) -> Iterator[nn.Parameter]:
        return iter(self.transformer.pretrained_parameters())

    def train_in_bfloat16(self) -> None:
        """Compute BiLSTMs over spans and, if all spans are deep, their layers in bfloat16."""
        for module in self.modules():
            if isinstance(module, BiLSTM):
                module.trains_in_bfloat16 = True

    @property
    def class_weights(self) -> Tensor:
        return self.classifier.weight

    # --- states to scores ------------------------------------------------------------------------------------------

    def unit_states(self, states: TokenStates) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The top states, zero after a sentence's end, and the states that enter the span transformer."""
        dtype = self.classifier.weight.dtype
        top = states.words.to(dtype)
        lower = tuple(layer.to(dtype) for layer in states.layers[-self.depth :]) if self.depth else (top,)
        return top.masked_fill(~states.mask.unsqueeze(-1), 0.0), lower

    def hidden_vectors(self, spans: Tensor, width: Tensor) -> Tensor:
        """From states [S, ...] of spans to the vectors that are classified (equation 5); ``width`` counts units."""
        embedding = self.sizes(width - 1)
        vectors: Tensor = self.hidden(self.dropout(torch.cat((spans, embedding.to(spans.dtype)), -1))).relu()
        return vectors

    def class_logits(self, vectors: Tensor) -> Tensor:
        """The logits of all classes, in float32."""
        logits: Tensor = self.classifier(self.hidden_dropout(vectors)).float()
        return logits
