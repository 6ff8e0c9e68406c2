"""A span classifier: first word, last word and mean of the words, followed by a hidden layer."""

import torch
from pydantic import Field
from torch import nn

from spanwise.heads.base import OnnxGraph
from spanwise.heads.span_classifier import ClassifierSettings, SpanClassifier
from spanwise.spans.pooling import mean_pool


class MeanSpanSettings(ClassifierSettings):
    hidden: int = Field(default=150, ge=1)
    dropout: float = Field(default=0.2, ge=0, lt=1)


class MeanSpan(SpanClassifier):
    """Mean-pooled spans, a small example of a head."""

    settings_class = MeanSpanSettings
    paper = "docs/extending.md"

    def __init__(self, width, labels, settings):
        super().__init__(labels, settings)
        self.hidden = nn.Sequential(nn.Dropout(settings.dropout), nn.Linear(3 * width, settings.hidden), nn.GELU())
        self.classifier = nn.Linear(settings.hidden, len(labels.entities) + 1)  # the last class is "no entity"

    @classmethod
    def build(cls, encoder, labels, settings):
        return cls(encoder.width, labels, settings)

    def vectors(self, states, targets):
        sentence, start, end = targets["sentence"], targets["start"], targets["end"]
        mean = mean_pool(states.words, sentence, start, end)
        parts = [states.words[sentence, start], states.words[sentence, end - 1], mean]
        return self.hidden(torch.cat(parts, dim=1).to(self.classifier.weight.dtype))

    def logits(self, states, targets):
        return self.classifier(self.vectors(states, targets)).float()

    def span_vectors(self, states, targets):
        return self.pack(self.vectors(states, targets), targets)

    @property
    def onnx(self):
        widths = tuple(range(1, self.widest + 1))
        return OnnxGraph.of_spans(self.score, self.decoding, self.max_width, span_widths=widths)
