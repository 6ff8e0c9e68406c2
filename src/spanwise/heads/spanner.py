"""SpanNER of "Bundling Learning" (section 3.1.3): every span up to a width is classified by one linear layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
import torch.nn.functional as F  # noqa: N812
from pydantic import Field
from torch import Tensor, nn

from spanwise.encoders.base import Encoder, TokenStates
from spanwise.heads.base import Labels, SpanVectors
from spanwise.heads.span_classifier import ClassifierSettings, SpanClassifier
from spanwise.spans.pooling import max_pool


class SpannerSettings(ClassifierSettings):
    """What may be set; the defaults are the paper's. It does not give the size of the width embedding: 25 is SpERT's.

    ``max_width`` is, unless given, the smallest that covers 99 % of the training entities (section 4.1.2, table 2).
    """

    representation: Literal["boundary", "pooling", "hybrid"] = "hybrid"
    width_size: int = Field(default=25, ge=1)
    dropout: float = Field(default=0.1, ge=0.0, lt=1.0)


class SpanNer(SpanClassifier):
    """Each span of up to ``max_width`` words gets one of the types or NONE, which is the last of the C + 1 classes.

    A span [i, j) is represented by its first and last word, the maximum over its words, the sentence's [CLS] state and an
    embedding of its width: ``boundary`` [e_i; e_{j-1}; w], ``pooling`` [max; e_0; w], ``hybrid`` [e_i; e_{j-1}; max; e_0; w];
    one linear layer classifies. Training takes the gold spans and sampled negatives, scoring all spans.

    The linear layer over the concatenation is computed as the sum of its parts, each where it belongs: per word, per sentence
    and per width, and only the pooled part per span. Dropout acts on each part in the same places, so spans that share a word
    share its mask; the pooled part's mask is shared by a sentence's spans and put on the words before the maximum, which is
    the same, for a factor that is not negative and common to all words commutes with it. For any one span and part it is
    plain dropout.

    Gold spans wider than ``max_width`` and discontinuous entities cannot be predicted and are no examples. With boundary
    smoothing the neighbours of the gold spans are examples too.
    """

    settings_class = SpannerSettings
    settings: SpannerSettings

    def __init__(self, width: int, labels: Labels, settings: SpannerSettings) -> None:
        super().__init__(labels, settings)
        self.has_boundary = settings.representation != "pooling"
        self.has_pool = settings.representation != "boundary"
        self.sizes = [width] * (2 * self.has_boundary + 2 * self.has_pool) + [settings.width_size]
        self.width_embedding = nn.Embedding(self.widest, settings.width_size)
        self.classifier = nn.Linear(sum(self.sizes), len(labels.entities) + 1)

    @classmethod
    def build(cls, encoder: Encoder, labels: Labels, settings: SpannerSettings) -> SpanNer:
        return cls(encoder.width, labels, settings)

    def logits(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Tensor:
        """The scores of all classes for each packed span: [S, C + 1] in float32."""
        sentence, start, end = targets["sentence"], targets["start"], targets["end"]
        weight, bias = self.classifier.weight, self.classifier.bias
        words, first = states.words.to(weight.dtype), sentence * states.words.shape[1]
        *parts, of_width = torch.split(weight, self.sizes, dim=1)
        logits = _project(self._drop(self.width_embedding.weight), of_width, bias).index_select(0, end - start - 1)
        if self.has_boundary:
            # One product for both roles of a word; row 2w is word w as a first word, row 2w + 1 as a last one.
            roles = _project(self._drop(words), torch.cat(parts[:2])).view(-1, len(bias))
            logits = logits + roles.index_select(0, 2 * (first + start)) + roles.index_select(0, 2 * (first + end) - 1)
        if self.has_pool:
            of_maximum, of_cls = parts[-2:]
            if self.training and self.settings.dropout:
                words = words * self._drop(words.new_ones(len(words), 1, words.shape[2]))
            logits = logits + _project(max_pool(words, sentence, start, end, self.widest), of_maximum)
            logits = logits + _project(self._drop(states.cls.to(weight.dtype)), of_cls).index_select(0, sentence)
        return logits

    def span_vectors(self, states: TokenStates, targets: Mapping[str, Tensor]) -> SpanVectors:
        """The concatenations as such: what is wanted for looking at is made only here."""
        sentence, start, end = targets["sentence"], targets["start"], targets["end"]
        words, parts = states.words, []
        if self.has_boundary:
            parts += [words[sentence, start], words[sentence, end - 1]]
        if self.has_pool:
            parts += [max_pool(words, sentence, start, end, self.widest), states.cls[sentence]]
        parts.append(self.width_embedding(end - start - 1))
        return self.packed(torch.cat([part.to(self.classifier.weight.dtype) for part in parts], 1), targets)

    def _drop(self, values: Tensor) -> Tensor:
        return F.dropout(values, self.settings.dropout, self.training)


def _project(values: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return F.linear(values, weight, bias).float()  # parts are summed in float32, whatever the product's type
