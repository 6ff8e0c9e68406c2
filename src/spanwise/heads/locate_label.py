"""Locate and Label: seed spans are filtered, moved and classified (Shen et al. 2021)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from spanwise.core.errors import SpanwiseError
from spanwise.core.iou import iou
from spanwise.core.types import Sentence
from spanwise.decoding.soft_nms import SoftNms
from spanwise.encoders.base import Encoder, TokenStates
from spanwise.heads.abilities import HasSpanProbabilities, HasSpanVectors, HasThreshold, LearnsPartial
from spanwise.heads.base import Labels, Losses, OnnxGraph, ScoredSpans, SpanVectors
from spanwise.heads.locate_parts import Gold, Proposals, Text, filter_weights, move_spans, sample_cells, sum_rounds
from spanwise.heads.locate_settings import MAX_WIDTH, LocateSettings
from spanwise.heads.outputs import class_log_odds
from spanwise.heads.partial import Known, known_targets
from spanwise.heads.sentence_cache import Ints, SentenceCache
from spanwise.heads.span_head import SpanHead, sentence_indices, to_tensors
from spanwise.losses.focal import boundary_loss, focal, open_softmax_focal, soft_weights, softmax_focal
from spanwise.losses.smoothing import sum_masses
from spanwise.spans.boundary_mlp import BoundaryMlp
from spanwise.spans.candidates import grid, packed
from spanwise.spans.matching import PackedSpans, match_spans


class LocateLabel(SpanHead, HasThreshold, HasSpanVectors, HasSpanProbabilities, LearnsPartial):
    """Two-stage head: filter seed spans and move their boundaries (stage 1), then classify the moved spans (stage 2).

    A seed is a positive example, a proposal, if its overlap (IoU) with a gold entity exceeds alpha 1.
    Training uses all proposals, all gold spans of any width, and sampled negatives:
    ``negatives`` per proposal, drawn from the whole batch, so that sentences without entities are
    used too. The regressor learns from the proposals only.

    Stage 2 learns from all of these spans after the regressor has moved and rounded them. A moved
    span has the label of the gold entity that it overlaps by alpha 2 (by default: that it equals),
    otherwise NONE. The paper compares it only with the entity of its seed; here any entity counts,
    because equal spans would otherwise have contradictory labels. The regressor starts without any
    movement, so that at first only exact seeds have labels.

    Examples are weighted by their overlap (section 2.5). The loss of each part is a mean over its own
    examples. A span with several gold types learns each with equal weight.

    Paper: Shen et al., "Locate and Label: A Two-stage Identifier for Nested Named Entity
    Recognition", ACL 2021.

    Use it for nested entities, also very wide ones: for LitBank's entities of ten and more words, it
    has a higher F1 than ``GlobalPointer`` and ``SpanNer``, with one seed
    (docs/results/locate-and-label.md). A boundary moves by one or two words, so the widest seeds must
    be almost as wide as the widest entities. It has the most settings of all heads; ``Biaffine`` and
    ``GlobalPointer`` are simpler and score all spans.

    >>> head = LocateLabel(8, Labels(("Drug",)), LocateSettings(lengths=[1, 2], decoding="flat"))
    >>> len(head.targets([Sentence("s1", ("aspirin", "helps", "."))], gold=False)["start"])  # seeds of one and two words
    5
    """

    settings_class = LocateSettings
    settings: LocateSettings

    def __init__(self, width: int, labels: Labels, settings: LocateSettings) -> None:
        super().__init__(labels, settings)
        if settings.lengths is None:
            raise SpanwiseError("lengths is still automatic; call settings.resolve(sentences) first")
        self.max_width = None  # gold spans of any width are learned
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
        self._gold_classes = SentenceCache(self._gold_with_classes)
        self._positive = SentenceCache(self._positive_spans)

    @classmethod
    def build(cls, encoder: Encoder, labels: Labels, settings: LocateSettings) -> LocateLabel:
        return cls(encoder.width, labels, settings)

    def reachable_gold(self, sentence: Sentence) -> Ints:
        """Gold entities of a width to which a seed can be moved."""
        rows = self._gold(sentence)
        return rows[np.isin(rows[:, 1] - rows[:, 0], sorted(self.settings.reachable_widths(len(sentence.words))))]

    @property
    def widest_span(self) -> str:
        """The widest span to which a seed can be moved."""
        return f"{max(self.settings.reachable_widths(MAX_WIDTH))} words"

    def set_threshold(self, threshold: float) -> float | None:
        """Set the threshold of decoding; the filter and the classifier may still choose NONE.

        Fixed (None) with ``crossing-deletion``: a lower threshold would make more spans drop each other.
        """
        policy = self.decoding
        if not isinstance(policy, SoftNms) or policy.drops_crossing:
            return None
        self.decoding = replace(policy, threshold=threshold)
        return policy.threshold

    @property
    def onnx(self) -> OnnxGraph | str:
        return OnnxGraph.of_spans(self.score, self.decoding, None, span_widths=self.settings.lengths or ())

    # --- targets, on the CPU ---------------------------------------------------------------------------------------

    def targets(
        self, sentences: Sequence[Sentence], *, gold: bool, generator: np.random.Generator | None = None
    ) -> dict[str, Tensor]:
        """Packed spans: ``sentence``, ``start``, ``end``.

        With gold, also the padded gold spans of each sentence, ``gold`` [B, G, 2] (0, 0 for padding), and
        their ``classes`` [B, G, C + 1].
        """
        lengths = np.array([len(sentence.words) for sentence in sentences], np.int64)
        cells = grid(lengths, len(self._is_length))
        cells &= self._is_length[: cells.shape[2]]
        if not gold:
            return to_tensors(packed(cells)._asdict())
        known = known_targets(sentences, self.labels.entities, self.marked_share)
        positive = [self._positive(sentence) for sentence in sentences]
        sentence, (start, end) = sentence_indices(positive), np.concatenate([*positive, np.empty((0, 2), np.int64)]).T
        is_seed = np.isin(end - start, self._lengths)
        cells[sentence[is_seed], start[is_seed], (end - start)[is_seed] - 1] = False
        if known:
            seeds = (torch.from_numpy(column) for column in packed(cells))
            cells[cells] = ~Known(**known).is_ignored(*seeds).numpy()
        if generator is not None:
            cells = sample_cells(cells, self.settings.negatives * max(len(sentence), 1), generator)
        spans = (np.concatenate(columns) for columns in zip((sentence, start, end), packed(cells), strict=True))
        columns = dict(zip(("sentence", "start", "end"), spans, strict=True))
        return to_tensors({**columns, **self._padded_gold(sentences)}) | known

    def _padded_gold(self, sentences: Sequence[Sentence]) -> dict[str, npt.NDArray[np.generic]]:
        gold = [self._gold_classes(sentence) for sentence in sentences]
        counts = np.array([len(one.spans) for one in gold], np.int64)
        cells = np.arange(max(counts.max(initial=0), 1)) < counts[:, None]
        spans, classes = np.zeros((*cells.shape, 2), np.int64), np.zeros((*cells.shape, self.none + 1), np.float32)
        if counts.any():
            spans[cells] = np.concatenate([one.spans for one in gold])
            classes[cells] = np.concatenate([one.classes for one in gold])
        return {"gold": spans, "classes": classes}

    def _gold_with_classes(self, sentence: Sentence) -> Gold:
        gold = self._gold(sentence)
        start, end, label, mass = sum_masses(gold, np.ones(len(gold)))
        spans, row = np.unique(np.stack((start, end), 1), axis=0, return_inverse=True)
        classes = np.zeros((len(spans), self.none + 1), np.float32)
        classes[row.reshape(-1), label] = mass
        return Gold(spans, classes)

    def _positive_spans(self, sentence: Sentence) -> Ints:
        """The distinct seeds that are proposals, and all gold spans: [n, 2]."""
        gold = self._gold_classes(sentence).spans
        cells = grid(np.array([len(sentence.words)]), len(self._is_length))
        _, start, end = packed(cells & self._is_length[: cells.shape[2]])
        is_near = iou(start[:, None], end[:, None], *gold.T) > self.settings.positive_overlap
        return np.unique(np.concatenate((np.stack((start, end), 1)[is_near.any(1)], gold)), axis=0)

    # --- loss and scores, on the device ----------------------------------------------------------------------------

    def loss(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Losses:
        text, known = Text.of(states), Known.select(targets)
        seeds = PackedSpans(targets["sentence"], targets["start"], targets["end"])
        spans, first_stage = self._first_stage_losses(text, seeds, targets["gold"], known)
        classifier = self._classifier_loss(text, spans, targets, known)
        return Losses.weighted_sum({"classifier": (self.settings.classifier_weight, classifier), **first_stage})

    def _first_stage_losses(
        self, text: Text, spans: PackedSpans, gold: Tensor, known: Known | None
    ) -> tuple[PackedSpans, dict[str, tuple[float, Losses]]]:
        """The seeds after the regressor has moved them, and the losses of filter and regressor with their weights."""
        settings = self.settings
        filter_values, filter_counts, regressor_values, positives = [], [], [], []
        for _ in range(self.rounds):
            matches = match_spans(spans, gold)
            positive = matches.overlap > settings.positive_overlap
            if self.filter is not None:
                logits = self.filter(*text, spans).squeeze(1)
                values = focal(logits, positive, settings.focus)
                open_weights = filter_weights(known, spans, positive, logits)
                filter_values.append(values * open_weights * self._weights(matches.overlap, settings.positive_overlap))
                filter_counts.append(open_weights > 0)
            if self.regressor is not None:
                moves = self._moves(text, spans)
                # Negatives may be matched with padding (0, 0), to which no distance is defined.
                start = torch.where(positive, matches.start, spans.start)
                end = torch.where(positive, matches.end, spans.end)
                has_weights = "weighted-offsets" in settings.paper
                weights = soft_weights(matches.overlap, settings.positive_overlap, settings.softness) if has_weights else None
                regressor_values.append(boundary_loss(moves, spans.start, spans.end, start, end, weights))
                positives.append(positive)
                spans = move_spans(text, spans, moves)
        losses = {}
        if filter_values:
            losses["filter"] = (settings.filter_weight, sum_rounds(text, spans, filter_values, filter_counts))
        if regressor_values:
            losses["regressor"] = (settings.regressor_weight, sum_rounds(text, spans, regressor_values, positives))
        return spans, losses

    def _classifier_loss(
        self, text: Text, spans: PackedSpans, targets: Mapping[str, Tensor], known: Known | None
    ) -> Losses:  # fmt: skip
        """The loss of stage 2 for moved spans."""
        settings = self.settings
        matches = match_spans(spans, targets["gold"])
        classes = targets["classes"].flatten(0, 1).index_select(0, matches.gold_index)
        is_none = matches.overlap < settings.label_overlap
        column = is_none.unsqueeze(1)
        classes = torch.cat((classes[:, :-1].masked_fill(column, 0.0), column.to(classes.dtype)), 1)
        focus = settings.focus if "focal-classifier" in settings.paper else 0.0
        logits = self.classifier(*text, spans)
        values = softmax_focal(logits, classes, focus)
        counted = torch.ones_like(is_none)
        if known is not None:
            masses = known.log_masses(known.is_open_span(*spans), spans.sentence)
            values = torch.where(is_none, open_softmax_focal(logits, masses, focus), values)
            counted = ~(is_none & known.is_ignored(*spans))
        values = values * self._weights(matches.overlap, settings.label_overlap)
        return sum_rounds(text, spans, [values], [counted])

    def score(self, states: TokenStates, targets: Mapping[str, Tensor]) -> ScoredSpans:
        """Every proposal with its best type.

        If NONE is more probable the score is 0, and decoding drops the span. Filtering here would make
        the CPU wait for the GPU.
        """
        text = Text.of(states)
        proposals = self.propose(text, targets)
        logits = self.classifier(*text, proposals.spans).float()
        probabilities = logits.softmax(1)
        score, label = probabilities[:, :-1].max(1)
        is_entity = (score >= probabilities[:, -1]) & proposals.passed
        return ScoredSpans(*proposals.spans, label, score * is_entity, log_odds=class_log_odds(logits, label))

    def span_vectors(self, states: TokenStates, targets: Mapping[str, Tensor]) -> SpanVectors:
        """Vectors of the spans that reach stage 2."""
        text = Text.of(states)
        spans = self._distinct_proposals(text, targets)
        return SpanVectors(*spans, self.classifier.hidden(*text, spans))

    def span_probabilities(self, states: TokenStates, targets: Mapping[str, Tensor]) -> SpanVectors:
        """Probabilities of the spans that reach stage 2."""
        text = Text.of(states)
        spans = self._distinct_proposals(text, targets)
        return SpanVectors(*spans, self.classifier(*text, spans).softmax(1))

    @property
    def class_weights(self) -> Tensor:
        return self.classifier.out.weight

    def _distinct_proposals(self, text: Text, targets: Mapping[str, Tensor]) -> PackedSpans:
        proposals = self.propose(text, targets)
        return PackedSpans(*torch.unique(torch.stack(proposals.spans)[:, proposals.passed], dim=1))

    def propose(self, text: Text, targets: Mapping[str, Tensor]) -> Proposals:
        """Stage 1: filter the seeds and move them. Waits for the device once, for the number of seeds."""
        seeds = PackedSpans(targets["sentence"], targets["start"], targets["end"])
        passed = torch.ones_like(seeds.start, dtype=torch.bool)
        if self.filter is not None:
            passed = self._passes(text, seeds)
            if "classify-then-filter" not in self.settings.paper:
                rows = passed.nonzero().squeeze(1)
                seeds = PackedSpans(*(column.index_select(0, rows) for column in seeds))
                passed = passed.index_select(0, rows)
        spans = seeds
        for round_ in range(self.rounds):
            if round_ and self.filter is not None:
                passed = passed & self._passes(text, spans)
            if self.regressor is not None:
                spans = move_spans(text, spans, self._moves(text, spans))
        return Proposals(seeds, spans, passed)

    def _passes(self, text: Text, spans: PackedSpans) -> Tensor:
        assert self.filter is not None
        passes: Tensor = self.filter(*text, spans).squeeze(1).sigmoid() > self.settings.proposal_threshold
        return passes

    def _moves(self, text: Text, spans: PackedSpans) -> Tensor:
        """The offsets by which to move the boundaries of each span: [S, 2]."""
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
