"""Deep spans only where it pays: a cheap scorer chooses which spans go through the span transformer.

Almost all spans are nothing, and a glance tells most of them. A biaffine product of the words' top states judges every span; a
sentence's likeliest ones, a few times as many as it can be expected to have entities, are represented deeply and judged again,
and the others are NONE. What the span transformer costs then grows with the entities, not with all spans.

Both judges learn all types, on the same encoder, and a kept span's probabilities are the mean of theirs. Against a scorer that
learns only what is an entity, and is not asked again, that is worth 0.4 F1 on GENIA dev, and the BiLSTM 0.25 more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from spanwise.core.types import Sentence
from spanwise.encoders.base import TokenStates
from spanwise.encoders.layers import LayerParts
from spanwise.encoders.recurrent import BiLSTM, reordered
from spanwise.heads.base import Labels, Losses, ScoredSpans, SpanVectors
from spanwise.heads.biaffine import Biaffine, BiaffineSettings, ScoredCells
from spanwise.heads.deep_head import DeepHead
from spanwise.heads.deep_settings import SPARE, PrunedSpanSettings
from spanwise.heads.memo import Ints
from spanwise.losses.smoothing import soft_cross_entropy
from spanwise.runtime.cuda_graphs import Graphs, padded_to_grain
from spanwise.runtime.device import is_traced
from spanwise.spans.blocks import ChosenSpans
from spanwise.spans.tiles import Tiles


class Chosen(NamedTuple):
    """Places for spans, M per sentence: [B, M] each."""

    cell: Tensor  # among the cells of the sentence's tiles
    start: Tensor
    end: Tensor
    alive: Tensor  # false where a place is not needed; it then holds the first word


class PrunedSpan(DeepHead):
    """The span transformer for the likeliest spans of each sentence.

    The scorer learns with the rest. In training gold spans always pass, so that the classifier sees all of them beside the
    negatives that the scorer finds hard. How many spans a sentence keeps depends on its own length alone. DSpERT's BiLSTM along
    the starts of one size would need all of them; here it reads whatever is kept, in the order of the text.
    """

    prunes = True
    settings_class = PrunedSpanSettings
    settings: PrunedSpanSettings

    def __init__(
        self, width: int, labels: Labels, settings: PrunedSpanSettings, layers: Sequence[LayerParts],
        subword_counts: Callable[[Sentence], Ints] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(width, labels, settings, layers, subword_counts, 2 * settings.lstm or width)
        assert settings.budget is not None
        self.budget = settings.budget
        same = {name: getattr(settings, name) for name in ("max_width", "decoding", "smoothing", "smoothing_distance")}
        self.scorer = Biaffine(width, labels, BiaffineSettings(**same))
        self.lstm = BiLSTM(width, settings.lstm) if settings.lstm else None
        self.lstm_dropout = nn.Dropout(settings.lstm_dropout)
        self.graphs: Graphs | None = None

    def record_steps(self) -> None:
        if not self.settings.share_weights:  # shared layers are the encoder's, which has its own record of them
            self.graphs = Graphs(self.transformer, self._deepen)

    def targets(
        self, sentences: Sequence[Sentence], *, gold: bool, generator: np.random.Generator | None = None
    ) -> dict[str, Tensor]:
        """With gold its smoothed rows ``sentence``, ``start``, ``end``, ``label``, ``mass``, and what must pass: ``gold_start``
        and ``gold_end`` [B, most gold spans of a sentence], 0 where a sentence has fewer."""
        if not gold:
            return self.word_places(sentences)
        owner, soft = self.soft_gold(sentences)
        columns: dict[str, np.ndarray] = {"sentence": owner, **soft._asdict()}
        spans = [np.unique(self._gold(sentence)[:, :2], axis=0) for sentence in sentences]
        held = np.zeros((2, len(spans), max(map(len, spans), default=0)), np.int64)
        for number, own in enumerate(spans):
            held[:, number, : len(own)] = own.T
        columns["gold_start"], columns["gold_end"] = held
        return {name: torch.from_numpy(np.ascontiguousarray(column)) for name, column in columns.items()}

    def loss(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Losses:
        scored = self.scorer.scored(states)
        chosen = self._best(scored, states.mask, targets)
        logits = self.classified(self._vectors(states, chosen))
        batch, count = chosen.alive.shape
        # Where each cell's span stands among the chosen, -1 for those that are not.
        standing = torch.where(chosen.alive, torch.arange(count, device=logits.device), -1)
        table = torch.full((batch, scored.tiles.cells), -1, device=logits.device).scatter(1, chosen.cell, standing).view(-1)
        cell = targets["sentence"] * scored.tiles.cells + scored.tiles.place(targets["start"], targets["end"])
        place = table.index_select(0, cell)
        mass = targets["mass"] * (place >= 0)
        place = targets["sentence"] * count + place.clamp(min=0)
        values = soft_cross_entropy(logits.view(batch * count, -1, 1), place, targets["label"], mass)
        deep = values.view(batch, count).masked_fill(~chosen.alive, 0.0).sum(1)
        shallow = self.scorer.loss_of(scored, targets)
        parts = {"deep": deep.sum() / shallow.counts.sum().clamp(min=1), "scorer": shallow.mean}
        return Losses(deep + shallow.sums, shallow.counts, parts, instances=shallow.instances)

    def score(self, states: TokenStates, targets: Mapping[str, Tensor]) -> ScoredSpans:
        chosen, chances = self._judged(states)
        score, label = chances.max(-1)
        return ScoredSpans(*self.picked((label != self.none) & chosen.alive.flatten(), targets, *_flat(chosen), label, score))

    def span_vectors(self, states: TokenStates, targets: Mapping[str, Tensor]) -> SpanVectors:
        """Of the spans that the scorer keeps."""
        chosen = self._best(self.scorer.scored(states), states.mask)
        return SpanVectors(*self.picked(chosen.alive.flatten(), targets, *_flat(chosen), self._vectors(states, chosen)))

    def span_probabilities(self, states: TokenStates, targets: Mapping[str, Tensor]) -> SpanVectors:
        """Of the spans that the scorer keeps."""
        chosen, chances = self._judged(states)
        return SpanVectors(*self.picked(chosen.alive.flatten(), targets, *_flat(chosen), chances))

    def kept_gold(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Tensor:
        scored = self.scorer.scored(states)
        chosen = self._best(scored, states.mask)
        passed = torch.zeros_like(scored.inside.flatten(1)).scatter(1, chosen.cell, chosen.alive)
        start, end = targets["gold_start"], targets["gold_end"]
        return (passed.gather(1, scored.tiles.place(start, end.clamp(min=1))) & (end > 0)).sum(1)

    def _best(self, scored: ScoredCells, mask: Tensor, gold: Mapping[str, Tensor] | None = None) -> Chosen:
        """The spans that are kept: the best by the scorer, and ``gold`` before all others."""
        tiles, inside = scored.tiles, scored.inside.flatten(1)
        limits = torch.finfo(torch.float32)
        odds = scored.logits[:, :, :, :-1].logsumexp(3) - scored.logits[:, :, :, -1]
        scores = odds.detach().flatten(1).masked_fill(~inside, limits.min)
        count = int(self.budget * mask.shape[1]) + 1 + SPARE
        if gold is not None:
            start, end = gold["gold_start"], gold["gold_end"]
            # Where a sentence has fewer gold spans than another, a cell behind the last takes what is said of them.
            place = torch.where(end > 0, tiles.place(start, end), tiles.cells)
            scores = pad(scores, (0, 1)).scatter(1, place, limits.max)[:, :-1]
            count = max(count, start.shape[1])
        most: Any = min(count, tiles.cells)
        if is_traced():  # a graph must not take the example's count for all lengths
            most = torch.minimum(torch.as_tensor(mask.shape[1] * self.budget).long() + 1 + SPARE, torch.as_tensor(tiles.cells))
        values, cell = scores.topk(most, dim=1)
        own = (mask.sum(1, keepdim=True) * self.budget).ceil() + SPARE
        is_kept = (torch.arange(cell.shape[1], device=cell.device) < own) | (values == limits.max)
        return _placed(tiles, cell, is_kept & inside.gather(1, cell))

    def _judged(self, states: TokenStates) -> tuple[Chosen, Tensor]:
        """The places of the kept spans, and the probabilities of all classes there [B * M, C + 1]."""
        scored = self.scorer.scored(states)
        chosen = self._best(scored, states.mask)
        cells = scored.logits.movedim(3, -1).flatten(1, 3)
        first = cells.gather(1, chosen.cell.unsqueeze(2).expand(-1, -1, cells.shape[2])).flatten(0, 1)
        second = self.classified(self._vectors(states, chosen))
        return chosen, (first.softmax(-1) + second.softmax(-1)) / 2

    def _vectors(self, states: TokenStates, chosen: Chosen) -> Tensor:
        """The vectors that are classified, of all places [B * M, hidden]."""
        top, below = self.words(states)
        spans = self._deepened(chosen.start, chosen.end, below)
        first = top.gather(1, chosen.start.unsqueeze(2).expand(-1, -1, top.shape[2]))
        size = chosen.end - chosen.start
        spans = torch.where((size == 1).unsqueeze(2), first, spans)
        if self.lstm is not None:
            spans = self._along_text(self.lstm, spans, chosen)
        return self.reduced(spans, size).flatten(0, 1)

    def _along_text(self, lstm: BiLSTM, spans: Tensor, chosen: Chosen) -> Tensor:
        """The kept spans of a sentence are a sequence, in the order of their starts and then of their ends."""
        place = chosen.start * (self.widest + 1) + chosen.end - chosen.start
        order = place.masked_fill(~chosen.alive, torch.iinfo(torch.int64).max).argsort(1)
        read = lstm(reordered(self.lstm_dropout(spans), order), chosen.alive.sum(1))
        return reordered(read, order.argsort(1))

    def _deepened(self, start: Tensor, end: Tensor, below: Sequence[Tensor]) -> Tensor:
        """The states of the spans from ``start`` to ``end`` [B, M], as [B, M, d]."""
        if self.graphs is not None and self.training:
            count, length = start.shape[1], below[0].shape[1]
            more, longer = padded_to_grain(count) - count, padded_to_grain(length) - length
            words = (pad(layer, (0, 0, 0, longer)) for layer in below)
            recorded = self.graphs(pad(start, (0, more)), pad(end, (0, more), value=1), *words)
            if recorded is not None:
                return recorded[:, :count]
        return self._deepen(start, end, *below)

    def _deepen(self, start: Tensor, end: Tensor, *below: Tensor) -> Tensor:
        spans: Tensor = self.transformer(below, ChosenSpans(below[0].shape[1], start, end, self.widest))
        return spans.view(*start.shape, -1)


def _flat(chosen: Chosen) -> tuple[Tensor, Tensor, Tensor]:
    """Sentence, start and end of all places."""
    sentence = torch.arange(chosen.cell.shape[0], device=chosen.cell.device).unsqueeze(1).expand_as(chosen.cell)
    return sentence.flatten(), chosen.start.flatten(), chosen.end.flatten()


def _placed(tiles: Tiles, cell: Tensor, alive: Tensor) -> Chosen:
    start, end = tiles.spans(cell)
    return Chosen(cell, start.masked_fill(~alive, 0), end.masked_fill(~alive, 1), alive)
