"""Learning curves of a strategy and of random choice, and a report that compares them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from spanwise.active_learning.simulate import Round, Simulation
from spanwise.analysis.report import report
from spanwise.analysis.section import Plot, Section, Table
from spanwise.analysis.writing import REPORT, is_analysis, render_figures, write_files
from spanwise.core.counting import counted
from spanwise.core.errors import SpanwiseError
from spanwise.core.percentages import percent
from spanwise.files.writing import atomic_output, open_output

RANDOM = "random"
TARGET = 0.95  # share of the F1 with all sentences at which a curve ends


@dataclass(frozen=True)
class Curve:
    """The rounds of one simulation; ``whole`` is a model that is trained on all sentences of the pool."""

    strategy: str
    seed: int
    split: str
    rounds: Sequence[Round]
    whole: Round

    @property
    def target(self) -> float:
        return TARGET * self.whole.f1[self.split]

    @property
    def needed(self) -> Round | None:
        """The first round that reaches the target; None if none does."""
        return next((row for row in self.rounds if row.f1[self.split] >= self.target), None)


def simulate_curves(
    simulation: Simulation, seeds: Iterable[int], *, limit: int | None = None, log: Callable[[str], None] = print
) -> list[Curve]:
    """Simulate the strategy and random choice with each seed, until they reach the target or ``limit`` sentences."""
    split = "test" if "test" in simulation.corpus else "dev"
    simulation.draw_first()  # reports unknown types and missing annotations before anything is trained
    curves = []
    for seed in seeds:
        training = simulation.config.training.model_copy(update={"seed": seed})
        seeded = replace(simulation, config=simulation.config.model_copy(update={"training": training}))
        whole = seeded.run_whole()
        if not whole.f1[split]:
            raise SpanwiseError(
                f"the model that is trained on all {counted(whole.sentences, 'sentence')} has an F1 of 0 on {split}, so there "
                "is no target; train longer (--epochs), or use another recipe or encoder"
            )
        log(f"seed {seed}: {split} F1 {percent(whole.f1[split])} with all {counted(whole.sentences, 'sentence')}")
        for strategy in dict.fromkeys((simulation.criteria.strategy, RANDOM)):
            preferred = simulation.criteria.preferred if strategy != RANDOM else {}
            criteria = replace(simulation.criteria, strategy=strategy, seed=seed, preferred=preferred)
            rounds: list[Round] = []
            curves.append(Curve(strategy, seed, split, rounds, whole))
            for row in replace(seeded, criteria=criteria).run(limit):
                rounds.append(row)
                log(f"seed {seed}, {strategy}: {split} F1 {percent(row.f1[split])} with {counted(row.sentences, 'sentence')}")
                if row.f1[split] >= curves[-1].target:
                    break
    return curves


def mean_needed(curves: Iterable[Curve], strategy: str) -> float | None:
    """The mean number of sentences that a strategy needs; None if a seed does not reach the target."""
    needed = [curve.needed for curve in curves if curve.strategy == strategy]
    return fmean(row.sentences for row in needed if row is not None) if needed and None not in needed else None


def summarize(curves: Sequence[Curve]) -> str:
    """One sentence on the result."""
    strategy, seeds = curves[0].strategy, len({curve.seed for curve in curves})
    ours, other = mean_needed(curves, strategy), mean_needed(curves, RANDOM)
    mean = f" (mean of {seeds} seeds)" if seeds > 1 else ""
    needs = f"To reach {TARGET:.0%} of the {curves[0].split} F1 with all sentences{mean}, {strategy} needs"
    if ours is None:
        return f"{needs} more sentences than were simulated."
    if other is None:
        return f"{needs} {ours:,.0f} sentences and random choice more than were simulated."
    return f"{needs} {ours:,.0f} sentences and random choice {other:,.0f} ({ours / other:.0%})."


def curve_section(curves: Sequence[Curve]) -> Section:
    """The curves as tables and as a figure."""
    from spanwise.active_learning.curve_figure import curve_figure

    split = curves[0].split
    rows = tuple(
        (curve.strategy, curve.seed, row.sentences, row.words, row.entities, row.f1[split])
        for curve in curves
        for row in curve.rounds
    )
    needed = tuple(
        (
            curve.strategy, curve.seed, curve.whole.f1[split], curve.target,
            curve.needed.sentences if curve.needed else None, curve.needed.words if curve.needed else None,
        )
        for curve in curves
    )  # fmt: skip
    tables = {
        "needed": Table(
            ("strategy", "seed", "F1 with all sentences", "target F1", "sentences", "words"),
            needed,
            "Sentences to the target",
            percentages=("F1 with all sentences", "target F1"),
        ),
        "rounds": Table(
            ("strategy", "seed", "sentences", "words", "entities", f"{split} F1"),
            rows,
            "All rounds",
            percentages=(f"{split} F1",),
        ),
    }
    caption = (
        f"{split} F1 by the number of annotated sentences; a thin line per seed, the thick line is their mean as far as all "
        f"seeds go. The dashed line is {TARGET:.0%} of the F1 with all sentences: the curve that crosses it further left "
        "needs fewer annotations."
    )
    return Section(
        "learning", "Learning curve", summarize(curves), tables, {"curve": Plot(lambda: curve_figure(curves), caption)}
    )


def write_curves(curves: Sequence[Curve], out: Path, title: str) -> Path:
    """Write the report, the figure, tables and ``numbers.json`` to a folder; return the path of the report."""
    section = curve_section(curves)
    headline = {
        f"Sentences, {strategy}": "not reached" if (mean := mean_needed(curves, strategy)) is None else f"{mean:,.0f}"
        for strategy in dict.fromkeys(curve.strategy for curve in curves)
    }
    with atomic_output(out, is_folder=True, may_replace=is_analysis) as folder:
        figures = render_figures([section])
        write_files(folder, title, [section], figures)
        with open_output(folder / REPORT) as file:
            file.write(report(title, headline, [section], figures))
    return out / REPORT
