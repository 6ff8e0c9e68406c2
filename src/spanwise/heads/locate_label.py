"""Locate and Label (Shen et al. 2021): seed spans are filtered and moved onto entities, and what is left is classified."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from spanwise.core.errors import SpanwiseError
from spanwise.core.iou import iou
from spanwise.core.types import Sentence
from spanwise.decoding.soft_nms import SoftNms
from spanwise.encoders.base import Encoder, TokenStates
from spanwise.heads.base import Labels, Losses, ScoredSpans, SpanVectors
from spanwise.heads.locate_settings import LocateSettings
from spanwise.heads.memo import Ints, Memo
from spanwise.heads.span_head import SpanHead, owners
from spanwise.losses.focal import boundary_loss, focal, soft_weights
from spanwise.losses.smoothing import smoothed
from spanwise.spans.boundary_mlp import BoundaryMlp
from spanwise.spans.candidates import grid, packed
from spanwise.spans.matching import PackedSpans, matched
from spanwise.spans.pooling import Maxima
from spanwise.spans.regression import adjusted


class Gold(NamedTuple):
    """What a sentence's gold spans [n, 2] are: a row of C + 1 probabilities each, NONE last."""

    spans: Ints
    classes: npt.NDArray[np.float32]


class Text(NamedTuple):
    """What all parts read: words [B, T, d], the maxima over any spans of them, words per sentence [B]."""

    words: Tensor
    maxima: Maxima
    lengths: Tensor

    @classmethod
    def of(cls, states: TokenStates) -> Text:
        return cls(states.words, Maxima(states.words, states.words.shape[1]), states.mask.sum(1))


@dataclass(slots=True)
class Proposals:
    """What the first stage hands to the second: the seeds that passed the filter, and where the regressor moved them."""

    seeds: PackedSpans
    spans: PackedSpans
    kept: Tensor  # false where a later application of the filter refused the span


class LocateLabel(SpanHead):
    """Stage 1 asks of every seed span whether it nearly is an entity and where that begins and ends; stage 2 what it is.

    A seed is a proposal when its overlap (IoU) with a gold entity exceeds alpha 1. Training takes all of these, every gold span
    whatever its width, and sampled others, so that the filter sees ``negatives`` of them per proposal; they are drawn from the
    whole batch, so that sentences without entities are learned from too. The regressor learns from the proposals alone.

    Stage 2 learns from all of these spans as the regressor has moved them, rounded. A moved span has the label of the gold
    entity that it overlaps by alpha 2, which is to say: is, and NONE otherwise. The paper asks only for the entity that the
    seed was paired with; here any entity counts, or spans that are the same would have contradicting labels. The regressor
    begins with no movement at all, so at first the exact seeds carry the labels and more join them as it learns.

    Examples weigh by their overlap (section 2.5). Each part's loss is a mean over its own examples. A span with several gold
    types learns each with an equal part.
    """

    settings_class = LocateSettings
    settings: LocateSettings

    def __init__(self, width: int, labels: Labels, settings: LocateSettings) -> None:
        super().__init__(labels, settings)
        if settings.lengths is None:
            raise SpanwiseError("the lengths of the seed spans are still open: settle them with settings.fitted(sentences)")
        self.max_width = None  # of gold: it is learned from whatever its width
        self.none = len(labels.entities)
        self.rounds = settings.refine if settings.regressor else 1
        self.filter = BoundaryMlp(width, 1, settings.dropout) if settings.filter else None
        self.regressor = BoundaryMlp(width, 2, settings.dropout, outer=True) if settings.regressor else None
        if self.regressor is not None:
            nn.init.zeros_(self.regressor.out.weight)
            nn.init.zeros_(self.regressor.out.bias)
        self.classifier = BoundaryMlp(width, self.none + 1, settings.dropout)
        self.decoding = SoftNms(
            settings.decay, settings.overlap, settings.threshold, settings.decoding,
            counts_duplicates="duplicate-scoring" in settings.paper, drops_crossing="crossing-deletion" in settings.paper,
        )  # fmt: skip
        self._lengths = np.array(settings.lengths)
        self._is_length = np.isin(np.arange(1, max(settings.lengths) + 1), self._lengths)
        self._reach = sorted(settings.reach)
        self._known = Memo(self._gold_spans)
        self._positive = Memo(self._positive_spans)

    @classmethod
    def build(cls, encoder: Encoder, labels: Labels, settings: LocateSettings) -> LocateLabel:
        return cls(encoder.width, labels, settings)

    def reachable(self, sentence: Sentence) -> Ints:
        """The gold of a width to which some seed can be moved."""
        rows = self._gold(sentence)
        return rows[np.isin(rows[:, 1] - rows[:, 0], self._reach)]

    def set_threshold(self, threshold: float) -> float | None:
        """Of decoding; what the filter drops, and what NONE is likelier for, is not proposed in any case.

        None where the authors' deletion of what crosses is on: there, a lower threshold makes more delete each other.
        """
        policy = self.decoding
        if not isinstance(policy, SoftNms) or policy.drops_crossing:
            return None
        self.decoding = replace(policy, threshold=threshold)
        return policy.threshold

    # --- the host's part -------------------------------------------------------------------------------------------

    def targets(
        self, sentences: Sequence[Sentence], *, gold: bool, generator: np.random.Generator | None = None
    ) -> dict[str, Tensor]:
        """Packed spans: ``sentence``, ``start``, ``end``. With gold also, side by side for each sentence, its gold spans
        ``gold`` [B, G, 2] (0, 0 where there is none) and their ``classes`` [B, G, C + 1]."""
        lengths = np.array([len(sentence.words) for sentence in sentences], np.int64)
        cells = grid(lengths, len(self._is_length))
        cells &= self._is_length[: cells.shape[2]]
        if not gold:
            return _tensors(**packed(cells)._asdict())
        positive = [self._positive(sentence) for sentence in sentences]
        owner, (start, end) = owners(positive), np.concatenate([*positive, np.empty((0, 2), np.int64)]).T
        own = (owner, start, end)
        is_seed = np.isin(end - start, self._lengths)
        cells[owner[is_seed], start[is_seed], (end - start)[is_seed] - 1] = False
        if generator is not None:
            cells = _sample(cells, self.settings.negatives * max(len(owner), 1), generator)
        spans = (np.concatenate(columns) for columns in zip(own, packed(cells), strict=True))
        return _tensors(**dict(zip(("sentence", "start", "end"), spans, strict=True)), **self._side_by_side(sentences))

    def _side_by_side(self, sentences: Sequence[Sentence]) -> dict[str, npt.NDArray[np.generic]]:
        known = [self._known(sentence) for sentence in sentences]
        counts = np.array([len(gold.spans) for gold in known], np.int64)
        cells = np.arange(max(counts.max(initial=0), 1)) < counts[:, None]
        spans, classes = np.zeros((*cells.shape, 2), np.int64), np.zeros((*cells.shape, self.none + 1), np.float32)
        if counts.any():
            spans[cells] = np.concatenate([gold.spans for gold in known])
            classes[cells] = np.concatenate([gold.classes for gold in known])
        return {"gold": spans, "classes": classes}

    def _gold_spans(self, sentence: Sentence) -> Gold:
        start, end, label, mass = smoothed(self._gold(sentence), len(sentence.words), None, epsilon=0.0, distance=1)
        spans, place = np.unique(np.stack((start, end), 1), axis=0, return_inverse=True)
        classes = np.zeros((len(spans), self.none + 1), np.float32)
        classes[place.reshape(-1), label] = mass
        return Gold(spans, classes)

    def _positive_spans(self, sentence: Sentence) -> Ints:
        """The seeds that are proposals, and all gold spans, each once: [n, 2]."""
        gold = self._known(sentence).spans
        cells = grid(np.array([len(sentence.words)]), len(self._is_length))
        _, start, end = packed(cells & self._is_length[: cells.shape[2]])
        near = iou(start[:, None], end[:, None], *gold.T) > self.settings.positive_overlap
        return np.unique(np.concatenate((np.stack((start, end), 1)[near.any(1)], gold)), axis=0)

    # --- the device's part -----------------------------------------------------------------------------------------

    def loss(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Losses:
        settings, text = self.settings, Text.of(states)
        spans = PackedSpans(targets["sentence"], targets["start"], targets["end"])
        judged, moved, positives = [], [], []
        for _ in range(self.rounds):
            paired = matched(spans, targets["gold"])
            positive = paired.overlap > settings.positive_overlap
            if self.filter is not None:
                values = focal(self.filter(*text, spans).squeeze(1), positive, settings.focus)
                judged.append(values * self._weights(paired.overlap, settings.positive_overlap))
            if self.regressor is not None:
                moves = self._moves(text, spans)
                # Others may have no entity at all, only the empty place (0, 0), from which there is no sound distance.
                start = torch.where(positive, paired.start, spans.start)
                end = torch.where(positive, paired.end, spans.end)
                moved.append(boundary_loss(moves, spans.start, spans.end, start, end))
                positives.append(positive)
                spans = _adjusted(text, spans, moves)
        paired = matched(spans, targets["gold"])
        classes = targets["classes"].flatten(0, 1).index_select(0, paired.place)
        chances = self.classifier(*text, spans).log_softmax(1)
        of_entity, of_none = (classes * chances).sum(1), chances[:, self.none]
        right = torch.where(paired.overlap >= settings.label_overlap, of_entity, of_none)
        labelled = -right * self._weights(paired.overlap, settings.label_overlap)
        terms = {"classifier": (settings.classifier_weight, _per_sentence(states, spans, [labelled]))}
        if judged:
            terms["filter"] = (settings.filter_weight, _per_sentence(states, spans, judged))
        if moved:
            terms["regressor"] = (settings.regressor_weight, _per_sentence(states, spans, moved, positives))
        return Losses.joined(terms)

    def score(self, states: TokenStates, targets: Mapping[str, Tensor]) -> ScoredSpans:
        """Every proposal with its best type. Where NONE is likelier the score is 0: decoding drops it, nobody has to wait."""
        text = Text.of(states)
        proposals = self.propose(text, targets)
        chances = self.classifier(*text, proposals.spans).softmax(1)
        score, label = chances[:, :-1].max(1)
        is_entity = (score >= chances[:, -1]) & proposals.kept
        return ScoredSpans(*proposals.spans, label, score * is_entity)

    def span_vectors(self, states: TokenStates, targets: Mapping[str, Tensor]) -> SpanVectors:
        """Of the spans that reach the second stage."""
        text = Text.of(states)
        spans = self._proposed(text, targets)
        return SpanVectors(*spans, self.classifier.hidden(*text, spans))

    def span_probabilities(self, states: TokenStates, targets: Mapping[str, Tensor]) -> SpanVectors:
        """Of the spans that reach the second stage."""
        text = Text.of(states)
        spans = self._proposed(text, targets)
        return SpanVectors(*spans, self.classifier(*text, spans).softmax(1))

    @property
    def templates(self) -> Tensor:
        return self.classifier.out.weight

    def _proposed(self, text: Text, targets: Mapping[str, Tensor]) -> PackedSpans:
        """The spans that the first stage proposes, each once, however many seeds were moved there."""
        found = self.propose(text, targets)
        return PackedSpans(*torch.unique(torch.stack(found.spans)[:, found.kept], dim=1))

    def propose(self, text: Text, targets: Mapping[str, Tensor]) -> Proposals:
        """Stage 1: the seeds that the filter lets pass, moved. The one wait for the device is for how many there are."""
        seeds = PackedSpans(targets["sentence"], targets["start"], targets["end"])
        if self.filter is not None:
            passed = self._passes(text, seeds).nonzero().squeeze(1)
            seeds = PackedSpans(*(column.index_select(0, passed) for column in seeds))
        spans, kept = seeds, torch.ones_like(seeds.start, dtype=torch.bool)
        for round_ in range(self.rounds):
            if round_ and self.filter is not None:
                kept = kept & self._passes(text, spans)
            if self.regressor is not None:
                spans = _adjusted(text, spans, self._moves(text, spans))
        return Proposals(seeds, spans, kept)

    @torch.inference_mode()
    def diagnose(self, states: TokenStates, sentences: Sequence[Sentence]) -> dict[str, int]:
        """Counts that say how the stages work together, to be added up over batches.

        Of ``entities`` (spans that have one), ``passed`` have a proposal left by the filter, and ``located`` are exactly where
        the regressor put one; ``classified`` is how often the second stage was asked.
        """
        device = states.words.device
        seeds, gold = self.targets(sentences, gold=False), self._side_by_side(sentences)["gold"]
        found = self.propose(Text.of(states), {name: column.to(device) for name, column in seeds.items()})
        places = torch.from_numpy(gold).to(device)
        before, behind = matched(found.seeds, places), matched(found.spans, places)
        return {
            "sentences": len(sentences),
            "entities": sum(len({entity.fragments for entity in sentence.entities}) for sentence in sentences),
            "classified": len(found.seeds.start),
            "passed": len(set(before.place[before.overlap > self.settings.positive_overlap].tolist())),
            "located": len(set(behind.place[(behind.overlap == 1) & found.kept].tolist())),
        }

    def _passes(self, text: Text, spans: PackedSpans) -> Tensor:
        assert self.filter is not None
        passes: Tensor = self.filter(*text, spans).squeeze(1).sigmoid() > self.settings.proposal_threshold
        return passes

    def _moves(self, text: Text, spans: PackedSpans) -> Tensor:
        """How far the boundaries of each span are to be moved: [S, 2]."""
        assert self.regressor is not None
        moves: Tensor = self.regressor(*text, spans)
        if "one-sided-offsets" in self.settings.paper:
            moves = moves.sigmoid() * text.lengths.index_select(0, spans.sentence).unsqueeze(1)
        return moves

    def _weights(self, overlap: Tensor, threshold: float) -> Tensor:
        weights = soft_weights(overlap, threshold, self.settings.softness)
        if "global-soft-weight" in self.settings.paper and len(weights):
            weights = weights.mean().expand_as(weights)
        return weights


def _adjusted(text: Text, spans: PackedSpans, moves: Tensor) -> PackedSpans:
    length = text.lengths.index_select(0, spans.sentence)
    return PackedSpans(spans.sentence, *adjusted(spans.start, spans.end, moves, length))


def _per_sentence(states: TokenStates, spans: PackedSpans, rounds: list[Tensor], counted: list[Tensor] | None = None) -> Losses:
    """The values of the spans, a list for several applications of a stage, of which only those ``counted`` count."""
    values, sentence = torch.stack(rounds), spans.sentence
    counts = torch.ones_like(values) if counted is None else torch.stack(counted).to(values.dtype)
    none = values.new_zeros(len(states.words))
    return Losses(none.index_add(0, sentence, (values * counts).sum(0)), none.index_add(0, sentence, counts.sum(0)))


def _sample(cells: npt.NDArray[np.bool_], count: int, generator: np.random.Generator) -> npt.NDArray[np.bool_]:
    """At most ``count`` of the true cells."""
    places = np.flatnonzero(cells)
    if len(places) <= count:
        return cells
    chosen = np.zeros(cells.size, bool)
    chosen[generator.choice(places, count, replace=False, shuffle=False)] = True
    return chosen.reshape(cells.shape)


def _tensors(**columns: npt.NDArray[np.generic]) -> dict[str, Tensor]:
    return {name: torch.from_numpy(np.ascontiguousarray(column)) for name, column in columns.items()}
