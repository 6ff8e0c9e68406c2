"""``spanwise analyze``: everything that can be said about one system's output, in one folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from spanwise.analysis.calibration import calibration_part
from spanwise.analysis.data_part import data_part, settings_part
from spanwise.analysis.difference_part import difference_part
from spanwise.analysis.error_browser import error_browser
from spanwise.analysis.part import Part
from spanwise.analysis.prediction_parts import (
    buckets_part,
    confusion_part,
    errors_part,
    lengths_part,
    scores_part,
    typing_part,
)
from spanwise.analysis.report import Section, report
from spanwise.analysis.writing import REPORT, check_folder, draw, is_analysis, write_files
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.drawing import type_colours
from spanwise.evaluation import Evaluation, TrainIndex, evaluate
from spanwise.evaluation.errors import Errors, errors
from spanwise.evaluation.typing import Typing, typing_scores
from spanwise.files.writing import atomic_output, writing


@dataclass(frozen=True)
class Subject:
    """What is analysed: ``gold`` sentences of some ``data``, and the same as the system called ``name`` ``predicted`` them.

    ``train`` are the training sentences, where they are known, and ``splits`` all the data there is to describe.
    ``settings`` are shown as they are. ``against`` are the runs of other systems, by name. A model that types
    given spans is judged by that (``given_spans``). ``more`` are the parts that only a model can give, ``notes`` what a
    reader of the scores must know.
    """

    name: str
    data: str
    gold: Sequence[Sentence]
    predicted: Sequence[Sentence]
    train: Sequence[Sentence] | None = None
    splits: Mapping[str, Sequence[Sentence]] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    against: Mapping[str, Sequence[Sequence[Sentence]]] = field(default_factory=dict)
    given_spans: bool = False
    finds_relations: bool = False
    more: Sequence[Part] = ()
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return f"{self.name} on {self.data}"


def analyze(subject: Subject, out: str | Path) -> Path:
    """Write figures, tables, ``numbers.json`` and ``report.html`` to a folder, whole or not at all; gives the report's path.

    The folder may be new, empty, or an earlier analysis, which is replaced.
    """
    out = Path(out)
    check_folder(out)
    if not subject.gold:
        raise SpanwiseError("there are no gold sentences to analyse")
    found = errors(subject.gold, subject.predicted)
    evaluation: Evaluation | Typing
    if subject.given_spans:
        evaluation = typing_scores(subject.gold, subject.predicted, subject.train)
    else:
        evaluation = evaluate(subject.gold, subject.predicted, subject.train, finds_relations=subject.finds_relations)
    evaluation = replace(evaluation, notes=(*evaluation.notes, *subject.notes))
    parts = _parts(subject, evaluation, found)
    with atomic_output(out, folder=True, over=is_analysis) as folder:
        drawn = draw(parts)
        write_files(folder, subject.title, parts, drawn)
        browser = Section("browser", "Every sentence with a mistake", error_browser(found, type_colours(_types(found))))
        at = 1 + next(number for number, part in enumerate(parts) if part.name == "errors")
        with writing(folder / REPORT) as file:
            file.write(report(subject.title, _cards(evaluation, found), [*parts[:at], browser, *parts[at:]], drawn))
    return out / REPORT


def _parts(subject: Subject, evaluation: Evaluation | Typing, found: Errors) -> list[Part]:
    gold, predicted = subject.gold, subject.predicted
    parts = [scores_part(evaluation) if isinstance(evaluation, Evaluation) else typing_part(evaluation)]
    parts += [errors_part(found), confusion_part(found, _types(found))]
    if isinstance(evaluation, Evaluation):
        index = None if subject.train is None else TrainIndex(subject.train)
        parts.append(buckets_part(gold, predicted, index, evaluation.f1))
        if subject.against:
            parts.append(difference_part(gold, subject.against, (subject.name, [predicted]), index))
    parts += [lengths_part(found, gold), calibration_part(gold, predicted), *subject.more]
    return [*parts, data_part(subject.splits or {"gold": gold}), settings_part(subject.settings)]


def _types(found: Errors) -> list[str]:
    """All types, the commonest of gold first."""
    support = {type: 0 for judgement in found.judgements for type in (judgement.claim.type,)}
    for judgement in found.judgements:
        if judgement.gold:
            support[judgement.gold.type] = support.get(judgement.gold.type, 0) + 1
    return sorted(support, key=lambda name: (-support[name], name))


def _cards(evaluation: Evaluation | Typing, found: Errors) -> dict[str, str]:
    """The few numbers to see first."""
    if isinstance(evaluation, Typing):
        return {"Accuracy": f"{100 * evaluation.accuracy:.2f}", "Entities": f"{evaluation.every.entities:,}"}
    micro, interval = evaluation.entities.micro, evaluation.interval
    cards = {"Micro F1": f"{100 * micro.f1:.2f}"}
    if interval is not None:
        cards[f"{interval.level:.0%} interval"] = f"{100 * interval.low:.1f}–{100 * interval.high:.1f}"
    return cards | {
        "Precision": f"{100 * micro.precision:.2f}",
        "Recall": f"{100 * micro.recall:.2f}",
        "Macro F1": f"{100 * evaluation.entities.macro.f1:.2f}",
        "Entities in gold": f"{micro.support:,}",
        "Mistakes": f"{len(found.mistakes):,}",
        "Sentences": f"{evaluation.sentences:,}",
    }
