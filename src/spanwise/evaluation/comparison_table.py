"""Print a comparison of systems as tables of percentages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from spanwise.core.counting import counted
from spanwise.core.percentages import percent
from spanwise.core.terminal import escape_controls
from spanwise.evaluation.bootstrap import MIN_UNITS
from spanwise.evaluation.comparison import SystemPair, SystemsComparison
from spanwise.evaluation.differences import BucketDifference, paired_deviation
from spanwise.evaluation.table import display_name, plain_table

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_OVERLAP_NOTE = (
    "BE-Rate, TE-Rate: as published (Bundling Learning, Table 7), wrong predictions that overlap any gold entity with other "
    "boundaries, or have its boundaries and another type; the columns before match each of them with one missed entity"
)


def print_comparison(result: SystemsComparison, console: Console, *, with_errors: bool = False) -> None:
    """Print the systems, their pairs and their combination, then error types and buckets if requested."""
    console.print(_systems(result))
    for name, count in result.missing_sentences.items():
        note = (
            f"note: {name} has no predictions for {count:,} of {result.sentences:,} sentences; their entities count as missed"
        )
        console.print(escape_controls(note), markup=False, highlight=False, soft_wrap=True)
    for systems in result.pairs:
        console.print()
        for line in _lines(systems, result.sentences):
            console.print(escape_controls(line), markup=False, highlight=False, soft_wrap=True)
    console.print()
    console.print(_combined(result))
    if with_errors:
        console.print()
        console.print(_errors(result))
        console.print(_OVERLAP_NOTE, markup=False, highlight=False, soft_wrap=True)
    for attribute, differences in result.buckets.items():
        console.print()
        console.print(_buckets(attribute, differences, next(iter(result.systems))))
    if result.buckets:
        note = f"* the 95% interval of the difference excludes 0 (computed for at least {MIN_UNITS} sentences with entities)"
        console.print(note, highlight=False, soft_wrap=True)


def _systems(result: SystemsComparison) -> Table:
    table = plain_table(counted(result.sentences, "sentence"), "P", "R", "F1", "± sd", "runs")
    for name, system in result.systems.items():
        runs = system.runs
        deviation = "" if runs.deviation is None else percent(runs.deviation)
        _add(table, name, *map(percent, (system.precision, system.recall, runs.mean)), deviation, str(len(runs.f1)))
    return table


def _lines(systems: SystemPair, sentences: int) -> list[str]:
    first, second, test, agreement = systems.first, systems.second, systems.test, systems.agreement

    def mean(count: int) -> str:
        """Counts are sums over runs."""
        return f"{count / agreement.runs:,.1f}".removesuffix(".0")

    is_resegmented = test.units < sentences
    if test.interval is None:
        interval = f"no interval: fewer than {MIN_UNITS} {'units' if is_resegmented else 'sentences'} with entities"
    else:
        interval = f"{test.interval.level:.0%} interval {_signed(test.interval.low)} to {_signed(test.interval.high)}"
    bootstrap = "" if test.bootstrap_p is None else f"{test.bootstrap_p:.4f} (bootstrap), "
    units = f"  units tested: {test.units:,} (sentences that a system splits differently are joined)"
    entities = "entity" if agreement.support == agreement.runs else "entities"
    first_share, second_share = map(percent, agreement.complementarity)
    return [
        f"{first} minus {second}: F1 {_signed(test.difference)} ({interval}), "
        f"p = {bootstrap}{test.randomisation_p:.4f} (randomisation)",
        *([units] if is_resegmented else []),
        f"  {mean(agreement.support)} gold {entities}: {mean(agreement.both)} found by both, "
        f"{mean(agreement.only_first.count)} by {first} only, {mean(agreement.only_second.count)} by {second} only, "
        f"{mean(agreement.neither)} by neither",
        f"  {first} finds {first_share}% of the entities that {second} misses, {second} finds {second_share}% of those that "
        f"{first} misses",
        f"  agreement {percent(agreement.agreement)}% F1, wrong predictions in common: {mean(agreement.shared_errors)}",
    ]


def _combined(result: SystemsComparison) -> Table:
    table = plain_table("combined", "P", "R", "F1")
    rows = (
        ("union", result.combined.union),
        ("intersection", result.combined.intersection),
        ("oracle", result.combined.oracle),
    )
    for name, score in rows:
        _add(table, name, *map(percent, (score.precision, score.recall, score.f1)))
    return table


def _errors(result: SystemsComparison) -> Table:
    """Error rates of the first system, and the differences of the others to it; of several runs with deviations."""
    rates = {name: [[run[type] for run in system.rates] for type in system.rates[0]] for name, system in result.systems.items()}
    (first, baseline), *others = rates.items()
    table = plain_table("% of FP + FN", *result.systems[first].rates[0])
    deviations = [stdev(runs) if len(runs) > 1 else None for runs in baseline]
    _add_rates(table, first, [percent(fmean(runs)) for runs in baseline], deviations)
    for name, system in others:
        pairs = list(zip(system, baseline, strict=True))
        cells = [_signed(fmean(runs) - fmean(base_runs)) for runs, base_runs in pairs]
        _add_rates(table, f"{name} minus {first}", cells, [paired_deviation(*pair) for pair in pairs])
    return table


def _add_rates(table: Table, name: str, cells: Sequence[str], deviations: Sequence[float | None]) -> None:
    _add(table, name, *cells)
    if None not in deviations:
        _add(table, "  ± sd", *(percent(value) for value in deviations if value is not None))


def _buckets(attribute: str, differences: Mapping[str, tuple[BucketDifference, ...]], first: str) -> Table:
    """F1 of the first system, and the differences of the others to it; a dash for buckets without gold entities."""
    buckets = next(iter(differences.values()))
    table = plain_table(f"F1 by {attribute}", *(bucket.name for bucket in buckets))
    _add(table, "support", *(f"{bucket.support:,}" for bucket in buckets))
    scores = (percent(b.second.mean) + _plus_minus(b.second.deviation) if b.support else "–" for b in buckets)
    _add(table, first, *scores)
    for name, system_buckets in differences.items():
        _add(table, f"{name} minus {first}", *(_difference(b) if b.support else "–" for b in system_buckets))
    return table


def _difference(bucket: BucketDifference) -> str:
    is_significant = bucket.interval is not None and not bucket.interval.low <= 0 <= bucket.interval.high
    return _signed(bucket.difference) + ("*" if is_significant else "") + _plus_minus(bucket.deviation)


def _add(table: Table, name: str, *cells: str) -> None:
    from rich.text import Text

    table.add_row(Text(display_name(name)), *cells)


def _plus_minus(deviation: float | None) -> str:
    return "" if deviation is None else f" ± {percent(deviation)}"


def _signed(share: float) -> str:
    return f"{100 * share:+.2f}"
