"""Convert texts passed from Python to sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.text.reading import Splitter, sentences_from_splits, sentences_from_text

NEEDS_SPANS = "this model types given spans; expected sentences with entities of any type"
EXPECTED_INPUT = "expected a text, a Sentence, or a list of texts, Sentences and lists of words"
EXPECTED_ITEM = "expected a text, a list of non-empty words, or a Sentence"

Text: TypeAlias = str | Sequence[str] | Sentence  # raw text, words, or an annotated sentence


def to_sentences(text: Text, name: str, splitter: Splitter | None = None) -> Iterator[Sentence]:
    """Yield the sentences of one input; raw text is split, words are not."""
    if isinstance(text, Sentence):
        yield text
    elif not isinstance(text, str):
        if not isinstance(text, Sequence) or not all(isinstance(word, str) and word for word in text):
            raise SpanwiseError(f"{name}: {EXPECTED_ITEM}")
        yield Sentence(name, tuple(text))
    elif splitter is None:
        yield from sentences_from_text(text, name)
    else:
        yield from sentences_from_splits(text, name, splitter(text))
