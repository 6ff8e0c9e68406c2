"""Scores of groups of entities: short and long, rare and frequent, nested and flat (after Bundling Learning for NER, 4.3.1)."""

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
from spanwise.evaluation.attributes import ATTRIBUTES, mentions
from spanwise.evaluation.bootstrap import Interval, f1_interval
from spanwise.evaluation.pairing import Output, Pairing, pair
from spanwise.evaluation.scores import EntityItem, Score
from spanwise.evaluation.train_index import TrainIndex

SIZES = ("XS", "S", "L", "XL")  # the buckets between the published cuts
PARTS = 4  # buckets where no cuts are published
Counts = tuple[int, int, int]  # correct, predicted, in gold


@dataclass(frozen=True)
class Label:
    """A group of entities: those whose attribute is ``above`` one number and ``up_to`` another, or is called ``name``.

    None is no limit.
    """

    name: str
    above: float | None = None
    up_to: float | None = None

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "above": self.above, "up_to": self.up_to}


@dataclass(frozen=True, kw_only=True)
class Bucket(Label):
    """The strict score of a group of entities. ``interval`` is None where fewer than 20 sentences have any."""

    score: Score
    interval: Interval | None

    @property
    def is_empty(self) -> bool:
        """Whether neither side has entities in it."""
        return self.score == Score()

    def to_json(self) -> dict[str, Any]:
        interval = None if self.interval is None else self.interval.to_json()
        return {**super().to_json(), **self.score.to_json(), "interval": interval}


def bucketed(
    gold: Iterable[Sentence],
    predicted: Output,
    train: TrainIndex | Iterable[Sentence] | None = None,
    *,
    attribute: str = "eLen",
    cuts: int | Sequence[float] | None = None,
    paper: bool = False,
) -> list[Bucket]:
    """Score predicted sentences against gold ones for each bucket of an attribute (see ``ATTRIBUTES``) on its own.

    ``cuts`` are the highest values of all buckets but the last, or the number of buckets into which gold's entities are
    divided as evenly as equal values allow. None means the published cuts of Table 5, and four even buckets where there are
    none. ``paper`` takes the equations of the paper at their word. Make a ``TrainIndex`` to ask for several attributes.

    A wrong prediction stands in the bucket of its own attributes among the predictions of its sentence. A right one is an
    entity of gold and stands where gold has it, so that the buckets sum to the counts of the whole, whatever was predicted
    around it.

    >>> from spanwise.core.types import Entity
    >>> words = ("Oslo", "and", "New", "York")
    >>> gold = Sentence("s1", words, (Entity("Place", ((0, 1),)), Entity("Place", ((2, 4),))))
    >>> found = Sentence("s1", words, (Entity("Place", ((0, 1),)), Entity("Place", ((3, 4),))))
    >>> for bucket in bucketed([gold], [found], attribute="eLen")[:2]:
    ...     print(bucket.name, bucket.score)
    XS Score(support=1, predicted=2, correct=1)
    S Score(support=1, predicted=0, correct=0)
    """
    labels, counts = divided(pair(gold, predicted), train, attribute=attribute, cuts=cuts, paper=paper)
    return [
        Bucket(**vars(label), score=total(rows), interval=f1_interval(rows)) for label, rows in zip(labels, counts, strict=True)
    ]


def divided(
    pairing: Pairing,
    train: TrainIndex | Iterable[Sentence] | None,
    *,
    attribute: str,
    cuts: int | Sequence[float] | None = None,
    paper: bool = False,
) -> tuple[list[Label], list[list[Counts]]]:
    """The buckets of an attribute, which gold alone decides, and for each the counts of every pair; as ``bucketed`` has it."""
    if attribute not in ATTRIBUTES:
        raise SpanwiseError(f"there is no attribute {attribute!r}; there are {', '.join(ATTRIBUTES)}")
    kind = ATTRIBUTES[attribute]
    if kind.needs_train and train is None:
        raise SpanwiseError(f"the attribute {attribute} needs the training sentences")
    if kind.categories and cuts is not None:
        raise SpanwiseError(f"the attribute {attribute} has the buckets {', '.join(kind.categories)}, which cannot be cut")
    index = train if isinstance(train, TrainIndex) else TrainIndex(train or ())
    value = kind.literal if paper and kind.literal else kind.value
    sides = []
    for both in pairing.pairs:
        right, found = ({item: value(mention, index) for item, mention in side.items()} for side in mentions(both))
        sides.append((right, {item: right.get(item, own) for item, own in found.items()}))

    if kind.categories:
        return [Label(name) for name in kind.categories], _counts(sides, kind.categories.index, len(kind.categories))
    limits = _limits(kind.published, cuts, [number for right, _ in sides for number in right.values()])
    edges = list(pairwise([None, *limits, None]))
    names = SIZES if cuts is None and kind.published else [_name(*edge) for edge in edges]
    labels = [Label(name, *edge) for name, edge in zip(names, edges, strict=True)]
    return labels, _counts(sides, lambda number: bisect_left(limits, number), len(labels))


def equal_cuts(values: Iterable[float], parts: int) -> list[float]:
    """The highest values of all but the last of ``parts`` buckets of equal size; fewer where equal values fill several.

    >>> equal_cuts([1, 1, 1, 2, 3, 4, 5, 9], 4), equal_cuts([1, 1, 1, 1, 1, 2], 3), equal_cuts([7, 7], 2)
    ([1, 2, 4], [1], [])
    """
    ordered = sorted(values)
    # The value that a share k / parts of the values does not exceed; nothing would be above the highest.
    quantiles = {ordered[-(-len(ordered) * k // parts) - 1] for k in range(1, parts)} if ordered else set()
    return sorted(quantile for quantile in quantiles if quantile < ordered[-1])


def _limits(published: Sequence[float], cuts: int | Sequence[float] | None, values: list[Any]) -> list[float]:
    if cuts is None and published:
        return list(published)
    if cuts is None or isinstance(cuts, int):
        parts = PARTS if cuts is None else cuts
        if parts < 1:
            raise SpanwiseError(f"expected one bucket or more, not {parts}")
        return equal_cuts(values, parts)
    if not all(map(math.isfinite, cuts)) or any(low >= high for low, high in pairwise(cuts)):
        raise SpanwiseError(f"cuts must be rising numbers, not {list(cuts)}")
    return list(cuts)


def _name(above: float | None, up_to: float | None) -> str:
    if above is None:
        return "all" if up_to is None else f"≤ {up_to:.4g}"
    return f"> {above:.4g}" if up_to is None else f"({above:.4g}, {up_to:.4g}]"


def _counts(
    sides: Iterable[tuple[Mapping[EntityItem, Any], Mapping[EntityItem, Any]]], bucket: Callable[[Any], int], buckets: int
) -> list[list[Counts]]:
    """For each bucket, the correct, predicted and gold entities of each sentence."""
    counts: list[list[Counts]] = [[] for _ in range(buckets)]
    for right, found in sides:
        support, predicted = (Counter(map(bucket, side.values())) for side in (right, found))
        correct = Counter(bucket(right[item]) for item in right.keys() & found.keys())
        for number, rows in enumerate(counts):
            rows.append((correct[number], predicted[number], support[number]))
    return counts


def total(counts: Iterable[Counts]) -> Score:
    """The score of all sentences together."""
    correct, predicted, support = map(sum, zip((0, 0, 0), *counts, strict=True))
    return Score(support, predicted, correct)
