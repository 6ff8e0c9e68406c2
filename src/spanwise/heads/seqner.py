"""SeqNER of "Bundling Learning" (section 3.1.2): a BIO tag per word, each by itself (softmax) or as a sequence (CRF)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from pydantic import Field
from torch import Tensor, nn

from spanwise.core.tags import levels
from spanwise.core.types import Entity, Sentence
from spanwise.encoders.base import Encoder, TokenStates
from spanwise.heads.base import Head, HeadSettings, Labels, Losses, ScoredSpans, SpanVectors
from spanwise.heads.crf import Crf, viterbi
from spanwise.heads.memo import Ints, Memo


class SeqnerSettings(HeadSettings):
    """What may be set; the defaults are the paper's."""

    tagging: Literal["softmax", "crf"] = "softmax"
    constrained: bool = (
        True  # softmax: the best tags among those that spell entities; False: each word's best tag, as published
    )
    dropout: float = Field(default=0.1, ge=0.0, lt=1.0)


class SeqNer(Head):
    """A linear layer gives each word a score for each of 2C + 1 tags: 0 is O, 1 + 2c is B and 2 + 2c is I of type c.

    ``softmax`` learns each word's tag by itself and takes the best tags that spell entities (an I only behind its own type);
    ``crf`` learns whole sequences and takes the best one. The loss is
    per word in either case (a sentence's negative log-likelihood over its words), so that bundles can weigh it against
    others.

    An entity's score is the geometric mean of its words' probabilities (with a CRF, marginal probabilities), so that long
    entities are not thought less of. Where entities overlap the widest are tagged; the others, and discontinuous ones, are
    out of reach.
    """

    family = "sequence"
    settings_class = SeqnerSettings
    settings: SeqnerSettings
    allowed: Tensor
    decoding = "flat"

    def __init__(self, width: int, labels: Labels, settings: SeqnerSettings) -> None:
        super().__init__(labels, settings)
        tags = 2 * len(labels.entities) + 1
        self.dropout = nn.Dropout(settings.dropout)
        self.classifier = nn.Linear(width, tags)
        self.crf = Crf(tags) if settings.tagging == "crf" else None
        self.register_buffer("allowed", bio_transitions(len(labels.entities)), persistent=False)
        self._place = {kind: place for place, kind in enumerate(labels.entities)}
        self._gold = Memo(self._gold_tags)

    @classmethod
    def build(cls, encoder: Encoder, labels: Labels, settings: SeqnerSettings) -> SeqNer:
        return cls(encoder.width, labels, settings)

    def targets(
        self, sentences: Sequence[Sentence], *, gold: bool, generator: np.random.Generator | None = None
    ) -> dict[str, Tensor]:
        """With gold the ``tags`` [B, T], O behind a sentence's end; scoring needs nothing."""
        if not gold:
            return {}
        known = [self._gold(sentence) for sentence in sentences]
        lengths = np.array([len(tags) for tags in known], np.int64)
        inside = np.arange(lengths.max(initial=0)) < lengths[:, None]
        tags = np.zeros(inside.shape, np.int64)
        tags[inside] = np.concatenate([*known, np.empty(0, np.int64)])
        return {"tags": torch.from_numpy(tags)}

    def loss(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Losses:
        emissions, mask = self.emissions(states)
        tags = targets["tags"]
        if tags.shape != mask.shape:  # an encoder may pad further than the longest sentence
            tags = F.pad(tags, (0, mask.shape[1] - tags.shape[1]))
        if self.crf is not None:
            sums = self.crf.loss(emissions, tags, mask)
        else:
            values = F.cross_entropy(emissions.flatten(0, 1), tags.flatten(), reduction="none")
            sums = values.view_as(tags).masked_fill(~mask, 0.0).sum(1)
        return Losses(sums, mask.sum(1).float())

    def score(self, states: TokenStates, targets: Mapping[str, Tensor]) -> ScoredSpans:
        emissions, mask = self.emissions(states)
        if self.crf is not None:
            tags = self.crf.decode(emissions, mask)
            probability = self.crf.marginals(emissions, mask).gather(-1, tags.unsqueeze(-1)).squeeze(-1)
        elif self.settings.constrained:
            tags = viterbi(emissions.log_softmax(-1), mask, self.allowed, self.allowed[0], torch.zeros_like(self.allowed[0]))
            probability = emissions.softmax(-1).gather(-1, tags.unsqueeze(-1)).squeeze(-1)
        else:
            probability, tags = emissions.softmax(-1).max(-1)
        return entities_of(tags, probability, mask)

    def span_probabilities(self, states: TokenStates, targets: Mapping[str, Tensor]) -> SpanVectors:
        """As in scores, the geometric mean over a span's words of how probable their tags (B, then I) are; NONE is the rest.

        Such means over types never add up to more than 1 (by Hoelder's inequality, for each word's probabilities do not).
        """
        emissions, mask = self.emissions(states)
        chances = emissions.softmax(-1) if self.crf is None else self.crf.marginals(emissions, mask)
        logs = chances.double().clamp(min=torch.finfo(torch.float32).tiny).log()
        begins, inner = logs[:, :, 1::2], F.pad(logs[:, :, 2::2].cumsum(1), (0, 0, 1, 0))  # sums over the words before each
        place = torch.arange(mask.shape[1], device=mask.device)
        is_span = mask.unsqueeze(1) & (place.unsqueeze(1) <= place)
        sentence, start, last = is_span.nonzero().unbind(1)
        rest = inner[sentence, last + 1] - inner[sentence, start + 1]
        means = ((begins[sentence, start] + rest) / (last - start + 1).unsqueeze(1)).exp()
        chances = torch.cat((means, (1 - means.sum(1, keepdim=True)).clamp(min=0)), 1)
        return SpanVectors(sentence, start, last + 1, chances.float())

    def out_of_reach(self, sentence: Sentence) -> int:
        """Entities that are discontinuous, of an unknown type, or overlap one that is tagged."""
        return len(set(sentence.entities)) - len(self._tagged(sentence))

    def emissions(self, states: TokenStates) -> tuple[Tensor, Tensor]:
        """The scores of all tags for each word, [B, T, tags] in float32, and the mask, T at least 1."""
        words, mask = states.words, states.mask.bool()
        if not words.shape[1]:
            words, mask = F.pad(words, (0, 0, 0, 1)), F.pad(mask, (0, 1))
        return self.classifier(self.dropout(words.to(self.classifier.weight.dtype))).float(), mask

    def _tagged(self, sentence: Sentence) -> list[Entity]:
        """The entities that tags can spell, the widest first where they overlap."""
        known = dict.fromkeys(entity for entity in sentence.entities if entity.type in self._place)
        return next(iter(levels(list(known))), [])

    def _gold_tags(self, sentence: Sentence) -> Ints:
        tags = np.zeros(len(sentence.words), np.int64)
        for entity in self._tagged(sentence):
            begin = 1 + 2 * self._place[entity.type]
            start, end = entity.range
            tags[start:end] = begin + 1
            tags[start] = begin
        return tags


def bio_transitions(types: int) -> Tensor:
    """What may follow what, [tags, tags]: 0 where it may, hopelessly low where an I would continue nothing of its type.

    Row 0, what may follow O, is also what may stand at the beginning.
    """
    tags = torch.arange(2 * types + 1)
    kind, is_inside = (tags + 1) // 2, (tags > 0) & (tags % 2 == 0)
    forbidden = is_inside & (kind.unsqueeze(1) != kind)
    return torch.zeros(len(tags), len(tags)).masked_fill(forbidden, -1e4)


def entities_of(tags: Tensor, probability: Tensor, mask: Tensor) -> ScoredSpans:
    """The entities that ``tags`` [B, T] spell, each word's tag with its ``probability`` [B, T].

    Read as ``spanwise.core.tags.decode`` reads tags: an I that continues nothing begins an entity.

    >>> tags, mask = torch.tensor([[1, 2, 0, 4]]), torch.ones(1, 4, dtype=torch.bool)
    >>> found = entities_of(tags, torch.full((1, 4), 0.5), mask)
    >>> found.start.tolist(), found.end.tolist(), found.label.tolist()
    ([0, 3], [2, 4], [0, 1])
    """
    length = tags.shape[1]
    tags = tags.masked_fill(~mask, 0)
    kind = (tags + 1) // 2  # 0 for O, 1 + c for type c
    before = F.pad(kind, (1, -1))
    begins = (kind > 0) & ((tags % 2 == 1) | (kind != before))
    goes_on = (kind > 0) & ~begins
    ends = (kind > 0) & ~F.pad(goes_on, (-1, 1))
    # Beginnings and ends alternate within a sentence, so the n-th of one belongs to the n-th of the other. Looked up together,
    # for this is where a GPU is waited for.
    first, last = torch.stack((begins.flatten(), ends.flatten())).nonzero()[:, 1].view(2, -1)
    number = torch.where(kind > 0, begins.flatten().cumsum(0).view_as(kind), 0)  # each word's entity, from 1; 0 is none
    logs = probability.float().clamp(min=torch.finfo(torch.float32).tiny).log()
    sums = logs.new_zeros(len(first) + 1).index_add(0, number.flatten(), logs.flatten())[1:]
    return ScoredSpans(
        sentence=first // length,
        start=first % length,
        end=last % length + 1,
        label=kind.flatten().index_select(0, first) - 1,
        score=(sums / (last - first + 1)).exp(),
    )
