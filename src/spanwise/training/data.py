"""Read training data and log what was changed or skipped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Corpus, Sentence
from spanwise.corpora.splits import ensure_dev_split, read_corpus
from spanwise.formats import Ledger


def read_training_corpus(data: str | Path | Corpus, format: str | None, log: Callable[[str], None]) -> Corpus:
    """Read data and make sure that it has training sentences and a dev split."""
    corpus, note = ensure_dev_split(read_data(data, format, log))
    if note:
        log(note)
    if not corpus["train"]:
        raise SpanwiseError("the training data has no sentences")
    return corpus


def read_data(data: str | Path | Corpus, format: str | None, log: Callable[[str], None]) -> Corpus:
    """Read data; log what was repaired or dropped."""
    ledger = Ledger()
    corpus = data if isinstance(data, Corpus) else read_corpus(data, format, ledger)
    for message, count in ledger.notes.items():
        log(f"note: {count:,} {message}")
    if ledger.lost:
        log(f"dropped while reading: {ledger}")
    return corpus


def all_sentences(corpus: Corpus) -> list[Sentence]:
    """The sentences of all splits: the document context that an encoder may read."""
    return [sentence for split in corpus.splits.values() for sentence in split]
