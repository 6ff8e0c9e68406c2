"""SpanNER: classification of every span by one linear layer (Ji et al. 2022, section 3.1.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from pydantic import Field
from torch import Tensor, nn

from spanwise.core.types import Sentence
from spanwise.encoders.base import Encoder, TokenStates
from spanwise.encoders.fixed_shapes import SizeTable, pad_to
from spanwise.heads.abilities import HasFixedShapes
from spanwise.heads.base import Labels, OnnxGraph, ScoredSpans, SpanVectors
from spanwise.heads.span_classifier import ClassifierSettings, SpanClassifier
from spanwise.heads.span_head import row_sizes
from spanwise.heads.units import NO_ONNX, UnitHead, UnitSettings
from spanwise.spans.pooling import max_pool


class SpannerSettings(UnitSettings, ClassifierSettings):
    """Settings of ``SpanNer``; the defaults are the paper's.

    By default, ``max_width`` covers 99 % of the training entities (section 4.1.2, table 2). The paper
    does not give the size of the width embedding; 25 is SpERT's.
    """

    representation: Literal["boundary", "pooling", "hybrid"] = Field(
        default="hybrid", description="boundary: first and last word; pooling: maximum over all words; hybrid: both"
    )
    width_size: int = Field(default=25, ge=1, description="size of the width embedding")
    dropout: float = Field(default=0.1, ge=0.0, lt=1.0, description="dropout on span vectors")


class SpanNer(UnitHead, SpanClassifier, HasFixedShapes):
    """Classifier of each span of up to ``max_width`` words as one of the types or NONE, the last of C + 1 classes.

    A span [i, j) is represented by its first and last word, the maximum over its words, the [CLS]
    state of the sentence and an embedding of its width: ``boundary`` [e_i; e_{j-1}; w], ``pooling``
    [max; e_0; w], ``hybrid`` [e_i; e_{j-1}; max; e_0; w]. One linear layer classifies it. Training
    uses the gold spans and sampled negatives, scoring uses all spans.

    The linear layer over the concatenation is computed as a sum of parts: per word, per sentence, per
    width, and only the pooled part per span. Dropout is applied to each part where it is computed, so
    spans that share a word share its mask. The mask of the pooled part is shared by all spans of a
    sentence and applied to the words before the maximum, which gives the same result, because a
    non-negative factor common to all words commutes with the maximum. For a single span and part
    this is plain dropout.

    Paper: Ji et al., "Bundling Learning", 2022, section 3.1.3.

    Use it as a fast baseline for flat and nested entities of moderate width. Prefer ``Grid`` for
    accuracy, ``GlobalPointer`` or ``Biaffine`` for wide entities, and ``SeqNer`` for long flat
    entities.

    >>> from spanwise.core.types import Sentence
    >>> head = SpanNer(8, Labels(("Drug",)), SpannerSettings(max_width=2, decoding="flat"))
    >>> len(head.targets([Sentence("s1", ("aspirin", "helps", "."))], gold=False)["start"])  # 3 of one word, 2 of two
    5
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
        return cls(encoder.width, labels, settings).read_units(encoder)

    @property
    def onnx(self) -> OnnxGraph | str:
        if self.settings.unit == "subwords":
            return NO_ONNX
        widths = tuple(range(1, self.widest + 1))
        return OnnxGraph.of_spans(self.score, self.decoding, self.max_width, span_widths=widths)

    def logits(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Tensor:
        """The logits of all classes for each packed span: [S, C + 1] in float32."""
        sentence, start, end = targets["sentence"], targets["start"], targets["end"]
        weight, bias = self.classifier.weight, self.classifier.bias
        words, first = states.words.to(weight.dtype), sentence * states.words.shape[1]
        *parts, width_weight = torch.split(weight, self.sizes, dim=1)
        logits = _project(self._drop(self.width_embedding.weight), width_weight, bias).index_select(0, end - start - 1)
        if self.has_boundary:
            # One product for both roles of a word: row 2w is word w as a first word, row 2w + 1 as a last word.
            roles = _project(self._drop(words), torch.cat(parts[:2])).view(-1, len(bias))
            logits = logits + roles.index_select(0, 2 * (first + start)) + roles.index_select(0, 2 * (first + end) - 1)
        if self.has_pool:
            max_weight, cls_weight = parts[-2:]
            if self.training and self.settings.dropout:
                words = words * self._drop(words.new_ones(len(words), 1, words.shape[2]))
            logits = logits + _project(max_pool(words, sentence, start, end, self.widest), max_weight)
            logits = logits + _project(self._drop(states.cls.to(weight.dtype)), cls_weight).index_select(0, sentence)
        return logits

    def targets(
        self, sentences: Sequence[Sentence], *, gold: bool, generator: np.random.Generator | None = None
    ) -> dict[str, Tensor]:
        targets = super().targets(sentences, gold=gold, generator=generator)
        return targets if gold else targets | self.word_targets(sentences)

    def size_table(self, sentences: Sequence[Sentence]) -> SizeTable:
        lengths = np.array([self.length(sentence) for sentence in sentences], np.int64)
        cells = np.maximum(lengths[:, None] - np.arange(self.widest), 0).sum(1)
        soft = self.target_spans(sentences)
        gold = np.array([len(set(zip(spans.start.tolist(), spans.end.tolist(), strict=True))) for spans in soft], np.int64)
        spans = gold + np.minimum(cells - gold, self.settings.negatives)
        return SizeTable({"spans": spans}, {}).join(row_sizes(self, sentences))

    def pad_targets(self, targets: Mapping[str, Tensor], sizes: Mapping[str, int], shape: torch.Size) -> dict[str, Tensor]:
        """Add spans of the last word, which is padding, and gold rows with a mass of 0."""
        spans = {"sentence": shape[0] - 1, "start": shape[1] - 1, "end": shape[1]}
        return {
            name: pad_to(tensor, (sizes["spans"],), spans[name]) if name in spans else pad_to(tensor, (sizes["rows"],), 0)
            for name, tensor in targets.items()
        }

    def score(self, states: TokenStates, targets: Mapping[str, Tensor]) -> ScoredSpans:
        return self.scored_words(super().score(states, targets), targets)

    def pack(self, values: Tensor, targets: Mapping[str, Tensor]) -> SpanVectors:
        return self.word_vectors(super().pack(values, targets), targets)

    def span_vectors(self, states: TokenStates, targets: Mapping[str, Tensor]) -> SpanVectors:
        """The concatenated representations, which ``logits`` never builds."""
        sentence, start, end = targets["sentence"], targets["start"], targets["end"]
        words, parts = states.words, []
        if self.has_boundary:
            parts += [words[sentence, start], words[sentence, end - 1]]
        if self.has_pool:
            parts += [max_pool(words, sentence, start, end, self.widest), states.cls[sentence]]
        parts.append(self.width_embedding(end - start - 1))
        return self.pack(torch.cat([part.to(self.classifier.weight.dtype) for part in parts], 1), targets)

    def _drop(self, values: Tensor) -> Tensor:
        return F.dropout(values, self.settings.dropout, self.training)


def _project(values: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return F.linear(values, weight, bias).float()  # parts are summed in float32
