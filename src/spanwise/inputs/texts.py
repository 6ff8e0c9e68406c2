"""Texts that a user passes from Python, as sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.text.reading import Splitter, given_sentences, text_sentences

NEEDS_SPANS = "this model types given spans and finds none by itself: it needs sentences with entities, of any type"


EXPECTED = "expected a text, a Sentence, or a list of texts, Sentences and lists of words"


EXPECTED_OF_ONE = "expected a text, a list of words of which none is empty, or a Sentence"


Text: TypeAlias = str | Sequence[str] | Sentence  # raw text, words, or words with what is known of them


def to_sentences(text: Text, name: str, splitter: Splitter | None = None) -> Iterator[Sentence]:
    """What a user may hand over, as sentences: raw text is split, words are taken as they are."""
    if isinstance(text, Sentence):
        yield text
    elif not isinstance(text, str):
        if not isinstance(text, Sequence) or not all(isinstance(word, str) and word for word in text):
            raise SpanwiseError(f"{name}: {EXPECTED_OF_ONE}")
        yield Sentence(name, tuple(text))
    elif splitter is None:
        yield from text_sentences(text, name)
    else:
        yield from given_sentences(text, name, splitter(text))
