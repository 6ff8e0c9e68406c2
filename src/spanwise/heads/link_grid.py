"""Fragments of discontinuous entities and the links between them, on one grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from spanwise.core.types import Entity, Sentence
from spanwise.decoding.fragments import LINK_LABELS, discontinuous_entities, fragment_rows, link_rows
from spanwise.encoders.base import TokenStates
from spanwise.heads.base import Labels, Losses, ScoredSpans
from spanwise.heads.grid import Grid, GridSettings
from spanwise.heads.pair_pointer import INITIAL_SCORE
from spanwise.heads.partial import Known, known_targets
from spanwise.heads.sentence_cache import Ints, SentenceCache
from spanwise.heads.span_head import pack_rows
from spanwise.losses.imbalance import class_imbalance
from spanwise.losses.partial import open_weight

CHANNELS = 64
LABELS = ("fragment", *LINK_LABELS)
THRESHOLD = 0.5  # of fragments and links that are joined


class LinkGrid(nn.Module):
    """Scores the spans of a sentence on a grid: is it a fragment, and is it one of the two spans of a link?

    The cells are those of ``Grid``, so that convolutions compare a fragment with the links that start
    or end at it (W2NER, Li et al. 2022, classifies pairs of words on a grid in a similar way). Before
    training it predicts nothing. It has no dropout and draws no random numbers.
    """

    def __init__(self, width: int, types: Sequence[str], max_width: int | None, link_width: int) -> None:
        super().__init__()
        self.types, self.max_width, self.link_width = types, max_width, link_width
        settings = GridSettings(
            max_width=link_width, decoding="overlapping", channels=CHANNELS, rank=CHANNELS, dropout=0.0, hidden_dropout=0.0
        )
        self.grid = Grid(width, Labels(LINK_LABELS), settings)
        self.grid.classifier = nn.Linear(CHANNELS, len(LABELS))
        nn.init.constant_(self.grid.classifier.bias, INITIAL_SCORE)
        self._gold = SentenceCache(self._gold_rows)

    def targets(self, sentences: Sequence[Sentence], *, gold: bool) -> dict[str, Tensor]:
        if not gold:
            return {}
        known = known_targets(sentences, self.types, self.grid.marked_share)
        return pack_rows([self._gold(sentence) for sentence in sentences]) | known

    def loss(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Losses:
        """The class-imbalance loss of each sentence, averaged over the three labels."""
        scores, inside = self.scores(states)
        length, width = inside.shape[2:]
        start, end = targets["start"], targets["end"]
        rows = (targets["sentence"] * len(LABELS) + targets["label"]) * length + start
        weights = None
        if (known := Known.select(targets)) is not None:
            cell = torch.arange(length * width, device=scores.device)
            is_open = known.is_open(cell // width, cell // width + cell % width + 1).any(1, keepdim=True).view_as(inside)
            weights = open_weight(scores, known.marked_share.view(-1, 1, 1, 1)).masked_fill(~is_open, 0.0)
        values = class_imbalance(scores, inside, rows * width + end - start - 1, weights=weights)
        return Losses(values.mean(1), states.mask.any(1).float())

    def score(self, states: TokenStates) -> tuple[ScoredSpans, ScoredSpans]:
        """The probable fragments and the probable spans of links, whose labels are ``LINK_LABELS``."""
        scores, inside = self.scores(states)
        probabilities = scores.sigmoid()
        is_probable = (probabilities > THRESHOLD) & inside
        fragments, is_fragment = (values[:, :1, :, : self.max_width] for values in (probabilities, is_probable))
        return self._select(fragments, is_fragment), self._select(probabilities[:, 1:], is_probable[:, 1:])

    def scores(self, states: TokenStates) -> tuple[Tensor, Tensor]:
        """The scores of all labels [B, 3, T, W], and which cells are spans [B, 1, T, W]."""
        scores, inside = self.grid.score_cells(states)
        return scores.permute(0, 3, 1, 2), inside.unsqueeze(1)

    def learnable(self, sentence: Sentence) -> list[Entity]:
        """The entities whose fragments and links fit on the grid."""
        return discontinuous_entities(sentence, self.types, self.max_width, self.link_width)

    def _select(self, probabilities: Tensor, is_probable: Tensor) -> ScoredSpans:
        _, labels, length, width = probabilities.shape
        cells = is_probable.reshape(-1).nonzero().squeeze(1)
        start, group = cells // width % length, cells // (width * length)
        values = probabilities.reshape(-1).index_select(0, cells)
        return ScoredSpans(group // labels, start, start + cells % width + 1, group % labels, values)

    def _gold_rows(self, sentence: Sentence) -> Ints:
        entities = self.learnable(sentence)
        spans = np.unique(fragment_rows(entities, self.types)[:, :2], axis=0)
        return np.concatenate([np.pad(spans, ((0, 0), (0, 1))), link_rows(entities) + np.array([0, 0, 1])])
