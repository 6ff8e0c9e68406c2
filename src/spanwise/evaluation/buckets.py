"""Scores of groups of entities, by length, frequency, nesting and more (Bundling Learning for NER, section 4.3.1)."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.evaluation.attributes import ATTRIBUTES, entities_in_context
from spanwise.evaluation.bootstrap import Interval, f1_interval
from spanwise.evaluation.pairing import Pairing, SystemOutput, pair
from spanwise.evaluation.scores import EntityItem, Score
from spanwise.evaluation.train_index import TrainIndex

SIZES = ("XS", "S", "L", "XL")  # names of the buckets between published cuts
DEFAULT_BUCKETS = 4  # for attributes without published cuts
Counts = tuple[int, int, int]  # correct, predicted, gold


@dataclass(frozen=True)
class BucketRange:
    """The attribute values of a bucket: greater than ``above`` and at most ``up_to``, or the category ``name``.

    None means no limit.
    """

    name: str
    above: float | None = None
    up_to: float | None = None

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "above": self.above, "up_to": self.up_to}


@dataclass(frozen=True, kw_only=True)
class Bucket(BucketRange):
    """The strict score of a group of entities. ``interval`` is None with fewer than 20 sentences."""

    score: Score
    interval: Interval | None

    @property
    def is_empty(self) -> bool:
        """Whether neither gold nor the predictions have entities in the bucket."""
        return self.score == Score()

    def to_json(self) -> dict[str, Any]:
        interval = None if self.interval is None else self.interval.to_json()
        return {**super().to_json(), **self.score.to_json(), "interval": interval}


def bucket_scores(
    gold: Iterable[Sentence],
    predicted: SystemOutput,
    train: TrainIndex | Iterable[Sentence] | None = None,
    *,
    attribute: str = "eLen",
    cuts: int | Sequence[float] | None = None,
    use_paper_definition: bool = False,
) -> list[Bucket]:
    """Score predictions separately for each bucket of an attribute (see ``ATTRIBUTES``).

    ``cuts`` are the upper limits of all buckets but the last, or the number of buckets with about
    equal numbers of gold entities. By default the cuts of the paper's Table 5 are used, or four
    equal buckets if it has none. ``use_paper_definition`` applies the paper's equations literally.
    Build a ``TrainIndex`` once to score several attributes.

    A wrong prediction is counted by its own attributes among the predictions of its sentence, a
    correct one by the attributes of the gold entity. The buckets therefore sum to the overall counts.

    >>> from spanwise.core.types import Entity
    >>> words = ("Oslo", "and", "New", "York")
    >>> gold = Sentence("s1", words, (Entity("Place", ((0, 1),)), Entity("Place", ((2, 4),))))
    >>> predicted = Sentence("s1", words, (Entity("Place", ((0, 1),)), Entity("Place", ((3, 4),))))
    >>> for bucket in bucket_scores([gold], [predicted], attribute="eLen")[:2]:
    ...     print(bucket.name, bucket.score)
    XS Score(support=1, predicted=2, correct=1)
    S Score(support=1, predicted=0, correct=0)
    """
    ranges, counts = bucket_counts(
        pair(gold, predicted), train, attribute=attribute, cuts=cuts, use_paper_definition=use_paper_definition
    )
    return [
        Bucket(**vars(bucket), score=total_score(rows), interval=f1_interval(rows))
        for bucket, rows in zip(ranges, counts, strict=True)
    ]


def bucket_counts(
    pairing: Pairing,
    train: TrainIndex | Iterable[Sentence] | None,
    *,
    attribute: str,
    cuts: int | Sequence[float] | None = None,
    use_paper_definition: bool = False,
) -> tuple[list[BucketRange], list[list[Counts]]]:
    """Return the buckets of an attribute, and for each bucket the counts of every sentence pair.

    The buckets depend on gold only. The parameters are those of ``bucket_scores``.
    """
    check_attribute(attribute, cuts, has_train=train is not None)
    definition = ATTRIBUTES[attribute]
    index = TrainIndex.of(train) or TrainIndex(())
    value = definition.paper_value if use_paper_definition and definition.paper_value else definition.value
    sides = []
    for sentence_pair in pairing.pairs:
        gold, predicted = (
            {item: value(entity) for item, entity in side.items()} for side in entities_in_context(sentence_pair, index)
        )
        sides.append((gold, {item: gold.get(item, predicted_value) for item, predicted_value in predicted.items()}))

    if definition.categories:
        categories = definition.categories
        return [BucketRange(name) for name in categories], _count(sides, categories.index, len(categories))
    limits = _limits(definition.published_cuts, cuts, [number for gold, _ in sides for number in gold.values()])
    edges = list(pairwise([None, *limits, None]))
    bucket_names: Sequence[str] = SIZES if cuts is None and definition.published_cuts else [_name(*edge) for edge in edges]
    ranges = [BucketRange(name, *edge) for name, edge in zip(bucket_names, edges, strict=True)]
    return ranges, _count(sides, lambda number: bisect_left(limits, number), len(ranges))


def check_attribute(attribute: str, cuts: int | Sequence[float] | None, *, has_train: bool) -> None:
    """Raise an error if there are no such buckets, or if they need training sentences that are not given."""
    if attribute not in ATTRIBUTES:
        raise SpanwiseError(f"unknown attribute {attribute!r}; expected one of {', '.join(ATTRIBUTES)}")
    definition = ATTRIBUTES[attribute]
    if definition.needs_train and not has_train:
        raise SpanwiseError(f"the attribute {attribute} needs the training sentences; pass them as train (--train)")
    if definition.categories and cuts is not None:
        names = ", ".join(definition.categories)
        raise SpanwiseError(f"the attribute {attribute} has the fixed buckets {names}; it takes no cuts")
    if isinstance(cuts, int) and cuts < 1:
        raise SpanwiseError(f"expected at least one bucket, found {cuts}")


def quantile_cuts(values: Iterable[float], buckets: int) -> list[float]:
    """Return the upper limits of all but the last of ``buckets`` equal buckets; fewer if values are repeated.

    >>> quantile_cuts([1, 1, 1, 2, 3, 4, 5, 9], 4), quantile_cuts([1, 1, 1, 1, 1, 2], 3), quantile_cuts([7, 7], 2)
    ([1, 2, 4], [1], [])
    """
    ordered = sorted(values)
    # The smallest value that a share k / buckets of the values does not exceed.
    quantiles = {ordered[-(-len(ordered) * k // buckets) - 1] for k in range(1, buckets)} if ordered else set()
    return sorted(quantile for quantile in quantiles if quantile < ordered[-1])  # a bucket above the maximum would be empty


def _limits(published: Sequence[float], cuts: int | Sequence[float] | None, values: list[Any]) -> list[float]:
    if cuts is None and published:
        return list(published)
    if cuts is None or isinstance(cuts, int):
        return quantile_cuts(values, DEFAULT_BUCKETS if cuts is None else cuts)
    if not all(map(math.isfinite, cuts)) or any(low >= high for low, high in pairwise(cuts)):
        raise SpanwiseError(f"cuts must be increasing numbers, found {list(cuts)}")
    return list(cuts)


def _name(above: float | None, up_to: float | None) -> str:
    if above is None:
        return "all" if up_to is None else f"≤ {up_to:.4g}"
    return f"> {above:.4g}" if up_to is None else f"({above:.4g}, {up_to:.4g}]"


def _count(
    sides: Iterable[tuple[Mapping[EntityItem, Any], Mapping[EntityItem, Any]]], bucket_of: Callable[[Any], int], buckets: int
) -> list[list[Counts]]:
    """Count the correct, predicted and gold entities of each sentence in each bucket."""
    counts: list[list[Counts]] = [[] for _ in range(buckets)]
    for gold, predicted in sides:
        gold_counts, predicted_counts = (Counter(map(bucket_of, side.values())) for side in (gold, predicted))
        correct = Counter(bucket_of(gold[item]) for item in gold.keys() & predicted.keys())
        for index, rows in enumerate(counts):
            rows.append((correct[index], predicted_counts[index], gold_counts[index]))
    return counts


def total_score(counts: Iterable[Counts]) -> Score:
    """Return the score over all sentences."""
    correct, predicted, support = map(sum, zip((0, 0, 0), *counts, strict=True))
    return Score(support, predicted, correct)
