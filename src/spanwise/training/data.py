"""Read training data and unlabelled text, and log what was changed or skipped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from spanwise.core.counting import counted_phrase
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Corpus, Sentence
from spanwise.corpora.splits import ensure_dev_split, read_corpus
from spanwise.formats import Ledger
from spanwise.formats.registry import with_encoding
from spanwise.inputs.sources import read_inputs
from spanwise.prediction.windows import split_into_windows
from spanwise.runtime.collection import paused_collection

UNLABELLED = "unlabelled"  # the split of a corpus with the sentences without gold


@paused_collection()
def read_training_corpus(data: str | Path | Corpus, format: str | None, log: Callable[[str], None]) -> Corpus:
    """Read data and make sure that it has training sentences and a dev split."""
    corpus, note = ensure_dev_split(read_data(data, format, log))
    if not corpus["train"]:
        source = "" if isinstance(data, Corpus) else f"{data}: "
        raise SpanwiseError(f"{source}the training data has no sentences")
    if note:
        log(note)
    return corpus


def read_data(data: str | Path | Corpus, format: str | None, log: Callable[[str], None]) -> Corpus:
    """Read data; log what was repaired or dropped."""
    ledger = Ledger()
    corpus = data if isinstance(data, Corpus) else read_corpus(data, format, ledger)
    for note in ledger.note_lines:
        log(f"note: {note}")
    if ledger.lost:
        log(f"dropped while reading: {ledger}")
    return corpus


def add_unlabelled(
    corpus: Corpus, paths: Sequence[str], log: Callable[[str], None], *, encoding: str | None = None
) -> Corpus:  # fmt: skip
    """Add the split ``unlabelled``: the sentences of files in any format, without their annotations.

    Sentences of the corpus itself are skipped: those of train have gold, and the others must stay
    unseen. Longer ones than a model reads at once are split.
    """
    ledger = Ledger()
    known = {sentence.words for sentence in all_sentences(corpus)}
    read = [sentence for sentence in read_inputs(paths, with_encoding(None, encoding), ledger) if sentence.words]
    unseen = [sentence for sentence in read if sentence.words not in known]
    windows = (window for sentence in unseen for window in split_into_windows(sentence))
    sentences = tuple(replace(s, entities=(), relations=(), links=(), annotated=None) for s in windows)
    for note in ledger.note_lines:
        log(f"note: {note}")
    if skipped := len(read) - len(unseen):
        log(f"note: {counted_phrase(skipped, 'unlabelled sentences that are also in the data, skipped')}")
    if not sentences:
        raise SpanwiseError(f"{', '.join(paths)}: no unlabelled sentences{' that are not in the data' * bool(skipped)}")
    return Corpus({**corpus.splits, UNLABELLED: sentences}, corpus.name)


def unlabelled_sentences(corpus: Corpus) -> tuple[Sentence, ...]:
    return corpus.splits.get(UNLABELLED, ())


def labelled(corpus: Corpus) -> Corpus:
    """The corpus without unlabelled sentences."""
    return Corpus({split: corpus[split] for split in corpus if split != UNLABELLED}, corpus.name)


def with_all_words(corpus: Corpus) -> Corpus:
    """The corpus with the unlabelled sentences in train, from which an encoder may learn words."""
    return Corpus({**corpus.splits, "train": (*corpus["train"], *unlabelled_sentences(corpus))}, corpus.name)


def all_sentences(corpus: Corpus) -> list[Sentence]:
    """The sentences of all splits: the document context that an encoder may read."""
    return [sentence for split in corpus.splits.values() for sentence in split]
