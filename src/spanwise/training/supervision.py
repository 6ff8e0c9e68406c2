"""The targets of a training: gold and, in subclasses, the predictions of other models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spanwise.core.types import Corpus, Sentence
from spanwise.models.model import Model
from spanwise.training.teacher_outputs import TeacherOutputs


class Supervision:
    """A corpus with gold that a model learns from and is scored on.

    Subclasses complete the corpus or its training sentences with the outputs of other models:
    ``Distillation``, ``KeptTypes`` and ``FilledGaps``. The outputs are stored in the run folder until
    training is finished, so that a resumed run learns the same.
    """

    more_types: tuple[str, ...] = ()  # entity types that the training sentences need not have
    teacher_outputs: TeacherOutputs | None = None

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus

    def check(self, model: Model) -> list[str]:
        """Return notes on what the model cannot learn; raise an error if the supervision is useless to it."""
        return []

    def decides_open_spans(self, model: Model) -> bool:
        """Whether the model also learns about spans that partial annotations leave open."""
        return False

    def sentences(self, model: Model) -> Sequence[Sentence]:
        """The sentences that the model learns from."""
        return self.corpus["train"]

    def to_report(self) -> dict[str, Any]:
        """The records of other models in the report of the run."""
        return {}
