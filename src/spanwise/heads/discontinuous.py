"""Discontinuous entities for any span head: fragments and links between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from spanwise.core.errors import unknown_name
from spanwise.core.types import Sentence
from spanwise.decoding.decode import Predictions, add_entities
from spanwise.decoding.fragments import (
    LINK_LABELS,
    PackedSpans,
    discontinuous_entities,
    fragment_rows,
    join_fragments,
    link_rows,
    recoverable_entities,
)
from spanwise.encoders.base import Encoder, TokenStates
from spanwise.encoders.recurrent import BiLSTM
from spanwise.heads.abilities import HasParameterGroups, RenamesWeights
from spanwise.heads.base import Head, Labels, Losses, OnnxGraph, ScoredSpans
from spanwise.heads.onnx import span_outputs, span_table
from spanwise.heads.pair_pointer import INITIAL_SCORE
from spanwise.heads.pointer import GlobalPointer, Pointer, PointerSettings
from spanwise.heads.sentence_cache import Ints, SentenceCache
from spanwise.heads.span_classifier import sum_by_sentence
from spanwise.heads.span_head import pack_rows
from spanwise.heads.span_settings import SpanSettings
from spanwise.heads.wrapper import HeadWrapper, name_targets, select_targets
from spanwise.losses.smoothing import SoftSpans
from spanwise.spans.tiles import Tiles

HIDDEN = 200  # per direction, of the LSTM over the encoder's states


class RarePointer(GlobalPointer):
    """A pointer with a negative bias, for rare labels: before training it predicts nothing."""

    def __init__(self, width: int, labels: Labels, settings: PointerSettings) -> None:
        super().__init__(width, labels, settings)
        self.bias = nn.Parameter(torch.full((len(labels.entities),), INITIAL_SCORE))

    def scores(self, words: Tensor, tiles: Tiles) -> Tensor:
        return super().scores(words, tiles) + self.bias.float().view(-1, 1, 1, 1)

    def with_teacher(self, gold: SoftSpans, sentence: Sentence, *, has_one_type: bool) -> SoftSpans:
        """Gold: the probabilities of teachers are of whole entities, not of fragments and links."""
        return gold


class Fragments(RarePointer):
    """Scores whether a span is a fragment of an entity of any type; single types would be too rare."""

    def __init__(self, width: int, types: Sequence[str], settings: PointerSettings) -> None:
        super().__init__(width, Labels(("fragment",)), settings)
        self.types = types

    def _gold_rows(self, sentence: Sentence) -> Ints:
        spans = np.unique(
            fragment_rows(discontinuous_entities(sentence, self.types, self.max_width), self.types)[:, :2], axis=0
        )
        return np.pad(spans, ((0, 0), (0, 1)))


class FragmentTypes(nn.Module):
    """Classifies the type of a fragment from its first and last word."""

    def __init__(self, width: int, types: Sequence[str], settings: PointerSettings) -> None:
        super().__init__()
        self.types, self.max_width = types, settings.max_width
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
        return fragment_rows(discontinuous_entities(sentence, self.types, self.max_width), self.types)


class FragmentLinks(RarePointer):
    """Scores which fragments belong together.

    A link is represented by two spans (see ``spanwise.decoding.fragments``), so that a pointer can
    learn it: the earlier fragment comes first, and positions matter.
    """

    def __init__(self, width: int, types: Sequence[str], max_width: int | None, settings: PointerSettings) -> None:
        super().__init__(width, Labels(LINK_LABELS), settings)
        self.types, self.max_fragment_width = types, max_width

    def _gold_rows(self, sentence: Sentence) -> Ints:
        return link_rows(discontinuous_entities(sentence, self.types, self.max_fragment_width))


@dataclass(slots=True)
class ScoredFragments(ScoredSpans):
    """The ``spans`` of the wrapped head, ``fragments`` with a score for each type, and ``links`` between them."""

    spans: ScoredSpans
    fragments: ScoredSpans
    links: ScoredSpans


class Discontinuous(HeadWrapper, HasParameterGroups, RenamesWeights):
    """Adds discontinuous entities of some types to a head for contiguous ones.

    Two pointers score fragments and links between them, and a linear layer types the fragments. A
    span may be both an entity and a fragment. Fragments are at most as wide as the head's
    ``max_width``.

    Most discontinuous entities are rare and must not affect the others. Therefore these parts read
    the encoder's states through their own LSTM, pass no gradient to the encoder, draw no random
    numbers (their input has the encoder's dropout) and have their gradients clipped separately:
    encoder and wrapped head learn bit for bit the same as without them. Where at least 5 % of the
    training entities are discontinuous (``fragments_train_encoder``), the encoder learns from both.

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
        max_width = self.settings.max_width
        links = PointerSettings(decoding="overlapping", dropout=0.0)
        fragments = links.model_copy(update={"max_width": max_width})
        with torch.random.fork_rng([]):  # later random numbers stay the same as without these weights
            self.context = BiLSTM(encoder.width, HIDDEN)
            self.fragments = Fragments(self.context.width, self.types, fragments)
            self.typing = FragmentTypes(self.context.width, self.types, fragments)
            self.links = FragmentLinks(self.context.width, self.types, max_width, links)

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

    @property
    def _parts(self) -> dict[str, Pointer | FragmentTypes]:
        return {"fragments": self.fragments, "typing": self.typing, "links": self.links}

    def targets(
        self, sentences: Sequence[Sentence], *, gold: bool, generator: np.random.Generator | None = None
    ) -> dict[str, Tensor]:
        """The targets of the wrapped head, and those of the parts under their names."""
        targets = self.head.targets(sentences, gold=gold, generator=generator)
        for name, part in self._parts.items():
            targets |= name_targets(name, part.targets(sentences, gold=gold))
        return targets

    def loss(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Losses:
        losses, states = self.head.loss(states, targets), self._contextualize(states)
        terms = {name: part.loss(states, select_targets(targets, name)) for name, part in self._parts.items()}
        return losses.with_terms("spans", terms)

    def score(self, states: TokenStates, targets: Mapping[str, Tensor]) -> ScoredFragments:
        spans, states = self.head.score(states, targets), self._contextualize(states)
        untyped, links = self.fragments.score(states, {}), self.links.score(states, {})
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
        """As of the wrapped head, minus the discontinuous entities that fragments and links can represent."""
        entities = discontinuous_entities(sentence, self.types, self.settings.max_width)
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
