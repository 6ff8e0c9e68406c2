"""Statistics of one split, counted sentence by sentence without keeping any."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from spanwise.core.nesting import nested_spans
from spanwise.core.types import Sentence, Span
from spanwise.description.duplicates import digest

QUANTILES = {
    "min": Fraction(0),
    "25%": Fraction(1, 4),
    "median": Fraction(1, 2),
    "75%": Fraction(3, 4),
    "95%": Fraction(19, 20),
    "99%": Fraction(99, 100),
    "max": Fraction(1),
}


@dataclass
class SplitCounts:
    """Statistics of a split.

    The range of an entity is from its first word to its last, including gaps; its width is the width of
    the range.

    - ``partially_annotated``: sentences that mark what was annotated (``Sentence.annotated``).
    - ``nested``: entities whose range is inside another, different range.
    - ``crossing``: entities whose range partly overlaps another.
    - ``same_span_two_types``: spans (equal fragments) with two or more types.
    - ``duplicate_entities``: entities that repeat another of the same sentence.
    - ``links``: relations across sentences, not included in ``relations`` but in ``relation_types``.
    - ``concept_relations``: relations of a document that name concepts instead of entities (PubTator,
      BioC), not included in ``relations``.
    - ``duplicate_sentences``: sentences that repeat the words of an earlier one. ``describe`` sets this
      and ``oov_density``, because they compare sentences.
    """

    sentences: int = 0
    words: int = 0
    entities: int = 0
    nested: int = 0
    crossing: int = 0
    discontinuous: int = 0
    same_span_two_types: int = 0
    duplicate_entities: int = 0
    relations: int = 0
    links: int = 0
    concept_relations: int = 0
    sentences_without_entities: int = 0
    partially_annotated: int = 0
    duplicate_sentences: int = 0
    oov_density: float | None = None
    longest_sentence: str | None = None
    max_length: int = 0
    types: Counter[str] = field(default_factory=Counter)
    relation_types: Counter[str] = field(default_factory=Counter)
    widths: Counter[int] = field(default_factory=Counter)
    lengths: Counter[int] = field(default_factory=Counter)
    _documents: set[bytes] = field(default_factory=set, repr=False)

    def add(self, sentence: Sentence) -> None:
        length = len(sentence.words)
        if length > self.max_length or self.longest_sentence is None:
            self.longest_sentence, self.max_length = sentence.id, length
        self.sentences += 1
        self.partially_annotated += sentence.annotated is not None
        self.words += length
        self.lengths[length] += 1
        if sentence.document is not None:
            self._documents.add(digest(sentence.document))
        if sentence.entities:
            self._add_entities(sentence)
        else:
            self.sentences_without_entities += 1
        self.relations += len(sentence.relations)
        self.links += len(sentence.links)
        stored = (sentence.extra or {}).get("concept_relations")
        self.concept_relations += len(stored) if isinstance(stored, list) else 0
        self.relation_types.update(relation.type for relation in sentence.relations)
        self.relation_types.update(link.type for link in sentence.links)

    def _add_entities(self, sentence: Sentence) -> None:
        entities = sentence.entities
        distinct = set(entities)
        ranges = [entity.range for entity in entities]
        nested, crossing = count_overlaps(ranges)
        self.entities += len(entities)
        self.nested += nested
        self.crossing += crossing
        self.discontinuous += sum(entity.is_discontinuous for entity in entities)
        self.duplicate_entities += len(entities) - len(distinct)
        types_per_span = Counter(entity.fragments for entity in distinct)
        self.same_span_two_types += sum(count > 1 for count in types_per_span.values())
        self.types.update(entity.type for entity in entities)
        self.widths.update(end - start for start, end in ranges)

    @property
    def documents(self) -> int:
        return len(self._documents)

    @property
    def max_width(self) -> int:
        return max(self.widths, default=0)

    @property
    def width_99(self) -> int:
        """The smallest width that covers 99 % of the entities, a good limit for heads that enumerate spans."""
        return quantile(self.widths, Fraction(99, 100)) if self.widths else 0

    def to_json(self) -> dict[str, Any]:
        longest = {"id": self.longest_sentence, "words": self.max_length} if self.sentences else None
        return {
            "sentences": self.sentences,
            "words": self.words,
            "documents": self.documents,
            "entities": self.entities,
            "nested": self.nested,
            "crossing": self.crossing,
            "discontinuous": self.discontinuous,
            "same_span_two_types": self.same_span_two_types,
            "duplicate_entities": self.duplicate_entities,
            "relations": self.relations,
            "links": self.links,
            "concept_relations": self.concept_relations,
            "max_width": self.max_width,
            "width_99": self.width_99,
            "entity_widths": quantiles(self.widths),
            "sentence_lengths": quantiles(self.lengths),
            "longest_sentence": longest,
            "sentences_without_entities": self.sentences_without_entities,
            "partially_annotated": self.partially_annotated,
            "duplicate_sentences": self.duplicate_sentences,
            "oov_density": self.oov_density,
            "types": sort_by_count(self.types),
            "relation_types": sort_by_count(self.relation_types),
        }


def sort_by_count(counter: Mapping[str, int]) -> dict[str, int]:
    """Sort by descending count, then by name."""
    return dict(sorted(counter.items(), key=lambda item: (-item[1], item[0])))


def quantile(values: Mapping[int, int], share: Fraction) -> int:
    """Return the smallest value that is at least as large as this share of the values.

    ``values`` maps each value to its count.

    >>> quantile({1: 5, 2: 4, 9: 1}, Fraction(1, 2)), quantile({1: 5, 2: 4, 9: 1}, Fraction(9, 10))
    (1, 2)
    """
    target, seen = share * sum(values.values()), 0
    for value in sorted(values):
        seen += values[value]
        if seen >= target:
            return value
    raise ValueError("expected at least one value")


def quantiles(values: Mapping[int, int]) -> dict[str, int] | None:
    return {name: quantile(values, share) for name, share in QUANTILES.items()} if values else None


def count_overlaps(ranges: Iterable[Span]) -> tuple[int, int]:
    """Count the ranges inside another, different one, and the ranges that partly overlap another.

    >>> count_overlaps([Span(0, 3), Span(1, 2), Span(2, 5), Span(2, 5)])
    (1, 3)
    """
    count = Counter(ranges)
    if len(count) < 2:
        return 0, 0
    nested = sum(count[span] for span in nested_spans(count))
    crossing = _crossed_from_left(sorted(count, key=lambda span: (span.start, -span.end)))
    # In mirrored coordinates, ranges crossed from the right are crossed from the left.
    mirrored = sorted((Span(-end, -start) for start, end in count), key=lambda span: (span.start, -span.end))
    crossing |= {Span(-end, -start) for start, end in _crossed_from_left(mirrored)}
    return nested, sum(count[span] for span in crossing)


def _crossed_from_left(ordered: list[Span]) -> set[Span]:
    """Return the ranges in which another range ends that starts before them."""
    crossed: set[Span] = set()
    ends: list[int] = []
    for span in ordered:
        # Earlier ranges with the same start end later, so they are not counted as crossing.
        index = bisect_right(ends, span.start)
        if index < len(ends) and ends[index] < span.end:
            crossed.add(span)
        insort(ends, span.end)
    return crossed
