"""What may be set of the two-stage identifier."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, Self

from pydantic import Field, field_validator

from spanwise.core.types import Sentence
from spanwise.heads.span_head import SpanSettings, covering, whole_spans

WIDEST = 15  # of automatic seeds: the paper's on ACE
COVERAGE = 99  # percent of the training entities that automatic seeds cover, as far as WIDEST allows

# What the authors' program does and the paper does not say, each by itself:
Published = Literal[
    "one-sided-offsets",  # a sigmoid times the sentence's length, so that a boundary moves to the right only
    "global-soft-weight",  # the mean of the soft weights for all examples instead of each one's own
    "duplicate-scoring",  # a span found n times has n times its score
    "crossing-deletion",  # of two spans that cross, neither is kept
]


class LocateSettings(SpanSettings):
    """The defaults are the paper's (table 6), but for four: it has a ``dropout`` of 0.5, 5 ``negatives`` and, on GENIA, a
    ``decay`` of 0.9 from an ``overlap`` of 0.7 on.

    Five negatives do not teach the classifier enough of what lies around entities, and that decay leaves too many neighbours
    of what is found: both had more false positives on dev.

    ``lengths`` are the widths of the seed spans: unless given, all up to ``max_width`` or, where that is open too, to the width
    that covers 99 % of the training entities, but at most 15. The ablations of table 3 are ``regressor: false``,
    ``filter: false``, ``decay: 1`` (no soft-NMS) and ``softness: 0`` (no soft examples). ``paper`` lists what of the authors'
    program is to be brought back. ``refine`` counts for training too: filter and regressor learn from the spans that they have
    adjusted as from the seeds.
    """

    lengths: tuple[int, ...] | None = Field(default=None, min_length=1)  # words of a seed span
    regressor: bool = True
    filter: bool = True
    refine: int = Field(default=1, ge=1)  # how often stage 1 is applied: again to what it has adjusted
    positive_overlap: float = Field(default=0.7, gt=0.0, lt=1.0)  # alpha 1: a seed with more is a proposal
    label_overlap: float = Field(default=1.0, gt=0.0, le=1.0)  # alpha 2: an adjusted span with so much has the entity's label
    negatives: int = Field(default=20, ge=1)  # sampled per positive seed in training
    softness: float = Field(default=1.0, ge=0.0)  # eta: the power of the soft weights
    focus: float = Field(default=2.0, ge=0.0)  # gamma of the filter's focal loss
    filter_weight: float = Field(default=1.0, ge=0.0)  # lambda 1 to 3: of the losses
    regressor_weight: float = Field(default=0.1, ge=0.0)
    classifier_weight: float = Field(default=1.0, ge=0.0)
    proposal_threshold: float = Field(default=1 / 6, ge=0.0, lt=1.0)  # the filter keeps what is above it
    decay: float = Field(default=0.7, gt=0.0, le=1.0)  # u: what soft-NMS leaves of a score
    overlap: float = Field(default=0.5, gt=0.0, le=1.0)  # k: from which on it does
    threshold: float = Field(default=0.45, ge=0.0, lt=1.0)  # delta: entities score more
    dropout: float = Field(default=0.2, ge=0.0, lt=1.0)  # before filter, regressor and classifier
    paper: tuple[Published, ...] = ()

    @field_validator("lengths")
    @classmethod
    def _from_one(cls, lengths: tuple[int, ...] | None) -> tuple[int, ...] | None:
        if lengths is None:
            return None
        if min(lengths) < 1:
            raise ValueError("seed lengths count words: expected numbers from 1 on")
        return tuple(sorted(set(lengths)))

    def fitted(self, sentences: Sequence[Sentence]) -> Self:
        """With the lengths settled too.

        >>> from spanwise.core.types import Entity
        >>> LocateSettings().fitted([Sentence("s1", ("a", "b", "c"), (Entity("X", ((0, 2),)),))]).lengths
        (1, 2)
        """
        resolved = super().fitted(sentences)
        widths = [span.width for spans in whole_spans(sentences) for span in spans]
        if self.lengths is not None or not widths:
            return resolved
        widest = self.max_width or min(covering(widths, COVERAGE), WIDEST)
        return resolved.model_copy(update={"lengths": tuple(range(1, widest + 1))})

    @property
    def reach(self) -> set[int]:
        """The widths that entities may have to be found.

        A seed learns to move onto an entity with which its overlap exceeds ``positive_overlap``, and a narrower span within a
        wider one overlaps it by the quotient of their widths. Each further application of stage 1 starts where the one before
        could arrive. Without a regressor only the seeds themselves are found.

        >>> sorted(LocateSettings(lengths=(4, 5)).reach)
        [3, 4, 5, 6, 7]
        >>> max(LocateSettings(lengths=(4, 5), refine=2).reach)
        9
        """
        reached = set(self.lengths or ())
        for _ in range(self.refine if self.regressor else 0):
            reached = {near for width in reached for near in _near(width, self.positive_overlap)}
        return reached


def _near(width: int, overlap: float) -> Iterable[int]:
    """The widths of spans that a span of this width, within them or around them, overlaps by more."""
    widest = int(width / overlap)
    return (other for other in range(1, widest + 1) if min(width, other) / max(width, other) > overlap)
