"""What predicts, whatever computes it: texts in, sentences with entities out. Needs no torch."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence

from spanwise.core.errors import SpanwiseError, unknown_name
from spanwise.core.types import Sentence
from spanwise.decoding.overlaps import chosen
from spanwise.decoding.thresholds import Threshold
from spanwise.inputs.texts import EXPECTED, NEEDS_SPANS, Text, to_sentences
from spanwise.prediction.streaming import streamed
from spanwise.text.reading import Splitter


class BasePredictor(ABC):
    """A model ready to predict. ``predict`` takes a text or several inputs at once; ``stream`` gives sentences as they come.

    Several threads may use one predictor: what ``find`` computes is computed by one of them at a time.
    """

    types: tuple[str, ...]  # of entities
    relation_types: tuple[str, ...] = ()
    finds_relations: bool = False
    needs_spans: bool = False  # whether it types the entities that sentences come with, and finds none by itself
    own_threshold: float | None = None  # above which it proposes entities, where it has one and can lower it

    def __init__(self) -> None:
        self._lock = threading.Lock()

    @abstractmethod
    def find(
        self, sentences: Sequence[Sentence], around: Sequence[Sentence], *, threshold: Threshold, batch_size: int
    ) -> Sequence[Sentence]:  # fmt: skip
        """The sentences with what is found in place of their entities and relations.

        ``around`` are other sentences of their documents, for a model that reads these too. Called by one thread at a time.
        """

    def predict(
        self,
        texts: Text | Iterable[Text],
        *,
        threshold: Threshold = 0.0,
        overlap: str | None = None,
        batch_size: int = 64,
        splitter: Splitter | None = None,
    ) -> list[Sentence]:
        """Sentences with the entities found in them; a text of several sentences gives several, with their place in it.

        ``texts`` is a text, a ``Sentence``, or a list (any iterable) of texts, sentences and lists of words. A string in the
        list is a text: ``["In", "Oslo"]`` are two texts, ``[["In", "Oslo"]]`` is one sentence of two words.

        ``threshold`` drops entities and relations of a lower score, or is one for each type by name, where those that are not
        named keep the model's own. Where it is lower than the model's own, more is proposed. ``overlap`` is "nested" (all
        that the model finds, as when it is left out), "flat" (the surest of those that overlap) or "outermost" (none inside
        another).

        ``splitter`` takes a text and gives its sentences, each as the character ranges of its words.
        """
        return list(self.stream(texts, threshold=threshold, overlap=overlap, batch_size=batch_size, splitter=splitter))

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
        """The same, one sentence after another as the input comes; only some thousand are in memory at a time.

        ``context`` are more sentences of the same documents, for a model that reads a sentence's surroundings.
        """
        several = [texts] if isinstance(texts, str | Sentence) else texts
        if not isinstance(several, Iterable) or isinstance(several, bytes):
            raise SpanwiseError(f"{type(texts).__name__} is nothing to predict: {EXPECTED}")
        self._check(threshold)
        if batch_size < 1:
            raise SpanwiseError(f"batch_size={batch_size}: expected 1 or more")
        choose = chosen(overlap or "nested")

        def find(sentences: Sequence[Sentence], around: Sequence[Sentence]) -> Sequence[Sentence]:
            with self._lock:
                return self.find(sentences, around, threshold=threshold, batch_size=batch_size)

        sentences = (one for number, text in enumerate(several) for one in self._sentences(text, f"text-{number}", splitter))
        return map(choose, streamed(find, sentences, context=context, whole=self.needs_spans))

    def _check(self, threshold: Threshold) -> None:
        bars = threshold if isinstance(threshold, Mapping) else {"": threshold}
        for bar in bars.values():
            if not isinstance(bar, int | float) or not 0 <= bar <= 1:
                raise SpanwiseError(f"threshold {bar!r}: expected a number from 0 to 1, or one for each of some types by name")
        known = (*self.types, *self.relation_types)
        for name in bars.keys() - known if isinstance(threshold, Mapping) else ():
            raise unknown_name("type with a threshold", name, known)

    def _sentences(self, text: Text, name: str, splitter: Splitter | None) -> Iterator[Sentence]:
        if self.needs_spans and not isinstance(text, Sentence):
            raise SpanwiseError(NEEDS_SPANS)
        return to_sentences(text, name, splitter)
