"""Annotate batches of rows: the part that all engines (processes, Ray, Spark) share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from spanwise.annotation.records import Annotation, to_columns
from spanwise.annotation.tables import Batch, column_of, with_columns
from spanwise.annotation.unavailable import ModelUnavailableError
from spanwise.core.errors import SpanwiseError
from spanwise.decoding.thresholds import Threshold
from spanwise.inputs.texts import NEEDS_SPANS, to_sentences
from spanwise.prediction.base import BasePredictor
from spanwise.prediction.load import load

MIN_FAILURES = 100  # if this many rows fail and none succeeds, the model is at fault and not the rows
EXPECTED_TEXT = "expected a text or a list of words"


class Annotator:
    """Callable that adds predictions to a batch of rows: ``annotator(batch)`` returns it with more columns.

    Use it in a pipeline of Ray, Spark, Daft or ``datasets``; for files use ``spanwise annotate``. A
    batch is a dictionary of columns, a list of rows, a pandas ``DataFrame`` or a pyarrow ``Table`` or
    ``RecordBatch``, and the result is of the same kind. ``entities`` (and ``relations``, if the model
    predicts them) are lists of records; ``error`` is None, or the reason why a row has no predictions.
    An error in one row does not affect the others.

    ``model`` is a path, a hub name or a loaded model. It is loaded on the first batch, so that an
    annotator can be sent to another process.

    >>> Annotator("RUN", text_column="body").text_column
    'body'
    """

    def __init__(
        self,
        model: str | Path | BasePredictor,
        *,
        text_column: str = "text",
        threshold: Threshold = 0.0,
        overlap: str = "nested",
        batch_size: int = 64,
        device: str = "auto",
    ) -> None:
        self.model, self.text_column, self.device = model, text_column, device
        self.options: dict[str, Any] = {"threshold": threshold, "overlap": overlap, "batch_size": batch_size}
        self._predictor: BasePredictor | None = model if isinstance(model, BasePredictor) else None

    @property
    def predictor(self) -> BasePredictor:
        if self._predictor is None:
            assert not isinstance(self.model, BasePredictor)
            self._predictor = load(self.model, self.device)
        if self._predictor.needs_spans:
            raise SpanwiseError(NEEDS_SPANS)
        return self._predictor

    def __call__(self, batch: Batch) -> Batch:
        """Return the batch with the columns ``entities``, ``relations`` and ``error``."""
        annotations = self.annotate(column_of(batch, self.text_column))
        return with_columns(batch, to_columns(annotations, with_relations=self.predictor.finds_relations, with_errors=True))

    def annotate_batches(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Annotate an iterator of batches, as Spark's ``mapInPandas`` passes it."""
        return map(self, batches)

    def annotate(self, texts: Sequence[Any]) -> list[Annotation]:
        """Annotate texts, or lists of words; rows that fail have an ``error``."""
        annotations = [Annotation(error=_problem(text)) for text in texts]
        rows = [row for row, annotation in enumerate(annotations) if annotation.error is None]
        try:
            self._predict(texts, annotations, rows)
        except ModelUnavailableError:
            raise
        except Exception:  # of any library: one row must not stop the others
            self._predict_one_by_one(texts, annotations, rows)
        return annotations

    def _predict(self, texts: Sequence[Any], annotations: list[Annotation], rows: Sequence[int]) -> None:
        # The row of each sentence in the order in which the predictor reads and returns them.
        pending: list[int] = []

        def sentences() -> Iterator[Any]:
            for row in rows:
                for sentence in to_sentences(texts[row], str(row)):
                    pending.append(row)
                    yield sentence

        for index, sentence in enumerate(self.predictor.stream(sentences(), **self.options)):
            annotations[pending[index]].add(sentence)

    def _predict_one_by_one(self, texts: Sequence[Any], annotations: list[Annotation], rows: Sequence[int]) -> None:
        for row in rows:
            annotations[row] = Annotation()
            try:
                self._predict(texts, annotations, [row])
            except ModelUnavailableError:
                raise
            except Exception as error:
                annotations[row] = Annotation(error=describe(error))
        failed = [annotations[row] for row in rows if annotations[row].error]
        if len(failed) == len(rows) >= MIN_FAILURES:
            raise SpanwiseError(f"the model fails on every row: {failed[0].error}")


def annotate_batches(model: str | Path | BasePredictor, batches: Iterable[Batch], **options: Any) -> Iterator[Batch]:
    """Yield batches of rows with predictions; memory holds one batch. ``options`` are those of ``Annotator``.

    >>> list(annotate_batches("RUN", []))
    []
    """
    return Annotator(model, **options).annotate_batches(batches)


def describe(error: Exception) -> str:
    """Return the first line of an error's message."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)[:500]


def _problem(text: Any) -> str | None:
    """Why a value cannot be annotated."""
    if isinstance(text, str):
        return None
    if text is None:
        return f"the text is null; {EXPECTED_TEXT}"
    if isinstance(text, list | tuple) and all(isinstance(word, str) and word for word in text):
        return None
    return f"the text is a value of type {type(text).__name__}; {EXPECTED_TEXT}"
