"""Text for training word vectors: the training sentences of a corpus, or plain text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Literal, cast

from spanwise.core.errors import SpanwiseError, UnknownFormatError
from spanwise.core.types import Sentence
from spanwise.corpora.splits import read_train_split
from spanwise.files.encodings import RecodedLines
from spanwise.files.names import stem
from spanwise.formats import Ledger, can_detect
from spanwise.formats.registry import find_format, names_format, split_encoding
from spanwise.inputs.sources import INPUT_FORMATS
from spanwise.text.reading import TEXT, sentences_from_stream

Unit = Literal["words", "characters"]


def corpus_text(
    path: Path, format: str | None = None, ledger: Ledger | None = None, unit: Unit = "words"
) -> Iterator[Sequence[str]]:
    """Yield the words of each sentence of a folder's train split or of a file.

    A ``.txt`` file in no known format is plain text, and so is any file with the format ``text``.
    Plain text is split into sentences and words as ``predict`` does. ``unit="characters"`` splits
    words into characters; Chinese corpora and plain Chinese text already have one word per
    character.
    """
    for sentence in _sentences(path, format, ledger):
        yield sentence.words if unit == "words" else "".join(sentence.words)


def _sentences(path: Path, format: str | None, ledger: Ledger | None) -> Iterator[Sentence]:
    given_format = format
    format, encoding = split_encoding(format)
    is_text = names_format(format, TEXT)
    if is_text and path.is_dir():
        raise SpanwiseError(f"{path}: expected a file for --from text, found a folder")
    if is_text or (format is None and path.is_file() and path.suffix.lower() == ".txt" and not can_detect(path)):
        file = path.open("rb")
        lines = file if encoding is None else cast(IO[bytes], RecodedLines(file, encoding, str(path)))
        return sentences_from_stream(lines, stem(path), str(path))
    if format is not None:
        find_format(format, INPUT_FORMATS)
    try:
        return read_train_split(path, given_format, ledger)
    except UnknownFormatError as error:
        raise error.with_changes(names=INPUT_FORMATS) from None
