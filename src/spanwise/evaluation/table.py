"""Print an evaluation as tables of percentages that fit 80 columns; narrower ones have fewer counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from spanwise.core.counting import counted
from spanwise.core.percentages import percent
from spanwise.core.terminal import escape_controls
from spanwise.evaluation.evaluation import Evaluation
from spanwise.evaluation.relations import RelationScores
from spanwise.evaluation.relaxed import RelaxedScore
from spanwise.evaluation.scores import Macro, Score, Scores, sum_scores

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

MAX_TYPES = 40  # rows of a table; the last row sums the remaining types
MAX_TYPE_ERRORS = 10
NAME_WIDTH = 24
MIN_NAME_WIDTH = 20  # below it, columns are removed
MIN_COLUMNS = 5  # the name, P, R, F1 and support


def print_evaluation(evaluation: Evaluation, console: Console) -> None:
    """Print the scores of types, averages and other scores, relations, and the most frequent type errors."""
    from rich.text import Text

    console.print(_fit(_entities(evaluation), console))
    if evaluation.interval is not None:
        low, high, level = evaluation.interval.low, evaluation.interval.high, evaluation.interval.level
        console.print(Text(f"{level:.0%} bootstrap interval of micro F1: {percent(low)} to {percent(high)}"))
    if evaluation.relations is not None:
        console.print()
        console.print(_fit(_relations(evaluation.relations), console))
    if type_errors := evaluation.confusion.type_errors:
        console.print(Text("\nwrong type on the same words:"))
        shown = len(type_errors) if len(type_errors) <= MAX_TYPE_ERRORS + 1 else MAX_TYPE_ERRORS  # the rest is at least two
        for gold, predicted, count in type_errors[:shown]:
            console.print(Text(f"  {count:,} × {display_name(gold)} predicted as {display_name(predicted)}"))
        if rest := type_errors[shown:]:
            total = sum(count for _, _, count in rest)
            console.print(Text(f"  {total:,} × {len(rest):,} other pairs of types"))
    if evaluation.calibration is not None:
        console.print(Text(f"\n{evaluation.calibration.line}"), soft_wrap=True)
    if evaluation.notes:
        console.print()
    for note in evaluation.notes:
        console.print(Text(escape_controls(f"note: {note}")), soft_wrap=True)


def _entities(evaluation: Evaluation) -> Table:
    table = _table(counted(evaluation.sentences, "sentence"))
    _add_types(table, evaluation.entities.types)
    _add_averages(table, evaluation.entities)
    _add(table, "unlabelled", evaluation.unlabelled)
    _add(table, "relaxed", evaluation.relaxed)
    if evaluation.discontinuous is not None:
        _add(table, "discontinuous", evaluation.discontinuous)
    if evaluation.nested is not None:
        _add(table, "nested", evaluation.nested)
    if evaluation.unseen is not None and evaluation.unseen.sentences:
        _add(table, counted(evaluation.unseen.sentences, "unseen sentence"), evaluation.unseen.score)
    return table


def _relations(relations: RelationScores) -> Table:
    table = _table("relations")
    _add_types(table, relations.strict.types)
    _add_averages(table, relations.strict)
    _add(table, "micro, boundaries only", relations.boundaries.micro)
    _add(table, "macro, boundaries only", relations.boundaries.macro)
    if relations.last_words is not None:
        _add(table, "micro, last words only", relations.last_words.micro)
        _add(table, "macro, last words only", relations.last_words.macro)
    return table


def _table(title: str) -> Table:
    return plain_table(title, "P", "R", "F1", "support", "predicted", "correct", width=NAME_WIDTH)


def _fit(table: Table, console: Console) -> Table:
    """Remove the last counts, which are the least important, if the table is too wide for the console."""
    names, unlimited = table.columns[0], console.options.update_width(1000)
    names.max_width = MIN_NAME_WIDTH
    while len(table.columns) > MIN_COLUMNS and console.measure(table, options=unlimited).maximum > console.width:
        table.columns.pop()
    names.max_width = NAME_WIDTH
    return table


def plain_table(title: str, *columns: str, width: int | None = None) -> Table:
    """Return an empty table with a column of names, at most ``width`` wide, and columns of numbers."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column(title, max_width=width, overflow="fold")
    for name in columns:
        table.add_column(name, justify="right", overflow="fold")  # wrap rather than truncate
    return table


def _add_types(table: Table, types: Mapping[str, Score]) -> None:
    rows = list(types.items())
    # The row of remaining types must sum at least two, otherwise it would save nothing.
    shown = len(rows) if len(rows) <= MAX_TYPES else MAX_TYPES - 1
    for type, score in rows[:shown]:
        _add(table, display_name(type), score)
    if rest := rows[shown:]:
        _add(table, f"({len(rest):,} other types)", sum_scores(score for _, score in rest))
    table.add_section()


def _add_averages(table: Table, scores: Scores) -> None:
    _add(table, "micro", scores.micro)
    _add(table, f"macro ({counted(scores.macro.types, 'type')})", scores.macro)


def _add(table: Table, name: str, score: Score | Macro) -> None:
    from rich.text import Text

    cells = [percent(score.precision), percent(score.recall), percent(score.f1)]
    if isinstance(score, Score):
        # The relaxed score has two counts of correct entities, in gold and in the predictions; the JSON has both.
        correct = "" if isinstance(score, RelaxedScore) else f"{score.correct:,}"
        cells += [f"{score.support:,}", f"{score.predicted:,}", correct]
    table.add_row(Text(name), *cells)


def display_name(type: str) -> str:
    """Return a type for display, with control characters escaped."""
    return type if type.isprintable() else repr(type)
