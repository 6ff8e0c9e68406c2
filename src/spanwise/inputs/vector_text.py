"""The text that word vectors are learned from: the words of a corpus' training sentences, or plain text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from spanwise.core.errors import SpanwiseError, UnknownFormatError
from spanwise.core.types import Sentence
from spanwise.corpora.splits import train_split
from spanwise.files.names import stem
from spanwise.formats import Ledger, is_known
from spanwise.formats.registry import find, names_format
from spanwise.inputs.sources import OFFERED
from spanwise.text.reading import TEXT, raw_sentences

Unit = Literal["words", "characters"]


def corpus_text(
    path: Path, format: str | None = None, ledger: Ledger | None = None, unit: Unit = "words"
) -> Iterator[Sequence[str]]:
    """The sentences of a corpus: a folder's train split, or all of a file.

    A ``.txt`` file that is in no known format is plain text, and so is any file where the format is ``text``: it is split into
    sentences and words as ``predict`` does.
    Chinese corpora have a word per character already, and so has plain text; ``unit="characters"`` is for longer words.
    """
    for sentence in _sentences(path, format, ledger):
        yield sentence.words if unit == "words" else "".join(sentence.words)


def _sentences(path: Path, format: str | None, ledger: Ledger | None) -> Iterator[Sentence]:
    said = names_format(format, TEXT)
    if said and path.is_dir():
        raise SpanwiseError(f"{path}: is a folder, and text is read from a file")
    if said or (format is None and path.is_file() and path.suffix.lower() == ".txt" and not is_known(path)):
        return raw_sentences(path.open("rb"), stem(path), str(path))
    if format is not None:
        find(format, OFFERED)
    try:
        return train_split(path, format, ledger)
    except UnknownFormatError as error:
        raise error.but(names=OFFERED) from None
