"""Settings of Locate and Label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Self

from pydantic import Field, field_validator

from spanwise.core.types import Sentence, Span
from spanwise.heads.span_settings import SpanSettings, contiguous_spans, width_covering

MAX_WIDTH = 10_000  # words of a seed or entity: far more than any has, and a bound for damaged settings
MAX_SEED_LENGTH = 15  # of automatic seeds: the paper's on ACE
SEED_COVERAGE = 99  # percent of the training entities that automatic seeds cover, within MAX_SEED_LENGTH

# Differences between the authors' program and the paper, each can be enabled separately:
Published = Literal[
    "one-sided-offsets",  # a sigmoid times the sentence's length: boundaries only move to the right
    "global-soft-weight",  # all examples have the mean of the soft weights
    "duplicate-scoring",  # a span predicted n times has n times its score
    "crossing-deletion",  # of two crossing spans, both are dropped
    "focal-classifier",  # the classifier has a focal loss too, instead of the cross-entropy of equation 16
    "weighted-offsets",  # the smooth L1 loss of a seed is multiplied by its soft weight
    "classify-then-filter",  # all seeds are moved and classified before the filter acts: slower, equal predictions
]


class LocateSettings(SpanSettings):
    """Settings of ``LocateLabel``.

    The defaults are the paper's (table 6) with four exceptions: the paper uses a ``dropout`` of 0.5,
    5 ``negatives`` and, on GENIA, a ``decay`` of 0.9 from an ``overlap`` of 0.7. Five negatives
    contain too few spans near entities, and that decay leaves too many neighbours of predicted
    entities: both give more false positives on dev.

    ``lengths`` are the widths of the seed spans: by default all up to ``max_width`` or, if it is not
    given, up to the width that covers 99 % of the training entities, at most 15. The ablations of
    table 3 are ``regressor: false``, ``filter: false``, ``decay: 1`` (no soft-NMS) and ``softness: 0``
    (no soft examples). ``paper`` lists differences of the authors' program to enable. ``refine`` also
    applies to training: filter and regressor learn from the adjusted spans as well as from the seeds.
    """

    lengths: tuple[int, ...] | None = Field(
        default=None,
        min_length=1,
        description="widths of the seed spans in words; by default all that cover 99% of the training entities",
    )
    regressor: bool = Field(default=True, description="adjust the boundaries of proposals")
    filter: bool = Field(default=True, description="drop seeds that contain no entity")
    refine: int = Field(default=1, ge=1, le=100, description="how often stage 1 is applied, each time to the adjusted spans")
    positive_overlap: float = Field(
        default=0.7, gt=0.0, lt=1.0, description="a seed with a larger overlap is a proposal (alpha 1)"
    )
    label_overlap: float = Field(
        default=1.0, gt=0.0, le=1.0, description="overlap at which an adjusted span has the entity's label (alpha 2)"
    )
    negatives: int = Field(default=20, ge=1, description="negative seeds sampled per positive seed in training")
    softness: float = Field(default=1.0, ge=0.0, description="power of the soft weights (eta); 0: no soft examples")
    focus: float = Field(default=2.0, ge=0.0, description="gamma of the focal loss")
    filter_weight: float = Field(default=1.0, ge=0.0, description="weight of the filter's loss (lambda 1)")
    regressor_weight: float = Field(default=0.1, ge=0.0, description="weight of the regressor's loss (lambda 2)")
    classifier_weight: float = Field(default=1.0, ge=0.0, description="weight of the classifier's loss (lambda 3)")
    proposal_threshold: float = Field(default=1 / 6, ge=0.0, lt=1.0, description="minimum score of a proposal in the filter")
    decay: float = Field(
        default=0.7, gt=0.0, le=1.0, description="factor by which soft-NMS reduces a score (u); 1: no soft-NMS"
    )
    overlap: float = Field(default=0.5, gt=0.0, le=1.0, description="overlap from which soft-NMS reduces a score (k)")
    threshold: float = Field(default=0.45, ge=0.0, lt=1.0, description="minimum score of an entity (delta)")
    dropout: float = Field(default=0.2, ge=0.0, lt=1.0, description="dropout before filter, regressor and classifier")
    paper: tuple[Published, ...] = Field(default=(), description="differences of the authors' program to enable")

    @field_validator("lengths")
    @classmethod
    def _check_lengths(cls, lengths: tuple[int, ...] | None) -> tuple[int, ...] | None:
        if lengths is None:
            return None
        if not 1 <= min(lengths) <= max(lengths) <= MAX_WIDTH:
            raise ValueError(f"expected numbers of words, from 1 to {MAX_WIDTH:,}")
        return tuple(sorted(set(lengths)))

    def resolve(self, sentences: Sequence[Sentence]) -> Self:
        """Also choose ``lengths``.

        >>> from spanwise.core.types import Entity
        >>> LocateSettings().resolve([Sentence("s1", ("a", "b", "c"), (Entity("X", ((0, 2),)),))]).lengths
        (1, 2)
        """
        resolved = super().resolve(sentences)
        widths = [span.width for spans in contiguous_spans(sentences) for span in spans]
        if self.lengths is not None or not widths:
            return resolved
        widest = self.max_width or min(width_covering(widths, SEED_COVERAGE), MAX_SEED_LENGTH)
        return resolved.model_copy(update={"lengths": tuple(range(1, widest + 1))})

    def reachable_widths(self, length: int) -> set[int]:
        """The widths of entities that can be predicted in a sentence of ``length`` words.

        A seed learns to move onto an entity if their overlap exceeds ``positive_overlap``, and a span
        inside another overlaps it by the quotient of their widths. Each further application of stage 1
        starts from the widths that the previous one can reach. Without a regressor, only the seeds
        themselves can be predicted. A sentence has no seeds that are wider than itself.

        >>> sorted(LocateSettings(lengths=(4, 5)).reachable_widths(20))
        [3, 4, 5, 6, 7]
        >>> max(LocateSettings(lengths=(4, 5), refine=2).reachable_widths(20))
        9
        >>> LocateSettings(lengths=(4, 5)).reachable_widths(3)
        set()
        """
        ranges = [Span(width, width + 1) for width in self.lengths or () if width <= length]
        for _ in range(self.refine if self.regressor else 0):
            ranges = [_near_widths(widths, self.positive_overlap) for widths in ranges]
        reached: set[int] = set()
        last = 0
        for start, end in sorted(ranges):  # wide ranges overlap: count each width once
            reached.update(range(max(start, last), end))
            last = max(last, end)
        return reached


def _near_widths(widths: Span, overlap: float) -> Span:
    """The widths of spans inside or around spans of these widths that overlap them by more than ``overlap``."""
    narrowest, widest = widths.start, widths.end - 1
    low, high = max(1, int(narrowest * overlap)), int(min(widest / overlap, MAX_WIDTH))
    while low / narrowest <= overlap:
        low += 1
    while widest / high <= overlap:
        high -= 1
    return Span(low, high + 1)
