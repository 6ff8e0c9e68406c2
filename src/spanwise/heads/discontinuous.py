"""Entities of several fragments, for every head that judges spans: fragments and the links between them, found beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from spanwise.core.errors import unknown_name
from spanwise.core.types import Sentence
from spanwise.decoding.decode import Predictions, in_text_order
from spanwise.decoding.fragments import LINKS, Columns, fragment_rows, in_fragments, joined, link_rows, perfect
from spanwise.encoders.base import Encoder, TokenStates
from spanwise.encoders.recurrent import BiLSTM
from spanwise.heads.base import Head, Labels, Losses, ScoredSpans, SpanVectors, select_targets
from spanwise.heads.memo import Ints, Memo
from spanwise.heads.pair_pointer import PRIOR
from spanwise.heads.pointer import GlobalPointer, Pointer, PointerSettings
from spanwise.heads.span_classifier import summed
from spanwise.heads.span_head import SpanSettings, packed_rows
from spanwise.spans.tiles import Tiles

HIDDEN = 200  # of the LSTM over the encoder's states, per direction


class RarePointer(GlobalPointer):
    """A pointer with a bias, for what hardly a sentence has: at first it finds nothing."""

    def __init__(self, width: int, labels: Labels, settings: PointerSettings) -> None:
        super().__init__(width, labels, settings)
        self.bias = nn.Parameter(torch.full((len(labels.entities),), PRIOR))

    def scores(self, words: Tensor, tiles: Tiles) -> Tensor:
        return super().scores(words, tiles) + self.bias.float().view(-1, 1, 1, 1)


class Fragments(RarePointer):
    """Which spans are fragments of an entity, of whatever type: all types together are few."""

    def __init__(self, width: int, types: Sequence[str], settings: PointerSettings) -> None:
        super().__init__(width, Labels(("fragment",)), settings)
        self.types = types

    def _gold_rows(self, sentence: Sentence) -> Ints:
        spans = np.unique(fragment_rows(in_fragments(sentence, self.types, self.max_width), self.types)[:, :2], axis=0)
        return np.pad(spans, ((0, 0), (0, 1)))


class FragmentTypes(nn.Module):
    """Of what type a fragment is, given that it is one: by its first and its last word."""

    def __init__(self, width: int, types: Sequence[str], settings: PointerSettings) -> None:
        super().__init__()
        self.types, self.max_width = types, settings.max_width
        self.typing = nn.Linear(2 * width, len(types))
        self._gold = Memo(self._gold_rows)

    def targets(self, sentences: Sequence[Sentence], *, gold: bool) -> dict[str, Tensor]:
        return packed_rows([self._gold(sentence) for sentence in sentences]) if gold else {}

    def loss(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Losses:
        sentence, label = targets["sentence"], targets["label"]
        values = cross_entropy(self._scores(states, sentence, targets["start"], targets["end"]), label, reduction="none")
        return summed(values, sentence, len(states.mask))

    def shared_out(self, states: TokenStates, spans: ScoredSpans) -> ScoredSpans:
        """For every span and type a row with the type's share in the span's score."""
        sentence, start, end = (column.unsqueeze(1) for column in (spans.sentence, spans.start, spans.end))
        shares = self._scores(states, spans.sentence, spans.start, spans.end).softmax(1) * spans.score.unsqueeze(1)
        label = torch.arange(shares.shape[1], device=shares.device)
        return ScoredSpans(*(column.expand_as(shares).reshape(-1) for column in (sentence, start, end, label, shares)))

    def _scores(self, states: TokenStates, sentence: Tensor, start: Tensor, end: Tensor) -> Tensor:
        words = states.words.flatten(0, 1)
        first = sentence * states.words.shape[1]
        ends = torch.cat((words.index_select(0, first + start), words.index_select(0, first + end - 1)), 1)
        scores: Tensor = self.typing(ends).float()
        return scores

    def _gold_rows(self, sentence: Sentence) -> Ints:
        return fragment_rows(in_fragments(sentence, self.types, self.max_width), self.types)


class FragmentLinks(RarePointer):
    """Which fragments belong together: a link is told by two spans, see ``spanwise.decoding.fragments``.

    So links are learned as spans are: the earlier fragment comes first, and their distance counts.
    """

    def __init__(self, width: int, types: Sequence[str], max_width: int | None, settings: PointerSettings) -> None:
        super().__init__(width, Labels(LINKS), settings)
        self.types, self.widest_fragment = types, max_width

    def _gold_rows(self, sentence: Sentence) -> Ints:
        return link_rows(in_fragments(sentence, self.types, self.widest_fragment))


@dataclass(slots=True)
class ScoredFragments(ScoredSpans):
    """Beside the ``spans`` of the head inside, ``fragments``, each with its share for each of the discontinuous types."""

    spans: ScoredSpans
    fragments: ScoredSpans
    links: ScoredSpans


class Discontinuous(Head):
    """A head for contiguous entities, and small parts that find the discontinuous ones of some types.

    Two pointers find fragments and links, and a linear layer types fragments; a span may be an entity, a fragment and both.
    Fragments are no wider than the head's ``max_width``. Such entities are rare, and must not cost the others anything: the
    parts read the encoder's states through an LSTM of their own, give nothing back to the encoder, draw no random numbers
    (their input has the encoder's dropout) and have their gradients clipped apart. So encoder and head inside learn bit for
    bit what they would learn alone.

    The head's decoding policy is for contiguous entities among themselves. Discontinuous ones share words with others by their
    nature ("left and right knee pain"), so they stand beside whatever else is found; it is the joining that makes valid ones.
    """

    settings: SpanSettings

    def __init__(self, head: Head, encoder: Encoder, types: Sequence[str]) -> None:
        super().__init__(head.labels, head.settings)
        missing = next((kind for kind in types if kind not in head.labels.entities), None)
        if missing is not None:
            raise unknown_name("type of head.discontinuous", missing, head.labels.entities)
        self.head, self.types = head, tuple(types)
        self.decoding, self.prunes = head.decoding, head.prunes
        widest = self.settings.max_width
        links = PointerSettings(decoding="overlapping", dropout=0.0)
        fragments = links.model_copy(update={"max_width": widest})
        with torch.random.fork_rng([]):  # what is drawn behind these weights is what would be drawn without them
            self.context = BiLSTM(encoder.width, HIDDEN)
            self.fragments = Fragments(self.context.width, self.types, fragments)
            self.typing = FragmentTypes(self.context.width, self.types, fragments)
            self.links = FragmentLinks(self.context.width, self.types, widest, links)

    @classmethod
    def build(cls, encoder: Encoder, labels: Labels, settings: Any) -> Head:
        raise NotImplementedError("it is put around a head that is built already")

    @property
    def inner(self) -> Head:
        return self.head

    @property
    def _parts(self) -> dict[str, Pointer | FragmentTypes]:
        return {"fragments": self.fragments, "typing": self.typing, "links": self.links}

    def targets(
        self, sentences: Sequence[Sentence], *, gold: bool, generator: np.random.Generator | None = None
    ) -> dict[str, Tensor]:
        """Those of the head inside, and the parts' own under their names."""
        targets = self.head.targets(sentences, gold=gold, generator=generator)
        for name, part in self._parts.items():
            targets |= {f"{name}.{key}": value for key, value in part.targets(sentences, gold=gold).items()}
        return targets

    def loss(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Losses:
        losses, states = self.head.loss(states, targets), self._in_context(states)
        terms = {name: part.loss(states, select_targets(targets, name)) for name, part in self._parts.items()}
        return losses.plus("spans", terms)

    def score(self, states: TokenStates, targets: Mapping[str, Tensor]) -> ScoredFragments:
        spans, states = self.head.score(states, targets), self._in_context(states)
        found, links = self.fragments.score(states, {}), self.links.score(states, {})
        fragments = self.typing.shared_out(states, found)
        return ScoredFragments(*spans.columns, spans, fragments, links, pairs=spans.pairs)

    def _in_context(self, states: TokenStates) -> TokenStates:
        words = self.context(states.words.detach().float(), states.mask.sum(1))
        return TokenStates(words, states.cls, states.mask)

    def separately_clipped_parameters(self) -> Iterator[nn.Parameter]:
        for part in (self.context, *self._parts.values()):
            yield from part.parameters()

    def read(self, scored: ScoredSpans, count: int) -> list[Predictions]:
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
