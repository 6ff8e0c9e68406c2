"""SNG: a BiLSTM with attention over the words of each span (section 2 of the paper)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from pydantic import Field
from torch import Tensor, nn

from spanwise.core.types import Sentence
from spanwise.decoding.decode import Predictions
from spanwise.encoders.base import Encoder, TokenStates
from spanwise.encoders.recurrent import BiLSTM, VariationalDropout
from spanwise.heads.base import Labels, Losses, ScoredSpans, SpanVectors
from spanwise.heads.given_spans import TypedSpans, given_targets, keep_entity_words
from spanwise.heads.span_classifier import ClassifierSettings, SpanClassifier, sum_by_sentence
from spanwise.spans.span_lstm import SpanLstm, lstm_layout


class SngSettings(ClassifierSettings):
    """Settings of ``Sng``. The paper uses neither dropout nor context and only types given spans."""

    task: Literal["entities", "typing"] = Field(
        default="entities", description="entities: predict entities; typing: type given spans"
    )
    fragments: Literal["together", "separate"] = Field(
        default="together", description="type the fragments of a given entity together, or separately as in the paper"
    )
    hidden: int = Field(default=200, ge=1, description="size of the LSTM over a span's words, per direction")
    context: bool = Field(default=False, description="add a BiLSTM over the sentence before the spans")
    context_hidden: int = Field(default=200, ge=1, description="size of that BiLSTM, per direction")
    dropout: float = Field(
        default=0.0, ge=0.0, lt=1.0, description="dropout on span vectors and on the output of the context BiLSTM"
    )

    @property
    def discontinuous_types(self) -> tuple[str, ...]:
        """None for typing: given entities are typed with any fragments."""
        return () if self.task == "typing" else super().discontinuous_types


class Sng(SpanClassifier):
    """Span classifier with a BiLSTM and attention that read only the words of the span.

    With plain word vectors as encoder it is free of context: the same words get the same type in
    every sentence. ``task: typing`` has no NONE class and no candidates: the sentences come with
    entities, of any width and any number of fragments, and each gets a type.

    Paper: "A Span-level Strategy for Nested Named Entity Recognition" (SNG), section 2.

    Use it to type given spans, or with a static encoder on a CPU. For entity recognition with a
    transformer, prefer ``SpanNer`` or ``Biaffine``.

    >>> from spanwise.core.types import Entity
    >>> head = Sng(8, Labels(("Drug", "Place")), SngSettings(task="typing", max_width=3, decoding="flat"))
    >>> sentence = Sentence("s1", ("in", "Oslo"), (Entity("?", ((1, 2),)),))
    >>> states = TokenStates(torch.zeros(1, 2, 8), torch.zeros(1, 8), torch.ones(1, 2, dtype=torch.bool))
    >>> (predictions,) = head.decode(head.score(states, head.targets([sentence], gold=False)), 1)
    >>> [entity.range for entity in predictions.entities]
    [Span(start=1, end=2)]
    """

    settings_class = SngSettings
    settings: SngSettings
    tasks: ClassVar[tuple[str, ...]] = ("entities", "typing")

    def __init__(self, width: int, labels: Labels, settings: SngSettings, *, is_context_free: bool = False) -> None:
        super().__init__(labels, settings)
        self.task = settings.task
        self.is_context_free = is_context_free and not settings.context
        self.context = BiLSTM(width, settings.context_hidden) if settings.context else None
        self.drop_words = VariationalDropout(settings.dropout)
        self.spans = SpanLstm(self.context.width if self.context else width, settings.hidden)
        classes = len(labels.entities) + (self.task == "entities")
        self.classifier = nn.Linear(self.spans.width, classes)

    @classmethod
    def build(cls, encoder: Encoder, labels: Labels, settings: SngSettings) -> Sng:
        return cls(encoder.width, labels, settings, is_context_free=encoder.is_context_free)

    @property
    def onnx(self) -> str:
        return "the order in which its LSTM reads the words of spans is computed on the host"

    def training_example(self, sentence: Sentence) -> Sentence | None:
        """For typing, skip sentences without entities and, without context, words outside of entities."""
        if self.task == "entities":
            return sentence
        if not any(entity.type in self._type_index for entity in sentence.entities):
            return None
        return keep_entity_words(sentence) if self.is_context_free else sentence

    def targets(
        self, sentences: Sequence[Sentence], *, gold: bool, generator: np.random.Generator | None = None
    ) -> dict[str, Tensor]:
        """The spans and the order in which the LSTM reads their words.

        For typing, the spans are the entities of the sentences; only ``gold`` uses their types.
        """
        if self.task == "typing":
            return given_targets(
                sentences,
                self._type_index if gold else None,
                splits_fragments=self.settings.fragments == "separate",
                is_context_free=self.is_context_free,
            )
        spans = super().targets(sentences, gold=gold, generator=generator)
        lengths = np.array([len(sentence.words) for sentence in sentences], np.int64)
        before = np.cumsum(lengths) - lengths
        sentence, start, end = (spans[name].numpy() for name in ("sentence", "start", "end"))
        word_sentence = np.repeat(np.arange(len(lengths)), lengths)
        return {
            **spans,
            "word_sentence": torch.from_numpy(word_sentence),
            "word": torch.from_numpy(np.arange(len(word_sentence)) - before[word_sentence]),
            **lstm_layout(before[sentence] + start, end - start),
        }

    def loss(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Losses:
        if self.task == "entities":
            return super().loss(states, targets)
        logits = self.logits(states, targets).index_select(0, targets["read_span"])
        values = F.cross_entropy(logits, targets["label"], reduction="none")
        return sum_by_sentence(values, targets["sentence"], len(states.words))

    def score(self, states: TokenStates, targets: Mapping[str, Tensor]) -> ScoredSpans:
        if self.task == "entities":
            return super().score(states, targets)
        scores, labels = self.logits(states, targets).softmax(-1).max(-1)
        score, label = (column.index_select(0, targets["read_span"]) for column in (scores, labels))
        return TypedSpans(targets["sentence"], targets["start"], targets["end"], label, score, targets["entity"])

    def decode(self, scored: ScoredSpans, count: int) -> list[Predictions]:
        if isinstance(scored, TypedSpans):
            return scored.decode(count, self.labels.entities)
        return super().decode(scored, count)

    def count_unreachable(self, sentence: Sentence) -> int:
        """For typing, entities of unknown type and further types of the same span."""
        if self.task == "entities":
            return super().count_unreachable(sentence)
        reachable = {entity.fragments for entity in sentence.entities if entity.type in self._type_index}
        return len(set(sentence.entities)) - len(reachable)

    def span_vectors(self, states: TokenStates, targets: Mapping[str, Tensor]) -> SpanVectors:
        return self.pack(self.vectors(states, targets), targets)

    def pack(self, values: Tensor, targets: Mapping[str, Tensor]) -> SpanVectors:
        """For typing, only the given entities of one fragment: fragments have no separate vectors."""
        if self.task == "entities":
            return super().pack(values, targets)
        entity = targets["entity"]
        contiguous = (torch.bincount(entity)[entity] == 1).nonzero().squeeze(1)
        selected = {name: targets[name].index_select(0, contiguous) for name in ("sentence", "start", "end", "read_span")}
        return super().pack(values.index_select(0, selected["read_span"]), selected)

    def logits(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Tensor:
        """The logits of all classes for each span that the LSTM reads, in float32."""
        vectors = F.dropout(self.vectors(states, targets), self.settings.dropout, self.training)
        logits: Tensor = self.classifier(vectors)
        return logits.float()

    def vectors(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Tensor:
        """The vector of each span that the LSTM reads."""
        words = states.words.to(self.classifier.weight.dtype)
        if self.context is not None:
            words = self.drop_words(self.context(words, states.mask.sum(1)))
        places = targets["word_sentence"] * words.shape[1] + targets["word"]
        vectors: Tensor = self.spans(words.flatten(0, 1).index_select(0, places), targets)
        return vectors
