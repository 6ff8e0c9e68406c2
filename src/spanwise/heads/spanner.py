"""SpanNER of "Bundling Learning" (section 3.1.3): every span up to a width is classified by one linear layer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, Self

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from pydantic import Field
from torch import Tensor, nn

from spanwise.encoders.base import Encoder, TokenStates
from spanwise.errors import SpanwiseError
from spanwise.heads.base import Head, HeadSettings, Labels, Losses, ScoredSpans
from spanwise.heads.memo import Ints, Memo
from spanwise.spans.candidates import Spans, grid, packed, sampled_negatives
from spanwise.spans.pooling import max_pool
from spanwise.types import Sentence, Span

COVERAGE = 99  # percent of the training entities that an automatic width covers (section 4.1.2, table 2)


class SpannerSettings(HeadSettings):
    """What may be set; the defaults are the paper's. It does not give the size of the width embedding: 25 is SpERT's."""

    representation: Literal["boundary", "pooling", "hybrid"] = "hybrid"
    max_width: int | None = Field(default=None, ge=1)  # words; None: the smallest that covers 99 % of the training entities
    negatives: int = Field(default=100, ge=1)  # sampled per sentence in training
    width_size: int = Field(default=25, ge=1)
    dropout: float = Field(default=0.1, ge=0.0, lt=1.0)
    decoding: Literal["auto", "nested", "flat"] = "auto"  # auto: nested where training entities overlap, else flat

    def fitted(self, sentences: Sequence[Sentence]) -> Self:
        """With ``max_width`` and ``decoding`` settled by the contiguous entities of the sentences, if there are any.

        >>> from spanwise.types import Entity
        >>> settings = SpannerSettings().fitted([Sentence("s1", ("a", "b", "c"), (Entity("X", ((0, 2),)),))])
        >>> settings.max_width, settings.decoding
        (2, 'flat')
        """
        spans = [_contiguous(sentence) for sentence in sentences]
        widths = np.sort([span.width for found in spans for span in found])
        if not len(widths):
            return self
        update: dict[str, object] = {}
        if self.max_width is None:
            update["max_width"] = int(widths[-(-len(widths) * COVERAGE // 100) - 1])
        if self.decoding == "auto":
            update["decoding"] = "nested" if any(_apart(found) < len(set(found)) for found in spans) else "flat"
        return self.model_copy(update=update)


class SpanNer(Head):
    """Each span of up to ``max_width`` words gets one of the types or NONE, which is the last of the C + 1 classes.

    A span [i, j) is represented by its first and last word, the maximum over its words, the sentence's [CLS] state and an
    embedding of its width: ``boundary`` [e_i; e_{j-1}; w], ``pooling`` [max; e_0; w], ``hybrid`` [e_i; e_{j-1}; max; e_0; w];
    one linear layer classifies. Training takes the gold spans and sampled negatives, scoring all spans.

    The linear layer over the concatenation is computed as the sum of its parts, each where it belongs: per word, per sentence
    and per width, and only the pooled part per span. Dropout acts on each part in the same places, so spans that share a word
    share its mask; the pooled part's mask is shared by a sentence's spans and put on the words before the maximum, which is
    the same, for a factor that is not negative and common to all words commutes with it. For any one span and part it is
    plain dropout.

    A span has one type; of a span with several gold types the first is learned. Gold spans wider than ``max_width`` and
    discontinuous entities cannot be predicted and are no examples.
    """

    settings_class = SpannerSettings
    settings: SpannerSettings

    def __init__(self, width: int, labels: Labels, settings: SpannerSettings) -> None:
        super().__init__(labels, settings)
        if settings.max_width is None or settings.decoding == "auto":
            raise SpanwiseError("the span width or the decoding is still open: settle them with settings.fitted(sentences)")
        self.max_width, self.decoding = settings.max_width, settings.decoding
        self.none = len(labels.entities)
        self.has_boundary = settings.representation != "pooling"
        self.has_pool = settings.representation != "boundary"
        self.sizes = [width] * (2 * self.has_boundary + 2 * self.has_pool) + [settings.width_size]
        self.width_embedding = nn.Embedding(self.max_width, settings.width_size)
        self.classifier = nn.Linear(sum(self.sizes), len(labels.entities) + 1)
        self._place = {kind: place for place, kind in enumerate(labels.entities)}
        self._gold = Memo(self._gold_spans)

    @classmethod
    def build(cls, encoder: Encoder, labels: Labels, settings: SpannerSettings) -> SpanNer:
        return cls(encoder.width, labels, settings)

    def targets(
        self, sentences: Sequence[Sentence], *, gold: bool, generator: np.random.Generator | None = None
    ) -> dict[str, Tensor]:
        """Packed spans: ``sentence``, ``start``, ``end`` and, with gold, ``label``."""
        lengths = np.array([len(sentence.words) for sentence in sentences], np.int64)
        if not gold:
            return _tensors(packed(grid(lengths, self.max_width)))
        known = [self._gold(sentence) for sentence in sentences]
        numbers = np.repeat(np.arange(len(known)), np.array([len(rows) for rows in known], np.int64))
        start, end, label = np.concatenate([*known, np.empty((0, 3), np.int64)]).T
        spans = Spans(numbers, start, end)
        if generator is None:
            cells = grid(lengths, self.max_width)
            labels = np.full(cells.shape, self.none)
            labels[numbers, start, end - start - 1] = label
            return _tensors(packed(cells), labels[cells])
        negatives = sampled_negatives(lengths, self.max_width, spans, self.settings.negatives, generator)
        every = Spans(*(np.concatenate(columns) for columns in zip(spans, negatives, strict=True)))
        return _tensors(every, np.concatenate((label, np.full(len(negatives.start), self.none))))

    def loss(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Losses:
        logits = self.logits(states, targets)
        values = F.cross_entropy(logits, targets["label"], reduction="none")
        none = values.new_zeros(len(states.words))
        sentence = targets["sentence"]
        return Losses(none.index_add(0, sentence, values), none.index_add(0, sentence, torch.ones_like(values)))

    def score(self, states: TokenStates, targets: Mapping[str, Tensor]) -> ScoredSpans:
        score, label = self.logits(states, targets).softmax(-1).max(-1)
        found = (label != self.none).nonzero().squeeze(1)
        columns = (targets["sentence"], targets["start"], targets["end"], label, score)
        return ScoredSpans(*(column.index_select(0, found) for column in columns))

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
            logits = logits + _project(max_pool(words, sentence, start, end, self.max_width), of_maximum)
            logits = logits + _project(self._drop(states.cls.to(weight.dtype)), of_cls).index_select(0, sentence)
        return logits

    def out_of_reach(self, sentence: Sentence) -> int:
        """Entities too wide, discontinuous, of unknown type, a further type of their span or, if flat, overlapping another."""
        spans = [Span(*row) for row in self._gold(sentence)[:, :2].tolist()]
        return len(set(sentence.entities)) - (_apart(spans) if self.decoding == "flat" else len(spans))

    def _gold_spans(self, sentence: Sentence) -> Ints:
        """Start, end and label of each gold span this head can find: [n, 3]."""
        found: dict[Span, int] = {}
        for entity in sentence.entities:
            if not entity.is_discontinuous and entity.range.width <= self.max_width and entity.type in self._place:
                found.setdefault(entity.range, self._place[entity.type])
        return np.array([(*span, label) for span, label in found.items()], np.int64).reshape(-1, 3)

    def _drop(self, values: Tensor) -> Tensor:
        return F.dropout(values, self.settings.dropout, self.training)


def _project(values: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return F.linear(values, weight, bias).float()  # parts are summed in float32, whatever the product's type


def _tensors(spans: Spans, label: Ints | None = None) -> dict[str, Tensor]:
    columns = {**spans._asdict(), **({} if label is None else {"label": label})}
    return {name: torch.from_numpy(column) for name, column in columns.items()}


def _contiguous(sentence: Sentence) -> list[Span]:
    return [entity.range for entity in sentence.entities if not entity.is_discontinuous]


def _apart(spans: Iterable[Span]) -> int:
    """The size of the largest set of spans of which no two overlap.

    >>> _apart([Span(0, 5), Span(0, 2), Span(2, 3), Span(1, 4)])
    2
    """
    count, end = 0, 0
    for span in sorted(spans, key=lambda span: span.end):
        if span.start >= end:
            count, end = count + 1, span.end
    return count
