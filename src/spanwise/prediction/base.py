"""Prediction interface shared by torch and ONNX models. Imports no torch."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from spanwise.config.settings import CalibrationSettings
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence, SentenceList
from spanwise.decoding.overlaps import overlap_filter
from spanwise.decoding.score_scale import ScoreScale
from spanwise.decoding.thresholds import MIN_THRESHOLD, MinScore, Threshold, Thresholds, split_threshold
from spanwise.inputs.texts import EXPECTED_INPUT, NEEDS_SPANS, Text, to_sentences
from spanwise.prediction.streaming import stream_in_chunks
from spanwise.text.reading import Splitter


def score_scale(settings: CalibrationSettings | None) -> ScoreScale:
    """The scale of a model's scores; without settings, scores stay as they are."""
    return ScoreScale() if settings is None else ScoreScale(settings.temperature, settings.bias)


class BasePredictor(ABC):
    """A loaded model, as ``spanwise.load`` returns it.

    ``predict`` returns a list of sentences. ``stream`` yields them one by one; choose it for input that
    does not fit into memory. A predictor is thread-safe: only one thread at a time runs
    ``predict_chunk``.
    """

    types: tuple[str, ...]  # entity types
    relation_types: tuple[str, ...] = ()
    finds_relations: bool = False
    needs_spans: bool = False  # True for a model that types given spans instead of finding entities
    default_threshold: float | None = None  # of calibrated scores; None if it cannot be lowered
    scale: ScoreScale = ScoreScale()  # calibrates the scores of the head
    thresholds: Mapping[str, float]  # by type, saved in the model; empty if there are none
    folder: Path | None = None  # that the model was loaded from

    def __init__(self) -> None:
        self.thresholds = {}
        self._lock = threading.Lock()

    @abstractmethod
    def predict_chunk(
        self, sentences: Sequence[Sentence], context: Sequence[Sentence], *, threshold: Thresholds, batch_size: int
    ) -> Sequence[Sentence]:  # fmt: skip
        """Return the sentences with predictions in place of their entities and relations.

        Scores and ``threshold`` are those of the head, before calibration.
        ``context`` holds other sentences of the same documents, for encoders that read document
        context. Only one thread at a time calls this method.
        """

    def predict(
        self,
        texts: Text | Iterable[Text],
        *,
        threshold: Threshold = 0.0,
        overlap: str | None = None,
        batch_size: int = 64,
        splitter: Splitter | None = None,
    ) -> SentenceList:
        """Predict entities and relations; return one ``Sentence`` per sentence of the input.

        ``texts`` is a text, a ``Sentence``, or an iterable of texts, sentences and lists of words.
        A string in the iterable is a text: ``["In", "Oslo"]`` are two texts, ``[["In", "Oslo"]]``
        is one sentence of two words. Sentences of a text record their position in it.

        Scores of entities are calibrated, if the model has been calibrated on dev: of those with a
        score of about 0.8, four in five should be correct. ``threshold`` refers to these scores.

        ``threshold`` drops entities and relations with a lower score. A mapping sets it by type;
        other types, and 0, use the model's default. The default is the threshold of the head, or the one
        that ``spanwise evaluate --find-threshold --save`` stored. A lower value returns more
        predictions. If entities and relations have a type of the same name, ``entity:NAME`` and
        ``relation:NAME`` set their thresholds separately.

        ``overlap`` is "nested" (the default: all predictions), "flat" (the most probable of
        overlapping entities) or "outermost" (no entity inside another).

        ``splitter`` maps a text to its sentences, each a list of character ranges of its words.

        The result is a list; a notebook draws it with the entities in colour.
        """
        predictions = self.stream(texts, threshold=threshold, overlap=overlap, batch_size=batch_size, splitter=splitter)
        return SentenceList(predictions)

    def stream(
        self,
        texts: Text | Iterable[Text],
        *,
        threshold: Threshold = 0.0,
        overlap: str | None = None,
        batch_size: int = 64,
        splitter: Splitter | None = None,
        context: Sequence[Sentence] = (),
    ) -> Iterator[Sentence]:
        """Like ``predict``, but yield sentences in order; memory holds a few thousand at a time.

        ``context`` holds more sentences of the same documents, for encoders that read document
        context.
        """
        items = [texts] if isinstance(texts, str | Sentence) else texts
        if not isinstance(items, Iterable) or isinstance(items, bytes):
            raise SpanwiseError(f"cannot predict an input of type {type(texts).__name__}: {EXPECTED_INPUT}")
        given = self.split_threshold(threshold)
        thresholds = Thresholds(self.scale.to_head(self._with_saved(given.entities)), given.relations)
        if batch_size < 1:
            raise SpanwiseError(f"batch_size={batch_size}: expected 1 or more")
        filter_overlaps = overlap_filter(overlap or "nested")

        def predict_chunk(sentences: Sequence[Sentence], context: Sequence[Sentence]) -> Sequence[Sentence]:
            with self._lock:
                return self.predict_chunk(sentences, context, threshold=thresholds, batch_size=batch_size)

        sentences = (
            sentence for index, text in enumerate(items) for sentence in self._sentences(text, f"text-{index}", splitter)
        )
        predictions = stream_in_chunks(predict_chunk, sentences, context=context, uses_windows=not self.needs_spans)
        return map(self.scale.apply, map(filter_overlaps, predictions))

    @property
    def min_threshold(self) -> float:
        """The lowest threshold that a search or a service uses, because lower ones make models propose almost all spans."""
        return max(MIN_THRESHOLD, self.scale.calibrate(MIN_THRESHOLD))

    def split_threshold(self, threshold: Threshold) -> Thresholds:
        """Check a threshold; return those of entities and those of relations."""
        if not isinstance(threshold, Thresholds):
            for value in threshold.values() if isinstance(threshold, Mapping) else [threshold]:
                if not isinstance(value, int | float) or not 0 <= value <= 1:
                    expected = "a number from 0 to 1, or a mapping from types to numbers"
                    raise SpanwiseError(f"threshold {value!r}: expected {expected}")
        return split_threshold(threshold, self.types, self.relation_types)

    def _with_saved(self, threshold: MinScore) -> MinScore:
        """Add the saved thresholds of types without a given one; one threshold for all types replaces them."""
        if isinstance(threshold, Mapping):
            return {**self.thresholds, **threshold}
        return threshold or self.thresholds or 0.0

    def _sentences(self, text: Text, name: str, splitter: Splitter | None) -> Iterator[Sentence]:
        if self.needs_spans and not isinstance(text, Sentence):
            raise SpanwiseError(NEEDS_SPANS)
        return to_sentences(text, name, splitter)
