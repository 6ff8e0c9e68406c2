"""Part-of-speech tags from spaCy, for sentences of corpora without tags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence


def tag_sentences(pipeline: str, sentences: Sequence[Sentence]) -> list[Sentence]:
    """Return the sentences with tags; those that have tags are not changed.

    ``pipeline`` is the name or folder of a spaCy pipeline with a tagger, such as ``en_core_web_sm``.
    Sentences keep their words: the pipeline's tokenizer is not used.
    """
    nlp = load_tagger(pipeline)

    from spacy.tokens import Doc

    untagged = [sentence for sentence in sentences if sentence.pos is None and sentence.words]
    docs = nlp.pipe(Doc(nlp.vocab, words=list(sentence.words)) for sentence in untagged)
    tags = {id(sentence): tuple(token.tag_ for token in doc) for sentence, doc in zip(untagged, docs, strict=True)}
    if any(not all(row) for row in tags.values()):
        raise SpanwiseError(f"tagger {pipeline}: the spaCy pipeline sets no part-of-speech tags (token.tag_)")
    return [replace(sentence, pos=tags[id(sentence)]) if id(sentence) in tags else sentence for sentence in sentences]


@cache
def load_tagger(pipeline: str) -> Any:
    """Load a spaCy pipeline once, without the components that tags do not need."""
    try:
        import spacy
    except ImportError:
        raise SpanwiseError(f"tagger {pipeline}: requires spaCy; run pip install 'spanwise[spacy]'") from None
    try:
        return spacy.load(pipeline, exclude=["parser", "ner", "lemmatizer"])
    except OSError:
        raise SpanwiseError(
            f"tagger {pipeline}: no such spaCy pipeline; run python -m spacy download {pipeline}, or pass its folder"
        ) from None
