"""SNG: a span is typed by its own words, which a BiLSTM with attention reads (Wang 2024, section 3)."""

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
from spanwise.heads.given_spans import TypedSpans, given_targets, words_of_entities
from spanwise.heads.span_classifier import ClassifierSettings, SpanClassifier, summed
from spanwise.spans.reading import SpanReader, reading


class SngSettings(ClassifierSettings):
    """What may be set. The paper has neither dropout nor context, and types given spans only."""

    task: Literal["entities", "typing"] = "entities"  # to find entities, or to type given ones
    fragments: Literal["together", "apart"] = "together"  # of a given entity: typed as one, or each by itself as in the paper
    hidden: int = Field(default=200, ge=1)  # of the LSTM over a span's words, per direction
    context: bool = False  # whether a BiLSTM over the sentence comes between the words and the spans
    context_hidden: int = Field(default=200, ge=1)  # of that, per direction
    dropout: float = Field(default=0.0, ge=0.0, lt=1.0)  # of spans, and of words that have passed the context

    @property
    def fragmented(self) -> tuple[str, ...]:
        """Given entities are typed whatever their fragments are: nothing is to be found."""
        return () if self.task == "typing" else super().fragmented


class Sng(SpanClassifier):
    """Reads the words of each span alone, from both ends, and classifies what attention makes of the states.

    With bare word vectors as the encoder's states it is free of context: the same words get the same type in every sentence.
    ``task: typing`` has no NONE class and no candidates: the spans come with the sentences, of any width and any number of
    fragments, and get a type each.
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
        self.spans = SpanReader(self.context.width if self.context else width, settings.hidden)
        classes = len(labels.entities) + (self.task == "entities")
        self.classifier = nn.Linear(self.spans.width, classes)

    @classmethod
    def build(cls, encoder: Encoder, labels: Labels, settings: SngSettings) -> Sng:
        return cls(encoder.width, labels, settings, is_context_free=encoder.is_context_free)

    def training_example(self, sentence: Sentence) -> Sentence | None:
        """In typing, sentences without entities teach nothing, nor do words outside of them where there is no context."""
        if self.task == "entities":
            return sentence
        if not any(entity.type in self._place for entity in sentence.entities):
            return None
        return words_of_entities(sentence) if self.is_context_free else sentence

    def targets(
        self, sentences: Sequence[Sentence], *, gold: bool, generator: np.random.Generator | None = None
    ) -> dict[str, Tensor]:
        """The spans and how they are read; in typing, those of the sentences' entities, whose types ``gold`` looks at."""
        if self.task == "typing":
            return given_targets(
                sentences,
                self._place if gold else None,
                is_apart=self.settings.fragments == "apart",
                is_context_free=self.is_context_free,
            )
        spans = super().targets(sentences, gold=gold, generator=generator)
        lengths = np.array([len(sentence.words) for sentence in sentences], np.int64)
        before = np.cumsum(lengths) - lengths
        sentence, start, end = (spans[name].numpy() for name in ("sentence", "start", "end"))
        owner = np.repeat(np.arange(len(lengths)), lengths)
        return {
            **spans,
            "word_sentence": torch.from_numpy(owner),
            "word": torch.from_numpy(np.arange(len(owner)) - before[owner]),
            **reading(before[sentence] + start, end - start),
        }

    def loss(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Losses:
        if self.task == "entities":
            return super().loss(states, targets)
        logits = self.logits(states, targets).index_select(0, targets["read"])
        values = F.cross_entropy(logits, targets["label"], reduction="none")
        return summed(values, targets["sentence"], len(states.words))

    def score(self, states: TokenStates, targets: Mapping[str, Tensor]) -> ScoredSpans:
        if self.task == "entities":
            return super().score(states, targets)
        scores, labels = self.logits(states, targets).softmax(-1).max(-1)
        score, label = (column.index_select(0, targets["read"]) for column in (scores, labels))
        return TypedSpans(targets["sentence"], targets["start"], targets["end"], label, score, targets["entity"])

    def read(self, scored: ScoredSpans, count: int) -> list[Predictions]:
        if isinstance(scored, TypedSpans):
            return scored.read(count, self.labels.entities)
        return super().read(scored, count)

    def out_of_reach(self, sentence: Sentence) -> int:
        """In typing, entities of unknown type and second types of a span."""
        if self.task == "entities":
            return super().out_of_reach(sentence)
        reached = {entity.fragments for entity in sentence.entities if entity.type in self._place}
        return len(set(sentence.entities)) - len(reached)

    def span_vectors(self, states: TokenStates, targets: Mapping[str, Tensor]) -> SpanVectors:
        return self.packed(self.vectors(states, targets), targets)

    def packed(self, values: Tensor, targets: Mapping[str, Tensor]) -> SpanVectors:
        """In typing, of the given entities that are one span: a fragment has no vector of its own."""
        if self.task == "entities":
            return super().packed(values, targets)
        entity = targets["entity"]
        whole = (torch.bincount(entity)[entity] == 1).nonzero().squeeze(1)
        own = {name: targets[name].index_select(0, whole) for name in ("sentence", "start", "end", "read")}
        return super().packed(values.index_select(0, own["read"]), own)

    def logits(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Tensor:
        """The scores of all classes for each span that is read, in float32."""
        vectors = F.dropout(self.vectors(states, targets), self.settings.dropout, self.training)
        logits: Tensor = self.classifier(vectors)
        return logits.float()

    def vectors(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Tensor:
        """What attention makes of the states of each span that is read."""
        words = states.words.to(self.classifier.weight.dtype)
        if self.context is not None:
            words = self.drop_words(self.context(words, states.mask.sum(1)))
        places = targets["word_sentence"] * words.shape[1] + targets["word"]
        vectors: Tensor = self.spans(words.flatten(0, 1).index_select(0, places), targets)
        return vectors
