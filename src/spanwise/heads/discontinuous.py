"""Entities of several fragments, for every head that judges spans: fragments and the links between them, found beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from spanwise.decoding import Found, in_text_order
from spanwise.encoders.base import Encoder, TokenStates
from spanwise.encoders.recurrent import BiLSTM
from spanwise.errors import unknown
from spanwise.fragments import LINKS, Columns, fragment_rows, in_fragments, joined, link_rows, perfect
from spanwise.heads.base import Head, Labels, Losses, ScoredSpans, SpanVectors, own_targets
from spanwise.heads.memo import Ints
from spanwise.heads.pair_pointer import PRIOR
from spanwise.heads.pointer import EfficientGlobalPointer, GlobalPointer, PointerSettings
from spanwise.heads.span_head import SpanSettings
from spanwise.spans.tiles import Tiles
from spanwise.types import Sentence

HIDDEN = 100  # of the LSTM over bare word vectors, per direction


class Fragments(EfficientGlobalPointer):
    """Which spans are fragments of an entity, and of what type."""

    def __init__(self, width: int, types: Sequence[str], settings: PointerSettings) -> None:
        super().__init__(width, Labels(tuple(types)), settings)
        nn.init.constant_(self.typing.bias, PRIOR)  # a score has the mean of two of them

    def _gold_rows(self, sentence: Sentence) -> Ints:
        types = self.labels.entities
        return fragment_rows(in_fragments(sentence, types, self.max_width), types)


class FragmentLinks(GlobalPointer):
    """Which fragments belong together: a link is told by two spans, see ``spanwise.fragments``.

    So links are learned as spans are: the earlier fragment comes first, and their distance counts.
    """

    def __init__(self, width: int, types: Sequence[str], max_width: int | None, settings: PointerSettings) -> None:
        super().__init__(width, Labels(LINKS), settings)
        self.types, self.widest_fragment = types, max_width
        self.bias = nn.Parameter(torch.full((len(LINKS),), PRIOR))

    def scores(self, words: Tensor, tiles: Tiles) -> Tensor:
        return super().scores(words, tiles) + self.bias.float().view(-1, 1, 1, 1)

    def _gold_rows(self, sentence: Sentence) -> Ints:
        return link_rows(in_fragments(sentence, self.types, self.widest_fragment))


@dataclass(slots=True)
class ScoredFragments(ScoredSpans):
    """Beside the ``spans`` of the head inside, ``fragments``, whose labels are places among the discontinuous types."""

    spans: ScoredSpans
    fragments: ScoredSpans
    links: ScoredSpans


class Discontinuous(Head):
    """A head for contiguous entities, and two small pointers that find the discontinuous ones of some types.

    The head inside is as it would be alone: a span may be an entity, a fragment and both. It learns on the same states, and the
    pointers' losses (means per sentence and label) are added to its own with ``discontinuous_weight``: little where such
    entities are few, so that the states serve the others. Fragments are no wider than the head's ``max_width``.

    The head's decoding policy is for contiguous entities among themselves. Discontinuous ones share words with others by their
    nature ("left and right knee pain"), so they stand beside whatever else is found; it is the joining that makes valid ones.
    """

    settings: SpanSettings

    def __init__(self, head: Head, encoder: Encoder, types: Sequence[str]) -> None:
        super().__init__(head.labels, head.settings)
        missing = next((kind for kind in types if kind not in head.labels.entities), None)
        if missing is not None:
            raise unknown("type of head.discontinuous", missing, head.labels.entities)
        self.head, self.types = head, tuple(types)
        self.decoding, self.prunes = head.decoding, head.prunes
        # Words alone do not say what belongs together: bare vectors are read in their sentence first.
        self.context = BiLSTM(encoder.width, HIDDEN) if encoder.is_context_free else None
        width, widest = self.context.width if self.context else encoder.width, self.settings.max_width
        self.fragments = Fragments(width, self.types, PointerSettings(decoding="overlapping", max_width=widest))
        self.links = FragmentLinks(width, self.types, widest, PointerSettings(decoding="overlapping"))

    @classmethod
    def build(cls, encoder: Encoder, labels: Labels, settings: Any) -> Head:
        raise NotImplementedError("it is put around a head that is built already")

    @property
    def inner(self) -> Head:
        return self.head

    @property
    def _pointers(self) -> dict[str, Head]:
        return {"fragments": self.fragments, "links": self.links}

    def targets(
        self, sentences: Sequence[Sentence], *, gold: bool, generator: np.random.Generator | None = None
    ) -> dict[str, Tensor]:
        """Those of the head inside, and the pointers' own under their names."""
        targets = self.head.targets(sentences, gold=gold, generator=generator)
        for name, pointer in self._pointers.items():
            targets |= {f"{name}.{key}": value for key, value in pointer.targets(sentences, gold=gold).items()}
        return targets

    def loss(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Losses:
        losses, states = self.head.loss(states, targets), self._in_context(states)
        terms = {name: pointer.loss(states, own_targets(targets, name)) for name, pointer in self._pointers.items()}
        return losses.plus("spans", terms, self.settings.discontinuous_weight or 1.0)

    def score(self, states: TokenStates, targets: Mapping[str, Tensor]) -> ScoredFragments:
        spans, states = self.head.score(states, targets), self._in_context(states)
        fragments, links = (pointer.score(states, {}) for pointer in self._pointers.values())
        return ScoredFragments(*spans.columns, spans, fragments, links, pairs=spans.pairs)

    def _in_context(self, states: TokenStates) -> TokenStates:
        if self.context is None:
            return states
        return TokenStates(self.context(states.words.float(), states.mask.sum(1)), states.cls, states.mask)

    def read(self, scored: ScoredSpans, count: int) -> list[Found]:
        assert isinstance(scored, ScoredFragments)
        found = self.head.read(scored.spans, count)
        columns = [
            Columns(*(column.detach().cpu().numpy() for column in part.columns)) for part in (scored.fragments, scored.links)
        ]
        more = joined(*columns, count=count, types=self.types)
        return [in_text_order(one, own) if own else one for one, own in zip(found, more, strict=True)]

    def out_of_reach(self, sentence: Sentence) -> int:
        """What the head inside cannot reach, less the discontinuous entities that fragments and links can tell."""
        own = in_fragments(sentence, self.types, self.settings.max_width)
        return self.head.out_of_reach(sentence) - (len(perfect(own, self.types) & set(own)) if own else 0)

    def set_threshold(self, threshold: float) -> float | None:
        """Of the contiguous entities; which fragments are joined stays as it is."""
        return self.head.set_threshold(threshold)

    def kept_gold(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Tensor:
        return self.head.kept_gold(states, targets)

    def pretrained_parameters(self) -> Iterator[nn.Parameter]:
        return self.head.pretrained_parameters()

    def span_vectors(self, states: TokenStates, targets: Mapping[str, Tensor]) -> SpanVectors:
        return self.head.span_vectors(states, targets)

    def span_probabilities(self, states: TokenStates, targets: Mapping[str, Tensor]) -> SpanVectors:
        """Of spans as contiguous entities."""
        return self.head.span_probabilities(states, targets)

    @property
    def templates(self) -> Tensor | None:
        return self.head.templates
