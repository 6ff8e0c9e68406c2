"""SeqNER: BIO tags by a softmax per word or by a CRF (Ji et al. 2022, section 3.1.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log1p
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F  # noqa: N812
from pydantic import Field
from torch import Tensor, nn

from spanwise.core.partial import known_ends, known_types
from spanwise.core.tags import split_into_levels
from spanwise.core.types import Entity, Sentence
from spanwise.encoders.base import Encoder, TokenStates
from spanwise.encoders.fixed_shapes import SizeTable, pad_to
from spanwise.heads.abilities import HasFixedShapes, HasSpanProbabilities, LearnsPartial
from spanwise.heads.base import HeadSettings, Labels, Losses, OnnxGraph, ScoredSpans, SpanVectors
from spanwise.heads.crf import Crf, viterbi
from spanwise.heads.onnx import TagTransitions
from spanwise.heads.partial import open_share
from spanwise.heads.sentence_cache import Ints, SentenceCache


class SeqnerSettings(HeadSettings):
    """Settings of ``SeqNer``; the defaults are the paper's, except ``constrained``."""

    tagging: Literal["softmax", "crf"] = Field(
        default="softmax", description="softmax: each word separately; crf: a linear-chain CRF over the sentence"
    )
    constrained: bool = Field(
        default=True, description="softmax: predict the best valid BIO sequence; false: the best tag of each word, as published"
    )
    dropout: float = Field(default=0.1, ge=0.0, lt=1.0, description="dropout on the words")


class SeqNer(HasSpanProbabilities, LearnsPartial, HasFixedShapes):
    """Tagger with a linear layer over 2C + 1 BIO tags: 0 is O, 1 + 2c is B and 2 + 2c is I of type c.

    ``softmax`` learns the tag of each word independently and predicts the best valid sequence (an I
    follows only its own type); ``crf`` learns whole sequences and predicts the best one. In both
    cases the loss is averaged over words (for a CRF, a sentence's negative log-likelihood divided by
    its words), so that bundles can weigh it against other losses.

    The score of an entity is the geometric mean of its words' probabilities (with a CRF, marginal
    probabilities), so that long entities are not at a disadvantage. Of overlapping gold entities, the
    widest are tagged; the others and discontinuous ones cannot be predicted.

    Paper: Ji et al., "Bundling Learning", 2022, section 3.1.2.

    Use it for flat entities, in particular long ones: its cost does not depend on their width. For
    nested or overlapping entities use a span head such as ``SpanNer`` or ``Biaffine``.

    >>> head = SeqNer(8, Labels(("Drug", "Place")), SeqnerSettings())
    >>> states = TokenStates(torch.zeros(1, 3, 8), torch.zeros(1, 8), torch.ones(1, 3, dtype=torch.bool))
    >>> head.emissions(states)[0].shape  # O, B-Drug, I-Drug, B-Place, I-Place
    torch.Size([1, 3, 5])
    """

    family = "sequence"
    settings_class = SeqnerSettings
    settings: SeqnerSettings
    transitions: Tensor
    decoding = "flat"

    def __init__(self, width: int, labels: Labels, settings: SeqnerSettings) -> None:
        super().__init__(labels, settings)
        tags = 2 * len(labels.entities) + 1
        self.dropout = nn.Dropout(settings.dropout)
        self.classifier = nn.Linear(width, tags)
        self.crf = Crf(tags) if settings.tagging == "crf" else None
        self.register_buffer("transitions", bio_transitions(len(labels.entities)), persistent=False)
        self._type_index = {kind: place for place, kind in enumerate(labels.entities)}
        self._gold = SentenceCache(self._gold_tags)
        self._masses = SentenceCache(self._tag_masses)

    @classmethod
    def build(cls, encoder: Encoder, labels: Labels, settings: SeqnerSettings) -> SeqNer:
        return cls(encoder.width, labels, settings)

    def targets(
        self, sentences: Sequence[Sentence], *, gold: bool, generator: np.random.Generator | None = None
    ) -> dict[str, Tensor]:
        """The gold ``tags`` [B, T], O after a sentence's end. Empty for scoring.

        With partially annotated sentences also ``tag_masses`` [B, T, tags], see ``_tag_masses``.
        """
        if not gold:
            return {}
        tags_by_sentence = [self._gold(sentence) for sentence in sentences]
        lengths = np.array([len(tags) for tags in tags_by_sentence], np.int64)
        inside = np.arange(lengths.max(initial=0)) < lengths[:, None]
        tags = np.zeros(inside.shape, np.int64)
        tags[inside] = np.concatenate([*tags_by_sentence, np.empty(0, np.int64)])
        if all(sentence.annotated is None for sentence in sentences):
            return {"tags": torch.from_numpy(tags)}
        masses = np.zeros((*inside.shape, 2 * len(self.labels.entities) + 1), np.float32)
        masses[inside] = np.concatenate([self._masses(sentence) for sentence in sentences])
        return {"tags": torch.from_numpy(tags), "tag_masses": torch.from_numpy(masses)}

    def size_table(self, sentences: Sequence[Sentence]) -> SizeTable:
        return SizeTable({}, {})  # the shapes of tags follow from that of the mask

    def pad_targets(self, targets: Mapping[str, Tensor], sizes: Mapping[str, int], shape: torch.Size) -> dict[str, Tensor]:
        return {name: pad_to(tensor, (*shape, *tensor.shape[2:]), 0) for name, tensor in targets.items()}

    def loss(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Losses:
        emissions, mask = self.emissions(states)
        tags = targets["tags"]
        if tags.shape != mask.shape:  # an encoder may pad beyond the longest sentence
            tags = F.pad(tags, (0, mask.shape[1] - tags.shape[1]))
        if "tag_masses" in targets:
            masses = F.pad(targets["tag_masses"], (0, 0, 0, mask.shape[1] - targets["tag_masses"].shape[1]))
            return self._partial_loss(emissions, masses, mask)
        if self.crf is not None:
            sums = self.crf.loss(emissions, tags, mask)
        else:
            values = F.cross_entropy(emissions.flatten(0, 1), tags.flatten(), reduction="none")
            sums = values.view_as(tags).masked_fill(~mask, 0.0).sum(1)
        return Losses(sums, mask.sum(1).float())

    def _partial_loss(self, emissions: Tensor, masses: Tensor, mask: Tensor) -> Losses:
        """The likelihood of all tag sequences that the annotation allows."""
        if self.crf is not None:
            # An I that continues nothing starts an entity, as B does: it has the same log-probability of an unmarked entity.
            starts = (self.transitions < 0) * log1p(-self.marked_share)
            has_weak_negatives = (masses.isfinite() & (masses < 0)).flatten(1).any(1)
            sums = self.crf.partial_loss(emissions, masses, mask, starts, has_weak_negatives)
        else:
            values = emissions.logsumexp(-1) - (emissions + masses).logsumexp(-1)
            sums = values.masked_fill(~mask, 0.0).sum(1)
        return Losses(sums, (mask & (masses != 0).any(-1)).sum(1).float())

    def score(self, states: TokenStates, targets: Mapping[str, Tensor]) -> ScoredSpans:
        emissions, mask = self.emissions(states)
        if self.crf is not None:
            tags = self.crf.decode(emissions, mask)
            probability = self.crf.marginals(emissions, mask).gather(-1, tags.unsqueeze(-1)).squeeze(-1)
        elif self.settings.constrained:
            start, end = self.transitions[0], torch.zeros_like(self.transitions[0])
            tags = viterbi(emissions.log_softmax(-1), mask, self.transitions, start, end)
            probability = emissions.softmax(-1).gather(-1, tags.unsqueeze(-1)).squeeze(-1)
        else:
            probability, tags = emissions.softmax(-1).max(-1)
        return decode_tags(tags, probability, mask)

    def span_probabilities(self, states: TokenStates, targets: Mapping[str, Tensor]) -> SpanVectors:
        """The geometric mean over a span's words of the probabilities of B, then I, as in scores; NONE is the rest.

        The means of all types never exceed 1 in sum (by Hölder's inequality, because the probabilities
        of each word do not).
        """
        emissions, mask = self.emissions(states)
        probabilities = emissions.softmax(-1) if self.crf is None else self.crf.marginals(emissions, mask)
        logs = probabilities.double().clamp(min=torch.finfo(torch.float32).tiny).log()
        begin, inside = logs[:, :, 1::2], F.pad(logs[:, :, 2::2].cumsum(1), (0, 0, 1, 0))  # sums over all earlier words
        position = torch.arange(mask.shape[1], device=mask.device)
        is_span = mask.unsqueeze(1) & (position.unsqueeze(1) <= position)
        sentence, start, last = is_span.nonzero().unbind(1)
        rest = inside[sentence, last + 1] - inside[sentence, start + 1]
        means = ((begin[sentence, start] + rest) / (last - start + 1).unsqueeze(1)).exp()
        probabilities = torch.cat((means, (1 - means.sum(1, keepdim=True)).clamp(min=0)), 1)
        return SpanVectors(sentence, start, last + 1, probabilities.float())

    def count_unreachable(self, sentence: Sentence) -> int:
        """Entities that are discontinuous, of unknown type, or overlap a tagged entity."""
        return len(set(sentence.entities)) - len(self._taggable(sentence))

    @property
    def onnx(self) -> OnnxGraph | str:
        if self.crf is not None:
            transitions, start, end = self.crf.clamped()
        else:
            transitions = self.transitions if self.settings.constrained else torch.zeros_like(self.transitions)
            start, end = transitions[0], torch.zeros_like(transitions[0])
        tags = TagTransitions(transitions, start, end, is_crf=self.crf is not None)
        return OnnxGraph(
            returns="tags", outputs=("tags",), compute=lambda states, inputs: self.emissions(states)[:1],
            policy=self.decoding, max_width=1, tags=tags,
        )  # fmt: skip

    def emissions(self, states: TokenStates) -> tuple[Tensor, Tensor]:
        """The logits of all tags for each word, [B, T, tags] in float32, and the mask; T is at least 1."""
        words, mask = states.words, states.mask.bool()
        if not words.shape[1]:
            words, mask = F.pad(words, (0, 0, 0, 1)), F.pad(mask, (0, 1))
        return self.classifier(self.dropout(words.to(self.classifier.weight.dtype))).float(), mask

    def _taggable(self, sentence: Sentence) -> list[Entity]:
        """The entities that tags can represent; of overlapping ones, the widest."""
        known = dict.fromkeys(entity for entity in sentence.entities if entity.type in self._type_index)
        return next(iter(split_into_levels(list(known), max_levels=1)), [])

    def _tag_masses(self, sentence: Sentence) -> npt.NDArray[np.float32]:
        """The log-probability of each tag to be seen as annotated: [T, tags].

        It is 0 for the tag of a known word and minus infinity for its other tags. An open word may also
        be part of an unmarked entity: 0 if nothing is known about how many there are, else lower.
        """
        tags, ends = self._gold(sentence), known_ends(sentence)
        share, types = np.float32(open_share(sentence, self.marked_share)), known_types(sentence)
        masses = np.full((len(tags), 2 * len(self.labels.entities) + 1), -np.inf, np.float32)
        masses[np.arange(len(tags)), tags] = 0.0
        is_open = np.array([types is not None or end <= word for word, end in enumerate(ends)], bool) & (tags == 0)
        for index, type in enumerate(self.labels.entities):
            if types is None or type not in types:
                begin, inside = 1 + 2 * index, 2 + 2 * index
                # A CRF counts an entity once, at its first word.
                masses[is_open, begin] = np.log1p(-share)
                masses[is_open, inside] = 0.0 if self.crf is not None else np.log1p(-share)
                after = np.flatnonzero(is_open[1:] & np.isin(tags[:-1], (begin, inside))) + 1
                masses[after, inside] = -np.inf  # it would make the entity before it longer
        return masses

    def _gold_tags(self, sentence: Sentence) -> Ints:
        tags = np.zeros(len(sentence.words), np.int64)
        for entity in self._taggable(sentence):
            begin = 1 + 2 * self._type_index[entity.type]
            start, end = entity.range
            tags[start:end] = begin + 1
            tags[start] = begin
        return tags


def bio_transitions(types: int) -> Tensor:
    """Scores of tag transitions [tags, tags]: 0 if valid, -1e4 for an I that does not continue its type.

    Row 0, the transitions from O, also applies to the first word.
    """
    tags = torch.arange(2 * types + 1)
    type, is_inside = (tags + 1) // 2, (tags > 0) & (tags % 2 == 0)
    is_invalid = is_inside & (type.unsqueeze(1) != type)
    return torch.zeros(len(tags), len(tags)).masked_fill(is_invalid, -1e4)


def decode_tags(tags: Tensor, probability: Tensor, mask: Tensor) -> ScoredSpans:
    """Decode ``tags`` [B, T] with their ``probability`` [B, T] to entities.

    As in ``spanwise.core.tags.decode``, an I that continues nothing starts an entity.

    >>> tags, mask = torch.tensor([[1, 2, 0, 4]]), torch.ones(1, 4, dtype=torch.bool)
    >>> spans = decode_tags(tags, torch.full((1, 4), 0.5), mask)
    >>> spans.start.tolist(), spans.end.tolist(), spans.label.tolist()
    ([0, 3], [2, 4], [0, 1])
    """
    length = tags.shape[1]
    tags = tags.masked_fill(~mask, 0)
    type = (tags + 1) // 2  # 0 for O, 1 + c for type c
    previous = F.pad(type, (1, -1))
    is_start = (type > 0) & ((tags % 2 == 1) | (type != previous))
    is_continued = (type > 0) & ~is_start
    is_end = (type > 0) & ~F.pad(is_continued, (-1, 1))
    # Starts and ends alternate within a sentence, so the n-th start belongs to the n-th end. One lookup for both,
    # because it makes the CPU wait for the GPU.
    first, last = torch.stack((is_start.flatten(), is_end.flatten())).nonzero()[:, 1].view(2, -1)
    entity = torch.where(type > 0, is_start.flatten().cumsum(0).view_as(type), 0)  # of each word, from 1; 0 is none
    logs = probability.float().clamp(min=torch.finfo(torch.float32).tiny).log()
    sums = logs.new_zeros(len(first) + 1).index_add(0, entity.flatten(), logs.flatten())[1:]
    return ScoredSpans(
        sentence=first // length,
        start=first % length,
        end=last % length + 1,
        label=type.flatten().index_select(0, first) - 1,
        score=(sums / (last - first + 1)).exp(),
    )
