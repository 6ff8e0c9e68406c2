"""A trained model put to work: load a run folder, predict text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from spanwise.device import wants_cuda
from spanwise.errors import SpanwiseError
from spanwise.inference.predictor import predict
from spanwise.inference.raw import text_sentences
from spanwise.model import Model
from spanwise.types import Sentence

NEEDS_SPANS = "this model types given spans and finds none by itself: it needs sentences with entities, of any type"
Text: TypeAlias = str | Sequence[str] | Sentence  # raw text, words, or words with what is known of them


class Predictor:
    """A model ready to predict. ``predict`` takes texts, lists of words or sentences; ``stream`` gives them as they come."""

    def __init__(self, model: Model, device: str = "auto") -> None:
        self.model = model.to("cuda" if wants_cuda(device) else "cpu").eval()

    @property
    def types(self) -> tuple[str, ...]:
        return self.model.labels.entities

    def predict(self, texts: Text | Iterable[Text], *, threshold: float = 0.0, batch_size: int = 64) -> list[Sentence]:
        """Sentences with the entities found in them; a text of several sentences gives several, with their place in it."""
        several = [texts] if isinstance(texts, str | Sentence) else texts
        return list(self.stream(several, threshold=threshold, batch_size=batch_size))

    def stream(self, texts: Iterable[Text], *, threshold: float = 0.0, batch_size: int = 64) -> Iterator[Sentence]:
        """The same, one sentence after another as the input comes."""
        sentences = (sentence for number, text in enumerate(texts) for sentence in self._sentences(text, f"text-{number}"))
        return predict(self.model, sentences, threshold=threshold, batch_size=batch_size)

    def _sentences(self, text: Text, name: str) -> Iterator[Sentence]:
        if self.model.needs_spans and not isinstance(text, Sentence):
            raise SpanwiseError(NEEDS_SPANS)
        return to_sentences(text, name)


def load(folder: str | Path, device: str = "auto") -> Predictor:
    """The model of a run folder, ready to predict."""
    return Predictor(Model.load(folder), device)


def to_sentences(text: Text, name: str) -> Iterator[Sentence]:
    """What a user may hand over, as sentences: raw text is split, words are taken as they are."""
    if isinstance(text, Sentence):
        yield text
    elif isinstance(text, str):
        yield from text_sentences(text, name)
    else:
        yield Sentence(name, tuple(text))
