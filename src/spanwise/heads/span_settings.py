"""Settings of heads that score spans, and how they follow from the training entities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import ceil
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, field_validator

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence, Span
from spanwise.decoding.fragments import discontinuous_entities, discontinuous_share, discontinuous_types, widest_link
from spanwise.heads import head_class, head_settings
from spanwise.heads.base import HeadSettings

MAX_LINK_WIDTH = 32  # of an automatic ``link_width``
FREQUENT = 0.05  # share of discontinuous entities from which on they train the encoder
RELATION_HEAD = "span-relations"
MAX_EXCLUDED = 0.001  # share of the training spans; a single annotation error must not allow overlaps everywhere


class SpanSettings(HeadSettings):
    """Maximum width, decoding policy, discontinuous types and relations; all may follow from the training data."""

    #: Percent of the training entities that an automatic ``max_width`` covers. None: score all widths.
    coverage: ClassVar[float | None] = None
    max_automatic_width: ClassVar[int | None] = None  # of an automatic ``max_width``; None: no limit

    max_width: int | None = Field(
        default=None, ge=1, description="words of the widest span; by default chosen from the training entities, or unlimited"
    )
    decoding: Literal["auto", "overlapping", "nested", "flat"] = Field(
        default="auto", description="flat: no overlaps; nested: no crossings; overlapping: any; auto: as in the training data"
    )
    discontinuous: Literal["auto", False] | tuple[str, ...] = Field(
        default="auto", description="types whose entities may have several fragments; auto: as in training; false: none"
    )
    fragments_train_encoder: Literal["auto"] | bool = Field(
        default="auto", description="let fragments train the encoder; auto: if 5% of the training entities are discontinuous"
    )
    link_width: int | None = Field(
        default=None, ge=1, description="words of the widest link between fragments; by default as in training, at most 32"
    )
    relations: Literal["auto", False] | dict[str, Any] = Field(
        default=False, description="auto, or settings of span-relations: learn relations if the data has them; false: never"
    )

    @field_validator("discontinuous", mode="before")
    @classmethod
    def _check_discontinuous(cls, value: object) -> object:
        if value != "auto" and value is not False and not isinstance(value, list | tuple):
            raise ValueError("expected auto, false or a list of types")
        return value

    @field_validator("relations", mode="before")
    @classmethod
    def _check_relations(cls, value: object) -> object:
        if isinstance(value, dict):
            values = {"kind": RELATION_HEAD, **value}
            head_settings(values, "head.relations")
            if not head_class(values["kind"]).finds_relations or "entities" in value:
                raise SpanwiseError("head.relations: expected settings of a relation head, without its entities")
        elif value != "auto" and value is not False:
            raise ValueError("expected auto, false or settings of a relation head")
        return value

    def resolve(self, sentences: Sequence[Sentence]) -> Self:
        """Replace automatic values; without any entity, the settings stay as they are.

        Width and decoding follow from the contiguous entities or, if there are none, from all
        fragments. An automatic width also covers the fragments of discontinuous types.

        >>> from spanwise.core.types import Entity
        >>> SpanSettings().resolve([Sentence("s1", ("a", "b", "c"), (Entity("X", ((0, 2),)),))]).decoding
        'flat'
        >>> SpanSettings().resolve([Sentence("s1", ("a", "b", "c"), (Entity("X", ((0, 1), (2, 3))),))]).discontinuous
        ('X',)
        """
        spans = contiguous_spans(sentences)
        if not any(spans):
            return self
        update: dict[str, object] = {}
        types = discontinuous_types(sentences) if self.discontinuous == "auto" else self.discontinuous_types
        if self.discontinuous == "auto":
            update["discontinuous"] = types or False
        if self.fragments_train_encoder == "auto":
            update["fragments_train_encoder"] = discontinuous_share(sentences, types) >= FREQUENT
        if self.link_width is None and types:
            links = [widest_link(entity) for sentence in sentences for entity in discontinuous_entities(sentence, types)]
            update["link_width"] = min(max(links), MAX_LINK_WIDTH) if links else None
        if self.relations is not False:
            has_relations = any(sentence.relations for sentence in sentences)
            settings = {} if self.relations == "auto" else self.relations
            update["relations"] = {"kind": RELATION_HEAD, **settings} if has_relations else False
        if self.max_width is None and self.coverage is not None:
            span_widths = [span.width for sentence_spans in spans for span in sentence_spans]
            fragment_widths = [
                fragment.width
                for sentence in sentences
                for entity in discontinuous_entities(sentence, types)
                for fragment in entity.fragments
            ]
            widest = max(width_covering(widths, self.coverage) for widths in (span_widths, fragment_widths) if widths)
            update["max_width"] = min(widest, self.max_automatic_width or widest)
        if self.decoding == "auto":
            update["decoding"] = self._strictest_decoding(spans)
        return self.model_copy(update=update)

    @property
    def allows_several_types(self) -> bool:
        """Whether a span may have several types."""
        return False

    @property
    def discontinuous_types(self) -> tuple[str, ...]:
        return self.discontinuous if isinstance(self.discontinuous, tuple) else ()

    @property
    def relation_head(self) -> dict[str, Any] | None:
        return self.relations if isinstance(self.relations, dict) and "kind" in self.relations else None

    def _strictest_decoding(self, spans: Sequence[Sequence[Span]]) -> str:
        """The strictest policy that can predict these spans, but for at most ``MAX_EXCLUDED`` of them."""
        groups = [group if self.allows_several_types else list(set(group)) for group in spans]
        required = sum(map(len, groups)) * (1 - MAX_EXCLUDED)
        if sum(map(count_disjoint, groups)) >= required:
            return "flat"
        return "nested" if sum(map(count_without_crossing, groups)) >= required else "overlapping"


class SoftmaxSettings(SpanSettings):
    """Boundary smoothing, for heads that give each span one class."""

    smoothing: float = Field(
        default=0.0, ge=0.0, lt=1.0, description="probability of a gold span that its neighbours share (epsilon)"
    )
    smoothing_distance: int = Field(default=1, ge=1, description="words to the farthest of these neighbours (D)")


def contiguous_spans(sentences: Iterable[Sentence]) -> list[list[Span]]:
    """The spans of each sentence's contiguous entities; all fragments if no sentence has any such entity."""
    sentences = list(sentences)
    spans = [
        [entity.range for entity in dict.fromkeys(sentence.entities) if not entity.is_discontinuous] for sentence in sentences
    ]
    if any(spans):
        return spans
    return [[fragment for entity in sentence.entities for fragment in entity.fragments] for sentence in sentences]


def width_covering(widths: Sequence[int], percent: float) -> int:
    """The smallest width that is at least as large as ``percent`` percent of the widths.

    >>> width_covering([1, 1, 2, 9], 75), width_covering([1, 1, 2, 9], 76)
    (2, 9)
    """
    return sorted(widths)[ceil(len(widths) * percent / 100) - 1]


def count_disjoint(spans: Iterable[Span]) -> int:
    """The size of the largest set of spans that do not overlap.

    >>> count_disjoint([Span(0, 5), Span(0, 2), Span(2, 3), Span(1, 4)])
    2
    """
    count, end = 0, 0
    for span in sorted(spans, key=lambda span: span.end):
        if span.start >= end:
            count, end = count + 1, span.end
    return count


def count_without_crossing(spans: Iterable[Span]) -> int:
    """The size of the largest group of spans that do not cross; a span may occur several times.

    >>> count_without_crossing([Span(0, 3), Span(2, 5), Span(4, 7), Span(0, 9)])
    3
    >>> count_without_crossing([Span(0, 3), Span(2, 5), Span(2, 5)])
    2
    """
    counts = Counter(spans)
    if not has_crossing(counts):
        return counts.total()
    crossing = sorted(span for span in counts if any(map(span.crosses, counts)))
    groups: list[Counter[Span]] = []  # spans of different groups do not overlap
    end = 0
    for span in crossing:
        if span.start >= end:
            groups.append(Counter())
        groups[-1][span] = counts.pop(span)
        end = max(end, span.end)
    return counts.total() + sum(map(_count_in_group, groups))


def _count_in_group(counts: Counter[Span]) -> int:
    """The same for a few spans; the time grows with the cube of their number."""
    points = sorted({boundary for span in counts for boundary in span})
    largest: dict[tuple[int, int], int] = {}  # among the spans between two points
    for width in range(1, len(points)):
        for first in range(len(points) - width):
            last = first + width
            # Below the whole range, spans that do not cross leave a point that cuts none of them.
            inside = max((largest[first, middle] + largest[middle, last] for middle in range(first + 1, last)), default=0)
            largest[first, last] = inside + counts[Span(points[first], points[last])]
    return largest[0, len(points) - 1]


def has_crossing(spans: Iterable[Span]) -> bool:
    """Whether some spans overlap and neither contains the other.

    >>> has_crossing([Span(0, 3), Span(2, 5)]), has_crossing([Span(0, 3), Span(0, 5), Span(1, 3), Span(3, 5)])
    (True, False)
    """
    ends: list[int] = []  # of the spans around the current start, the innermost last
    for start, end in sorted(spans, key=lambda span: (span.start, -span.end)):
        while ends and ends[-1] <= start:
            ends.pop()
        if ends and ends[-1] < end:
            return True
        ends.append(end)
    return False
