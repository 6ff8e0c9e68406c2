"""Discontinuous entities for any span head: fragments and links between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from spanwise.core.errors import unknown_name
from spanwise.core.types import Entity, Sentence
from spanwise.decoding.decode import Predictions, add_entities
from spanwise.decoding.fragments import PackedSpans, fragment_rows, join_fragments, recoverable_entities
from spanwise.encoders.base import Encoder, TokenStates
from spanwise.encoders.recurrent import BiLSTM
from spanwise.heads.abilities import HasParameterGroups, RenamesWeights, RepeatsExamples
from spanwise.heads.base import Head, Labels, Losses, OnnxGraph, ScoredSpans
from spanwise.heads.link_grid import LinkGrid
from spanwise.heads.onnx import span_outputs, span_table
from spanwise.heads.sentence_cache import Ints, SentenceCache
from spanwise.heads.span_classifier import sum_by_sentence
from spanwise.heads.span_head import pack_rows
from spanwise.heads.span_settings import SpanSettings
from spanwise.heads.wrapper import HeadWrapper, name_targets, select_targets

HIDDEN = 200  # per direction, of the LSTM over the encoder's states
LINK_WIDTH = 24  # of the grid, if it does not follow from training sentences
MIN_SHARE = 0.05  # of the training sentences, copies included, that have discontinuous entities
MAX_REPEATS = 10  # of a sentence in an epoch


class FragmentTypes(nn.Module):
    """Classifier of the type of a fragment, from its first and last word."""

    def __init__(self, width: int, types: Sequence[str], entities: Callable[[Sentence], list[Entity]]) -> None:
        super().__init__()
        self.types, self._entities = types, entities
        self.typing = nn.Linear(2 * width, len(types))
        self._gold = SentenceCache(self._gold_rows)

    def targets(self, sentences: Sequence[Sentence], *, gold: bool) -> dict[str, Tensor]:
        return pack_rows([self._gold(sentence) for sentence in sentences]) if gold else {}

    def loss(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Losses:
        sentence, label = targets["sentence"], targets["label"]
        values = cross_entropy(self._scores(states, sentence, targets["start"], targets["end"]), label, reduction="none")
        return sum_by_sentence(values, sentence, len(states.mask))

    def split_by_type(self, states: TokenStates, spans: ScoredSpans) -> ScoredSpans:
        """Split the score of each span between the types: one row per span and type."""
        sentence, start, end = (column.unsqueeze(1) for column in (spans.sentence, spans.start, spans.end))
        shares = self._scores(states, spans.sentence, spans.start, spans.end).softmax(1) * spans.score.unsqueeze(1)
        label = torch.arange(shares.shape[1], device=shares.device)
        return ScoredSpans(*(column.expand_as(shares).reshape(-1) for column in (sentence, start, end, label, shares)))

    def _scores(self, states: TokenStates, sentence: Tensor, start: Tensor, end: Tensor) -> Tensor:
        words = states.words.flatten(0, 1)
        offset = sentence * states.words.shape[1]
        ends = torch.cat((words.index_select(0, offset + start), words.index_select(0, offset + end - 1)), 1)
        scores: Tensor = self.typing(ends).float()
        return scores

    def _gold_rows(self, sentence: Sentence) -> Ints:
        return fragment_rows(self._entities(sentence), self.types)


@dataclass(slots=True)
class ScoredFragments(ScoredSpans):
    """The ``spans`` of the wrapped head, ``fragments`` with a score for each type, and ``links`` between them."""

    spans: ScoredSpans
    fragments: ScoredSpans
    links: ScoredSpans


class Discontinuous(HeadWrapper, HasParameterGroups, RenamesWeights, RepeatsExamples):
    """Wrapper that adds discontinuous entities of some types to a head for contiguous ones.

    A grid scores fragments and links between them, and a linear layer types the fragments. A span
    may be both an entity and a fragment. Fragments are at most as wide as the head's ``max_width``,
    links as its ``link_width``.

    Most discontinuous entities are rare and must not affect the others. Therefore these parts read
    the encoder's states through their own LSTM, pass no gradient to the encoder, draw no random
    numbers (their input has the encoder's dropout) and have their gradients clipped separately:
    from the same sentences, encoder and wrapped head learn the same as without them, bit for bit.
    Sentences with discontinuous entities are repeated if they are less than 5 % of the training
    sentences, because these parts need many examples. Where at least 5 % of the training entities
    are discontinuous (``fragments_train_encoder``), the encoder learns from both; the gradient of
    these parts is then scaled by the ratio of the losses, if that of the wrapped head is smaller.

    The decoding policy of the wrapped head applies to contiguous entities. Discontinuous ones often
    share words with others ("left and right knee pain"), so they are added to all other predictions.

    ``make_head`` adds this wrapper to span heads if ``discontinuous`` lists types or, by default, if
    the training data has discontinuous entities.
    """

    settings: SpanSettings

    def __init__(self, head: Head, encoder: Encoder, types: Sequence[str]) -> None:
        super().__init__(head.labels, head.settings)
        unknown = next((type for type in types if type not in head.labels.entities), None)
        if unknown is not None:
            raise unknown_name("type of head.discontinuous", unknown, head.labels.entities)
        self.head, self.types = head, tuple(types)
        max_width, link_width = self.settings.max_width, self.settings.link_width or LINK_WIDTH
        with torch.random.fork_rng([]):  # later random numbers stay the same as without these weights
            self.context = BiLSTM(encoder.width, HIDDEN)
            self.links = LinkGrid(self.context.width, self.types, max_width, link_width)
            self.typing = FragmentTypes(self.context.width, self.types, self.links.learnable)

    @classmethod
    def build(cls, encoder: Encoder, labels: Labels, settings: Any) -> Head:
        raise NotImplementedError("Discontinuous wraps a head that is already built; use make_head")

    @property
    def wrapped(self) -> Head:
        return self.head

    @property
    def configured_head(self) -> Head:
        return self.head

    @property
    def discontinuous_types(self) -> tuple[str, ...]:
        return self.types

    def repeat(self, sentences: Sequence[Sentence]) -> list[Sentence]:
        """Repeat sentences with discontinuous entities until they are 5 % of all, each at most ten times."""
        rare = [sentence for sentence in sentences if self.links.learnable(sentence)]
        wanted = MIN_SHARE * (len(sentences) - len(rare)) / (1 - MIN_SHARE)
        count = min(round(wanted / len(rare)), MAX_REPEATS) if rare else 0
        return [*sentences, *rare * (count - 1)]

    @property
    def _parts(self) -> dict[str, LinkGrid | FragmentTypes]:
        return {"links": self.links, "typing": self.typing}

    def targets(
        self, sentences: Sequence[Sentence], *, gold: bool, generator: np.random.Generator | None = None
    ) -> dict[str, Tensor]:
        """The targets of the wrapped head, and those of the parts under their names."""
        targets = self.head.targets(sentences, gold=gold, generator=generator)
        for name, part in self._parts.items():
            targets |= name_targets(name, part.targets(sentences, gold=gold))
        return targets

    def loss(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Losses:
        losses = self.head.loss(states, targets)
        words = states.words.view_as(states.words)  # with a separate gradient
        states = self._contextualize(replace(states, words=words))
        terms = {name: part.loss(states, select_targets(targets, name)) for name, part in self._parts.items()}
        result = losses.with_terms("spans", terms)
        if words.requires_grad and self.settings.fragments_train_encoder is True:
            # Heads have losses of different scales: a mean over spans is a hundredth of the mean over sentences.
            weight = (losses.mean / (result.mean - losses.mean).clamp(min=1e-6)).detach().clamp(max=1.0)
            words.register_hook(lambda gradient: gradient * weight)  # type: ignore[no-untyped-call]
        return result

    def score(self, states: TokenStates, targets: Mapping[str, Tensor]) -> ScoredFragments:
        spans, states = self.head.score(states, targets), self._contextualize(states)
        untyped, links = self.links.score(states)
        fragments = self.typing.split_by_type(states, untyped)
        return ScoredFragments(*spans.columns, spans, fragments, links, pairs=spans.pairs)

    def _contextualize(self, states: TokenStates) -> TokenStates:
        words = states.words if self.settings.fragments_train_encoder is True else states.words.detach()
        words = self.context(words.float(), states.mask.sum(1))
        return TokenStates(words, states.cls, states.mask)

    def separately_clipped_parameters(self) -> Iterator[nn.Parameter]:
        for part in (self.context, *self._parts.values()):
            yield from part.parameters()

    def decode(self, scored: ScoredSpans, count: int) -> list[Predictions]:
        assert isinstance(scored, ScoredFragments)
        predictions = self.head.decode(scored.spans, count)
        columns = [
            PackedSpans(*(column.detach().cpu().numpy() for column in table.columns))
            for table in (scored.fragments, scored.links)
        ]
        joined = join_fragments(*columns, count=count, types=self.types)
        return [
            add_entities(prediction, entities) if entities else prediction
            for prediction, entities in zip(predictions, joined, strict=True)
        ]

    def count_unreachable(self, sentence: Sentence) -> int:
        """The count of the wrapped head, minus the discontinuous entities that fragments and links can represent."""
        entities = self.links.learnable(sentence)
        reachable = recoverable_entities(entities, self.types) & set(entities) if entities else set()
        return super().count_unreachable(sentence) - len(reachable)

    @property
    def onnx(self) -> OnnxGraph | str:
        graph = self.head.onnx
        if isinstance(graph, str):
            return graph
        outputs = tuple(name for table in ("spans", "fragments", "links") for name in span_outputs(table))
        return replace(graph, returns="fragments", outputs=outputs, compute=self._tables, fragment_types=self.types)

    def _tables(self, states: TokenStates, inputs: Mapping[str, Tensor]) -> tuple[Tensor, ...]:
        scored = self.score(states, inputs)
        return (*span_table(scored.spans), *span_table(scored.fragments), *span_table(scored.links))

    def transfer_name(self, name: str) -> str:
        """Match the weights of the wrapped head with those of a head without this wrapper.

        The name of the fragment typing layer contains the types, because it only fits the same types.
        """
        if name.startswith("head."):
            return name.removeprefix("head.")
        return f"{self.types if name.startswith('typing.') else 'discontinuous'}.{name}"
