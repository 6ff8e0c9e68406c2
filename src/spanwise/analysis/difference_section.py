"""Differences between other systems and the analysed one (after Bundling Learning for NER, Tables 6 and 7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import fmean

from spanwise.analysis.figures.buckets import bucket_range
from spanwise.analysis.figures.difference import Panel, difference_figure
from spanwise.analysis.prediction_sections import PAPER_ATTRIBUTES, TITLES, bucket_attributes
from spanwise.analysis.section import Cell, Plot, Section, Table
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.evaluation.bootstrap import MIN_UNITS
from spanwise.evaluation.buckets import DEFAULT_BUCKETS
from spanwise.evaluation.differences import (
    OVERLAP_RATES,
    BucketDifference,
    bucket_differences,
    error_rates,
    paired_deviation,
)
from spanwise.evaluation.errors import analyze_errors
from spanwise.evaluation.matching import ERROR_TYPES
from spanwise.evaluation.pairing import pair
from spanwise.evaluation.train_index import TrainIndex

Runs = Sequence[Sequence[Sentence]]  # the predictions of each run of a system
Differences = Mapping[str, Mapping[str, list[BucketDifference]]]  # by system and attribute

BUCKET_COLUMNS = (
    "system", "attribute", "bucket", "above", "up_to", "support", "f1", "baseline_f1", "difference", "deviation", "low",
    "high",
)  # fmt: skip
ERROR_COLUMNS = ("system", "error_type", "rate", "baseline_rate", "difference", "deviation")


def difference_section(
    gold: Sequence[Sentence], systems: Mapping[str, Runs], baseline: tuple[str, Runs], train: TrainIndex | None = None,
    *, use_paper_definition: bool = False,
) -> Section:  # fmt: skip
    """Compare each system with the baseline on the same gold data."""
    name, _ = baseline
    if name in systems:
        raise SpanwiseError(f"two systems are named {name!r}; rename one of them")
    paired = {system: [pair(gold, run) for run in runs] for system, runs in (*systems.items(), baseline)}
    published_attributes, numeric_attributes = bucket_attributes(train)

    def differences(attributes: Sequence[str], cuts: int | None = None) -> Differences:
        return {
            system: {
                attribute: bucket_differences(
                    gold,
                    paired[system],
                    paired[name],
                    train,
                    attribute=attribute,
                    cuts=cuts,
                    use_paper_definition=use_paper_definition,
                )
                for attribute in attributes
            }
            for system in systems
        }

    published, equal = differences(published_attributes), differences(numeric_attributes, DEFAULT_BUCKETS)
    analyses = {system: [analyze_errors(gold, run) for run in runs] for system, runs in paired.items()}
    rates_of_runs = {system: [error_rates(run) for run in runs] for system, runs in analyses.items()}
    rates = {system: {type: [run[type] for run in runs] for type in runs[0]} for system, runs in rates_of_runs.items()}
    means = {system: {type: fmean(values) for type, values in of_system.items()} for system, of_system in rates.items()}
    text = (
        f"F1 of {', '.join(systems)} minus F1 of {name}, in percentage points, for groups of entities. A difference may be due "
        f"to chance if its 95% interval (see the tables) contains 0, or if it has none because fewer than {MIN_UNITS} "
        "sentences have such entities. Of the error rates, BE-Rate and TE-Rate are counted as published (Bundling Learning "
        "for NER, Table 7): wrong predictions that overlap any gold entity with other boundaries, or have its boundaries and "
        "another type. The others match each wrong prediction with one missed entity. The column deviation is the standard "
        "deviation of the differences of runs, paired in order."
    )
    text += PAPER_ATTRIBUTES if use_paper_definition else ""
    for system in systems:
        if missing := max(len(run.missing) for run in paired[system]):
            text += (
                f" {system} has no predictions for {missing:,} of the {len(gold):,} sentences; their entities count as missed."
            )
    error_rows = tuple(
        (system, type, rate, means[name][type], rate - means[name][type], paired_deviation(rates[system][type], base))
        for system in systems
        for (type, rate), base in zip(means[system].items(), rates[name].values(), strict=True)
    )
    tables = {
        "published": _table(published, "Published buckets"),
        "equal": _table(equal, "Buckets of equal size"),
        "errors": Table(ERROR_COLUMNS, error_rows, "Error rates", percentages=ERROR_COLUMNS[2:]),
    }
    reading = f"Blue: better than {name}; red: worse."
    captions = {
        "published": f"Difference in F1 in the published buckets of each attribute. {reading} “–”: no gold entities.",
        "equal": f"Difference in F1 in buckets with equal numbers of gold entities. {reading}",
    }
    panels = {"published": _panels(published), "equal": _panels(equal)}
    figures = {key: Plot(partial(difference_figure, panels[key]), captions[key]) for key in panels if panels[key]}
    error_panels: dict[str, Panel] = {
        title: (list(types), {system: [means[system][type] - means[name][type] for type in types] for system in systems})
        for title, types in (("matched with missed entities", ERROR_TYPES), ("as published: any overlap", OVERLAP_RATES))
    }
    figures["errors"] = Plot(
        partial(difference_figure, error_panels, is_higher_better=False),
        "Difference in the rate of each error type, in percentage points of all false positives and negatives. Blue: lower "
        f"than {name}; red: higher.",
    )
    return Section("difference", "Comparison with other systems", text, tables, figures)


def _panels(systems: Differences) -> dict[str, Panel]:
    """Return a panel for each attribute with gold entities in at least two buckets."""
    panels: dict[str, Panel] = {}
    for attribute, buckets in next(iter(systems.values())).items():
        if sum(bool(bucket.support) for bucket in buckets) > 1:
            rows = {
                name: [bucket.difference if bucket.support else None for bucket in attributes[attribute]]
                for name, attributes in systems.items()
            }
            panels[TITLES[attribute]] = ([bucket_range(bucket) for bucket in buckets], rows)
    return panels


def _table(systems: Differences, title: str) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for system, attributes in systems.items():
        for attribute, buckets in attributes.items():
            for bucket in buckets:
                low, high = (bucket.interval.low, bucket.interval.high) if bucket.interval else (None, None)
                key = (system, attribute, bucket.name, bucket.above, bucket.up_to, bucket.support)
                rows.append((*key, bucket.first.mean, bucket.second.mean, bucket.difference, bucket.deviation, low, high))
    return Table(BUCKET_COLUMNS, tuple(rows), title, percentages=BUCKET_COLUMNS[6:])
