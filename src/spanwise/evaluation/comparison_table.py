"""A comparison of systems for people to read: percents in tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from spanwise.evaluation.bootstrap import FEWEST
from spanwise.evaluation.comparison import Duel, SystemsComparison
from spanwise.evaluation.differences import BucketDifference
from spanwise.evaluation.judging import MISTAKES
from spanwise.evaluation.table import percent, plain_table, shown_name

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def print_comparison(result: SystemsComparison, console: Console, *, with_errors: bool = False) -> None:
    """The systems, each pair of them, all together; then the kinds of mistakes and the buckets where they were asked for."""
    console.print(_systems(result))
    for name, count in result.missing.items():
        note = f"note: {name} has nothing for {count:,} of the sentences: their entities count as missed"
        console.print(note, markup=False, highlight=False, soft_wrap=True)
    for duel in result.duels:
        console.print()
        for line in _lines(duel, result.sentences):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    console.print()
    console.print(_together(result))
    if with_errors:
        console.print()
        console.print(_errors(result))
    for attribute, differences in result.buckets.items():
        console.print()
        console.print(_buckets(attribute, differences, next(iter(result.systems))))
    if result.buckets:
        note = f"* the 95 % interval of the difference leaves out 0; it takes {FEWEST} sentences with entities"
        console.print(note, highlight=False, soft_wrap=True)


def _systems(result: SystemsComparison) -> Table:
    table = plain_table(f"{result.sentences:,} sentences", "P", "R", "F1", "± sd", "runs")
    for name, system in result.systems.items():
        runs = system.runs
        deviation = "" if runs.deviation is None else percent(runs.deviation)
        _add(table, name, *map(percent, (system.precision, system.recall, runs.mean)), deviation, str(len(runs.f1)))
    return table


def _lines(duel: Duel, sentences: int) -> list[str]:
    test, own = duel.test, duel.agreement

    def mean(count: int) -> str:
        """Counts are sums over runs."""
        return f"{count / own.runs:,.1f}".removesuffix(".0")

    is_recut = test.sentences < sentences
    if test.interval is None:
        interval = f"no interval from fewer than {FEWEST} {'units' if is_recut else 'sentences'} with entities"
    else:
        interval = f"{test.interval.level:.0%} interval {_signed(test.interval.low)} to {_signed(test.interval.high)}"
    bootstrap = "" if test.bootstrap_p is None else f"{test.bootstrap_p:.4f} (bootstrap), "
    units = f"  units that are drawn and exchanged: {test.sentences:,}; sentences that a system cuts elsewhere are one"
    first, second = own.complementarity
    return [
        f"{duel.one} less {duel.other}: F1 {_signed(test.difference)} ({interval}), "
        f"p = {bootstrap}{test.randomisation_p:.4f} (randomisation)",
        *([units] if is_recut else []),
        f"  of {mean(own.support)} entities are found: {mean(own.both)} by both, "
        f"{mean(own.one_alone.count)} by {duel.one} alone, {mean(own.other_alone.count)} by {duel.other} alone, "
        f"{mean(own.neither)} by neither",
        f"  {duel.one} finds {percent(first)} % of what {duel.other} misses, the other way round {percent(second)} %; "
        f"they agree to {percent(own.agreement)} %, and in {mean(own.same_wrong)} wrong predictions",
    ]


def _together(result: SystemsComparison) -> Table:
    table = plain_table("together", "P", "R", "F1")
    rows = (
        ("all they predict", result.together.union),
        ("what all predict", result.together.common),
        ("oracle: what is right", result.together.oracle),
    )
    for name, score in rows:
        _add(table, name, *map(percent, (score.precision, score.recall, score.f1)))
    return table


def _errors(result: SystemsComparison) -> Table:
    """The rates of the first system, and how much the others' differ."""
    table = plain_table("% of FP + FN", *MISTAKES)
    (first, standard), *others = result.systems.items()
    _add(table, first, *(percent(standard.errors[kind]) for kind in MISTAKES))
    for name, system in others:
        _add(table, f"{name} less {first}", *(_signed(system.errors[kind] - standard.errors[kind]) for kind in MISTAKES))
    return table


def _buckets(attribute: str, differences: Mapping[str, tuple[BucketDifference, ...]], first: str) -> Table:
    standard = next(iter(differences.values()))
    table = plain_table(f"F1 by {attribute}", *(bucket.name for bucket in standard))
    _add(table, "support", *(f"{bucket.support:,}" for bucket in standard))
    _add(table, first, *(percent(bucket.others.mean) for bucket in standard))
    for name, own in differences.items():
        cells = []
        for bucket in own:
            is_sure = bucket.interval is not None and not bucket.interval.low <= 0 <= bucket.interval.high
            cells.append(_signed(bucket.difference) + ("*" if is_sure else ""))
        _add(table, f"{name} less {first}", *cells)
    return table


def _add(table: Table, name: str, *cells: str) -> None:
    from rich.text import Text

    table.add_row(Text(shown_name(name)), *cells)


def _signed(share: float) -> str:
    return f"{100 * share:+.2f}"
