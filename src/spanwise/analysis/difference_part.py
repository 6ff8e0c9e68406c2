"""Systems less a standard one: where each is better (after Tables 6 and 7 of Bundling Learning for NER)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from spanwise.analysis.figures.buckets import bucket_range
from spanwise.analysis.figures.difference import Panel, difference_figure
from spanwise.analysis.part import Cell, Part, Table
from spanwise.analysis.prediction_parts import TITLES, asked_attributes
from spanwise.core.types import Sentence
from spanwise.evaluation.bootstrap import FEWEST
from spanwise.evaluation.buckets import PARTS
from spanwise.evaluation.differences import BucketDifference, bucket_differences, error_differences, mean_rates
from spanwise.evaluation.errors import errors
from spanwise.evaluation.judging import MISTAKES
from spanwise.evaluation.pairing import pair
from spanwise.evaluation.train_index import TrainIndex

Runs = Sequence[Sequence[Sentence]]  # what one run of a system predicted, or each of several
Differences = Mapping[str, Mapping[str, list[BucketDifference]]]  # of each system, by attribute


def difference_part(
    gold: Sequence[Sentence], systems: Mapping[str, Runs], standard: tuple[str, Runs], train: TrainIndex | None = None
) -> Part:
    """Each of the systems less the standard one, all on the same gold."""
    name, _ = standard
    paired = {system: [pair(gold, run) for run in runs] for system, runs in (*systems.items(), standard)}
    published, equal = asked_attributes(train)
    with_cuts = {
        system: {one: bucket_differences(gold, paired[system], paired[name], train, attribute=one) for one in published}
        for system in systems
    }
    of_equal_size = {
        system: {one: bucket_differences(gold, paired[system], paired[name], train, attribute=one, cuts=PARTS) for one in equal}
        for system in systems
    }
    mistakes = {system: [errors(gold, run) for run in runs] for system, runs in paired.items()}
    rates = {system: error_differences(mistakes[system], mistakes[name]) for system in systems}
    means = {system: mean_rates(runs) for system, runs in mistakes.items()}
    text = (
        f"{', '.join(systems)} less {name}: F1 in percent points in each bucket of each attribute, with the published cuts and "
        f"in buckets of equal size, and rates of mistakes over all false positives and negatives. Blue is where {name} is "
        "worse, red where it is better. A difference whose interval (in the tables) holds 0 may be luck, and so "
        f"may one without an interval, where fewer than {FEWEST} sentences have entities."
    )
    for system in systems:
        if most := max(len(run.missing) for run in paired[system]):
            text += f" {system} has nothing for {most:,} of the {len(gold):,} sentences: their entities count as missed."
    columns = ("system", "kind", "rate", "standard_rate", "difference")
    tables = {
        "published": _table(with_cuts),
        "equal": _table(of_equal_size),
        "errors": Table(
            columns,
            tuple((one, kind, means[one][kind], means[name][kind], rates[one][kind]) for one in systems for kind in MISTAKES),
        ),
    }
    kinds = {"mistakes over all that is wrong": (MISTAKES, {one: list(rates[one].values()) for one in systems})}
    drawn = {"published": _panels(with_cuts), "equal": _panels(of_equal_size)}
    figures = {which: partial(difference_figure, panels) for which, panels in drawn.items() if panels}
    figures["errors"] = partial(difference_figure, kinds, more_is_better=False)
    return Part("difference", "Other systems less this one", text, tables, figures)


def _panels(systems: Differences) -> dict[str, Panel]:
    """A panel for each attribute of which two buckets or more have gold entities."""
    panels: dict[str, Panel] = {}
    for attribute, buckets in next(iter(systems.values())).items():
        if sum(bool(bucket.support) for bucket in buckets) > 1:
            rows = {
                name: [bucket.difference if bucket.support else None for bucket in own[attribute]]
                for name, own in systems.items()
            }
            panels[TITLES[attribute]] = ([bucket_range(bucket) for bucket in buckets], rows)
    return panels


def _table(systems: Differences) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for system, attributes in systems.items():
        for attribute, buckets in attributes.items():
            for bucket in buckets:
                low, high = (bucket.interval.low, bucket.interval.high) if bucket.interval else (None, None)
                place = (system, attribute, bucket.name, bucket.above, bucket.up_to, bucket.support)
                rows.append((*place, bucket.ones.mean, bucket.others.mean, bucket.difference, low, high))
    columns = ("system", "attribute", "bucket", "above", "up_to", "support", "f1", "standard_f1", "difference", "low", "high")
    return Table(columns, tuple(rows))
