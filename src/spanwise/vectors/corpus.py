"""The text that word vectors are learned from: the words of a corpus' training sentences, or plain text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from spanwise.corpora import open_splits
from spanwise.errors import SpanwiseError
from spanwise.formats import Ledger, detect
from spanwise.formats.files import stem
from spanwise.inference.raw import raw_sentences
from spanwise.types import Sentence

Unit = Literal["words", "characters"]


def corpus_text(
    path: Path, format: str | None = None, ledger: Ledger | None = None, unit: Unit = "words"
) -> Iterator[Sequence[str]]:
    """The sentences of a corpus: a folder's train split, or all of a file.

    A ``.txt`` file that is in no known format is plain text: it is split into sentences and words as ``predict`` does.
    Chinese corpora have a word per character already, and so has plain text; ``unit="characters"`` is for longer words.
    """
    for sentence in _sentences(path, format, ledger):
        yield sentence.words if unit == "words" else "".join(sentence.words)


def _sentences(path: Path, format: str | None, ledger: Ledger | None) -> Iterator[Sentence]:
    if format is None and path.is_file() and path.suffix.lower() == ".txt" and not _is_annotated(path):
        return raw_sentences(path.open("rb"), stem(path), str(path))
    splits = open_splits(path, format, ledger)
    if "train" not in splits and len(splits) > 1:
        raise SpanwiseError(f"{path}: there is no train split, only {', '.join(splits)}")
    return splits.get("train") or next(iter(splits.values()))


def _is_annotated(path: Path) -> bool:
    try:
        detect(path)
    except SpanwiseError:
        return False
    return True
