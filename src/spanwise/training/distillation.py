"""Distillation: a student learns from gold and from the probabilities of trained models, its teachers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from spanwise.config.settings import iter_sections
from spanwise.core.counting import join_names
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Corpus, Sentence
from spanwise.heads import head_values
from spanwise.heads.abilities import LearnsProbabilities, find_ability
from spanwise.heads.base import Labels
from spanwise.losses.teaching import TaughtSentence, teach_open_spans
from spanwise.models.model import Model, predicts_relations, read_labels, require_model
from spanwise.prediction.load import model_folder
from spanwise.runs.folder import RunFolder
from spanwise.training.checks import MAX_LISTED
from spanwise.training.data import unlabelled_sentences
from spanwise.training.supervision import Supervision
from spanwise.training.teacher_outputs import TeacherOutputs, is_short
from spanwise.training.teachers import MIN_VOTE, Opinion


def find_teachers(sources: Iterable[str | Path], recorded: Iterable[str] = ()) -> tuple[Path, ...]:
    """The model folders of teachers; of a folder of several runs, all of them.

    A resumed run does not need its ``recorded`` teachers any more, so their folders may be missing.
    """
    known = [Path(folder) for folder in recorded]
    folders: list[Path] = []
    for source in sources:
        folder = Path(source).absolute()
        missing = [] if folder.exists() else [teacher for teacher in known if folder in (teacher, *teacher.parents)]
        if not missing:
            folder = model_folder(source).absolute()
            runs = [] if RunFolder(folder).has_model else RunFolder(folder).runs()
            folders += [run.path for run in runs] or [folder]
        folders += missing
    return tuple(folders)


class Distillation(Supervision):
    """Gold of the training sentences, averaged with the opinions of teachers, and their opinions on unlabelled text.

    Stored opinions are used if there are any; else the teachers are asked when the student is known.
    """

    def __init__(
        self, corpus: Corpus, teachers: Sequence[str], unlabelled: Sequence[str], stored: TeacherOutputs | None, *,
        device: str, log: Callable[[str], None],
    ) -> None:  # fmt: skip
        super().__init__(corpus)
        self.teachers, self.unlabelled, self.teacher_outputs = teachers, unlabelled, stored
        self._device, self._log = device, log

    def check(self, model: Model) -> list[str]:
        if self.teacher_outputs is not None:
            return []
        return check_student(model, self.teachers, has_unlabelled=bool(self.unlabelled))

    def decides_open_spans(self, model: Model) -> bool:
        return isinstance(model.head, LearnsProbabilities)

    def sentences(self, model: Model) -> list[Sentence]:
        """The training sentences with the opinions on them, then the unlabelled ones with pseudo-labels."""
        outputs = self.teacher_outputs = self.teacher_outputs or self._ask(model)
        opinions = iter(outputs.opinions)
        is_decided = self.decides_open_spans(model)
        train = [_teach(s, next(opinions), model, is_decided=is_decided) if is_short(s) else s for s in self.corpus["train"]]
        unlabelled = [
            TaughtSentence.teach(replace(sentence, **opinion.predictions._asdict()), opinion.spans, 0.0)
            for sentence, opinion in zip(unlabelled_sentences(self.corpus), opinions, strict=True)
        ]
        return [*train, *unlabelled]

    def to_report(self) -> dict[str, Any]:
        teachers = [] if self.teacher_outputs is None else self.teacher_outputs.teachers
        return {"distillation": {"teachers": teachers, "unlabelled": list(self.unlabelled)}}

    def _ask(self, student: Model) -> TeacherOutputs:
        folders, decoding = [Path(folder) for folder in self.teachers], student.head.prediction_head.decoding
        return TeacherOutputs.ask(folders, student.labels, self.corpus, decoding, device=self._device, log=self._log)


def _teach(sentence: Sentence, opinion: Opinion, student: Model, *, is_decided: bool) -> TaughtSentence:
    """Add the opinion of teachers; a student that learns probabilities takes theirs where the sentence is open."""
    gold_weight = student.config.training.gold_weight
    # The other parts of a wrapper, such as relations, learn no probabilities and need the marks.
    if sentence.annotated is not None and is_decided:
        return teach_open_spans(sentence, opinion.spans, gold_weight, student.labels.entities)
    return TaughtSentence.teach(sentence, opinion.spans, gold_weight)


def check_student(student: Model, teachers: Sequence[str], *, has_unlabelled: bool) -> list[str]:
    """Raise an error if the teachers cannot teach the student; return notes on what it cannot learn from them.

    Reads only small files of the teachers.
    """
    if student.needs_spans:
        raise SpanwiseError("a model that types given spans cannot be distilled; train it with spanwise train")
    related = {type for folder in teachers for type in _check_teacher(Path(folder), student.labels)}
    linked = {type for folder in teachers for type in _discontinuous_types(Path(folder))}
    kind, notes = head_values(student.head)["kind"], []
    if student.head.finds_relations:
        if has_unlabelled and (missing := [type for type in student.labels.relations if type not in related]):
            raise SpanwiseError(
                f"no teacher predicts relations of {join_names(missing, MAX_LISTED)}, and without them the student would "
                "learn that unlabelled text has none; add a teacher that predicts them, or omit --unlabelled"
            )
        more = " and, in unlabelled text, from relations that most teachers predict" if has_unlabelled else " only"
        notes.append(f"relations are learned from gold{more}")
    if has_unlabelled and (missing := [type for type in student.head.discontinuous_types if type not in linked]):
        notes.append(
            f"no teacher predicts discontinuous entities of {', '.join(missing)}: in unlabelled text, the student learns that "
            "there are none"
        )
    if find_ability(student.head, LearnsProbabilities) is None:
        if not has_unlabelled:
            raise SpanwiseError(
                f"the head {kind} learns from labels, not from probabilities; pass --unlabelled TEXT to distill"
            )
        notes.append(
            f"the head {kind} learns from labels, not from probabilities: from gold in the data and, in unlabelled text, "
            f"from entities to which the teachers give {MIN_VOTE:g} or more"
        )
    return notes


def _discontinuous_types(folder: Path) -> set[str]:
    """The types of a teacher whose entities may have several fragments, also those of a head inside its head."""
    sections = iter_sections("head", RunFolder(folder).read_config().head)
    return {type for _, values in sections for type in values.get("discontinuous") or ()}


def _check_teacher(folder: Path, labels: Labels) -> tuple[str, ...]:
    """Check the files of a teacher and its types; return the types of relations that it predicts."""
    run = require_model(folder)
    if run.read_config().head.get("task") == "typing":
        raise SpanwiseError(f"{folder}: types given spans and cannot teach a model that predicts entities")
    known = read_labels(run)
    if missing := [type for type in labels.entities if type not in known.entities]:
        raise SpanwiseError(
            f"{folder}: does not know {join_names(missing, MAX_LISTED)}; "
            "a teacher must know all entity types of the training data"
        )
    return known.relations if predicts_relations(run) else ()
