"""Analyse one system's predictions and write the results to a folder (``spanwise analyze``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from spanwise.analysis.calibration_section import calibration_section, relations_section
from spanwise.analysis.data_section import data_section, settings_section
from spanwise.analysis.difference_section import difference_section
from spanwise.analysis.error_browser import error_browser
from spanwise.analysis.prediction_sections import (
    buckets_section,
    confusion_section,
    errors_section,
    lengths_section,
    scores_section,
    typing_section,
)
from spanwise.analysis.report import HtmlSection, report
from spanwise.analysis.runs_section import runs_section
from spanwise.analysis.section import Section
from spanwise.analysis.writing import REPORT, check_output_folder, is_analysis, render_figures, write_files
from spanwise.core.errors import SpanwiseError
from spanwise.core.percentages import percent
from spanwise.core.types import Sentence
from spanwise.drawing import type_colours
from spanwise.evaluation import Evaluation, TrainIndex, evaluate
from spanwise.evaluation.errors import ErrorAnalysis, analyze_errors
from spanwise.evaluation.typing import TypingScores, score_typing
from spanwise.files.writing import atomic_output, open_output


@dataclass(frozen=True)
class AnalysisInput:
    """The predictions to analyse, their gold annotations, and optional context.

    ``name`` is the name of the system, ``data`` that of the gold data. ``train`` holds the training
    sentences, ``splits`` all data to describe, ``settings`` what to show in the last section, and
    ``other_systems`` the runs of other systems by name. Set ``is_typing`` for a model that types given
    spans. ``use_paper_definition`` computes attributes literally by the equations of Bundling Learning.
    ``model_sections`` are additional sections that need the model. ``notes`` are shown with the scores.
    ``more_runs`` are further runs of the same system on the same data, for means and deviations.
    """

    name: str
    data: str
    gold: Sequence[Sentence]
    predicted: Sequence[Sentence]
    train: Sequence[Sentence] | None = None
    splits: Mapping[str, Sequence[Sentence]] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    other_systems: Mapping[str, Sequence[Sequence[Sentence]]] = field(default_factory=dict)
    is_typing: bool = False
    finds_relations: bool = False
    use_paper_definition: bool = False
    model_sections: Sequence[Section] = ()
    notes: tuple[str, ...] = ()
    more_runs: Sequence[AnalysisInput] = ()

    @property
    def title(self) -> str:
        return f"{self.name} on {self.data}"


def analyze(data: AnalysisInput, out: str | Path) -> Path:
    """Write figures, tables, ``numbers.json`` and ``report.html`` to a folder; return the path of the report.

    The folder must be new, empty, or an earlier analysis, which is replaced. On failure nothing is
    written.
    """
    out = Path(out)
    check_output_folder(out)
    if not data.gold:
        raise SpanwiseError("there are no gold sentences to analyse")
    errors, evaluation = analyze_errors(data.gold, data.predicted), _evaluate(data)
    sections = _sections(data, evaluation, errors)
    headline = _headline_numbers(evaluation, errors)
    if data.more_runs:
        evaluations = [_evaluate(run) for run in data.more_runs]
        run_sections = [
            _run_sections(run, scores, analyze_errors(run.gold, run.predicted))
            for run, scores in zip(data.more_runs, evaluations, strict=True)
        ]
        sections.insert(0, runs_section([_run_sections(data, evaluation, errors), *run_sections]))
        headline = _mean_numbers([evaluation, *evaluations])
    with atomic_output(out, is_folder=True, may_replace=is_analysis) as folder:
        figures = render_figures(sections)
        write_files(folder, data.title, sections, figures)
        browser = HtmlSection("browser", "Sentences with errors", error_browser(errors, type_colours(sorted(_types(errors)))))
        position = 1 + next(index for index, section in enumerate(sections) if section.name == "errors")
        pages: list[Section | HtmlSection] = [*sections[:position], browser, *sections[position:]]
        with open_output(folder / REPORT) as file:
            file.write(report(data.title, headline, pages, figures))
    return out / REPORT


def build_sections(data: AnalysisInput) -> list[Section]:
    """Return the sections of one run, without writing anything; figures are drawn on demand."""
    return _sections(data, _evaluate(data), analyze_errors(data.gold, data.predicted))


def _evaluate(data: AnalysisInput) -> Evaluation | TypingScores:
    evaluation: Evaluation | TypingScores
    if data.is_typing:
        evaluation = score_typing(data.gold, data.predicted, data.train)
    else:
        evaluation = evaluate(data.gold, data.predicted, data.train, finds_relations=data.finds_relations)
    return replace(evaluation, notes=(*evaluation.notes, *data.notes))


def _sections(data: AnalysisInput, evaluation: Evaluation | TypingScores, errors: ErrorAnalysis) -> list[Section]:
    """The sections of the first run, with those on the data and on other systems."""
    gold = data.gold
    sections = _run_sections(data, evaluation, errors)
    if isinstance(evaluation, Evaluation) and data.other_systems:
        index = None if data.train is None else TrainIndex(data.train)
        runs = (data.name, [data.predicted, *(run.predicted for run in data.more_runs)])
        position = 1 + next(index for index, section in enumerate(sections) if section.name == "buckets")
        difference = difference_section(
            gold, data.other_systems, runs, index, use_paper_definition=data.use_paper_definition
        )  # fmt: skip
        sections.insert(position, difference)
    return [*sections, data_section(data.splits or {"gold": gold}), settings_section(data.settings)]


def _run_sections(data: AnalysisInput, evaluation: Evaluation | TypingScores, errors: ErrorAnalysis) -> list[Section]:
    """The sections on one run."""
    gold, predicted = data.gold, data.predicted
    sections = [scores_section(evaluation) if isinstance(evaluation, Evaluation) else typing_section(evaluation)]
    sections += [errors_section(errors), confusion_section(errors, _types(errors))]
    if isinstance(evaluation, Evaluation):
        index = None if data.train is None else TrainIndex(data.train)
        paper = data.use_paper_definition
        sections.append(buckets_section(gold, predicted, index, evaluation.f1, use_paper_definition=paper))
    relations = relations_section(gold, predicted)
    by_threshold = [calibration_section(gold, predicted), *([relations] if relations else [])]
    return [*sections, lengths_section(errors, gold), *by_threshold, *data.model_sections]


def _mean_numbers(evaluations: Sequence[Evaluation | TypingScores]) -> dict[str, str]:
    """The means and deviations of all runs."""

    def mean(values: Sequence[float]) -> str:
        return f"{percent(fmean(values))} ± {percent(stdev(values))}"

    first, of_runs = evaluations[0], f"mean of {len(evaluations)} runs"
    if isinstance(first, TypingScores):
        accuracies = [one.accuracy for one in evaluations if isinstance(one, TypingScores)]
        return {f"Accuracy, {of_runs}": mean(accuracies), "Entities": f"{first.overall.entities:,}"}
    runs = [one.entities for one in evaluations if isinstance(one, Evaluation)]
    return {
        f"Micro F1, {of_runs}": mean([run.micro.f1 for run in runs]),
        "Precision": mean([run.micro.precision for run in runs]),
        "Recall": mean([run.micro.recall for run in runs]),
        "Macro F1": mean([run.macro.f1 for run in runs]),
        "Gold entities": f"{first.entities.micro.support:,}",
        "Sentences": f"{first.sentences:,}",
    }


def _types(errors: ErrorAnalysis) -> list[str]:
    """Return all types, the most frequent in gold first."""
    support = {match.mention.type: 0 for match in errors.matches}
    for match in errors.matches:
        if match.gold:
            support[match.gold.type] = support.get(match.gold.type, 0) + 1
    return sorted(support, key=lambda name: (-support[name], name))


def _headline_numbers(evaluation: Evaluation | TypingScores, errors: ErrorAnalysis) -> dict[str, str]:
    if isinstance(evaluation, TypingScores):
        return {"Accuracy": percent(evaluation.accuracy), "Entities": f"{evaluation.overall.entities:,}"}
    micro, interval = evaluation.entities.micro, evaluation.interval
    numbers = {"Micro F1": percent(micro.f1)}
    if interval is not None:
        numbers[f"{interval.level:.0%} interval"] = f"{100 * interval.low:.1f}–{100 * interval.high:.1f}"
    return numbers | {
        "Precision": percent(micro.precision),
        "Recall": percent(micro.recall),
        "Macro F1": percent(evaluation.entities.macro.f1),
        "Gold entities": f"{micro.support:,}",
        "Errors": f"{len(errors.errors):,}",
        "Sentences": f"{evaluation.sentences:,}",
    }
