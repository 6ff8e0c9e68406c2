"""Columns of Weibo NER: a character with its index in the word, a tab and a BIO tag, blank lines between messages.

``北0<tab>B-LOC.NAM`` and ``京1<tab>I-LOC.NAM``. The indices are stored in ``Sentence.extra`` and written back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import accumulate, chain
from pathlib import Path
from typing import Any

from spanwise.core import tags
from spanwise.core.errors import FormatError
from spanwise.core.types import Sentence
from spanwise.files.names import default_id
from spanwise.files.reading import read_lines
from spanwise.files.writing import open_output
from spanwise.formats.base import Format, Ledger
from spanwise.formats.conll import escape_words
from spanwise.formats.shared.characters import character_sentence, split_characters
from spanwise.formats.shared.restriction import column_problem, restrict
from spanwise.formats.shared.sample import Sample

# In the corpus, a character beyond U+FFFF is two replacement characters, one for each surrogate.
_BROKEN = "\ufffd\ufffd"
_ROW = re.compile(rf"({_BROKEN}|.)([0-9]{{1,9}})\t(.+)")
_INDICES = "places_in_word"


def read(path: Path, ledger: Ledger, /) -> Iterator[Sentence]:
    rows: list[tuple[str, int, str]] = []
    count = 0
    for number, line in read_lines(path):
        if line.strip():
            rows.append(_parse_row(line, path, number, ledger))
        elif rows:
            yield _to_sentence(rows, default_id(path, count), ledger)
            rows, count = [], count + 1
    if rows:
        yield _to_sentence(rows, default_id(path, count), ledger)


def _parse_row(line: str, path: Path, number: int, ledger: Ledger) -> tuple[str, int, str]:
    match = _ROW.fullmatch(line)
    if not match:
        expected = "expected a character with its index in the word, a tab and a tag"
        raise FormatError(path, number, f"found {line[:40]!r}, {expected}")
    character, index, tag = match.groups()
    if not tags.is_tag(tag):
        raise FormatError(path, number, f"{tag!r} is not a tag; expected O, B-X or I-X")
    ledger.note("characters split in two, read as one", int(character == _BROKEN))
    return character[0], int(index), tag


def _to_sentence(rows: list[tuple[str, int, str]], id: str, ledger: Ledger) -> Sentence:
    characters, indices, labels = zip(*rows, strict=True)
    entities, repairs = tags.decode(labels)
    ledger.note(tags.REPAIRED, repairs)
    return character_sentence(id, "".join(characters), entities, {_INDICES: list(indices)})


def write(sentences: Iterable[Sentence], path: Path, ledger: Ledger, /) -> None:
    with open_output(path) as file:
        for sentence in sentences:
            if not sentence.words:
                ledger.lose("sentences", "without words")
                continue
            characters = restrict(split_characters(_remove_gaps(sentence), ledger), FORMAT.supports, ledger, column_problem)
            labels = tags.encode(characters.entities, len(characters.words))
            written = escape_words(characters, "\t", ledger)
            for character, index, tag in zip(written, _indices_in_words(sentence), labels, strict=True):
                file.write(f"{character}{index}\t{tag}\n")
            file.write("\n")


def _remove_gaps(sentence: Sentence) -> Sentence:
    """Return the sentence without the text between its words, which the columns cannot hold."""
    starts = tuple(accumulate(map(len, sentence.words[:-1]), initial=0))
    return replace(sentence, text="".join(sentence.words), starts=starts)


def _indices_in_words(sentence: Sentence) -> list[int]:
    """Return the index of each character in its word, as read or else by the words of the sentence."""
    stored: Any = (sentence.extra or {}).get(_INDICES)
    if isinstance(stored, list) and len(stored) == sum(map(len, sentence.words)) and all(map(_is_index, stored)):
        return stored
    return list(chain.from_iterable(range(len(word)) for word in sentence.words))


def _is_index(value: Any) -> bool:
    return type(value) is int and 0 <= value < 10**9


def sniff(sample: Sample) -> bool:
    index = -1
    for line in sample.lines:
        row = _ROW.fullmatch(line)
        if row is not None and tags.is_tag(row.group(3)) and int(row.group(2)) in (0, index + 1):
            index = int(row.group(2))
        elif line.strip():
            return False  # such as columns with words that end in a digit
        else:
            index = -1
    return any(map(str.strip, sample.lines))


FORMAT = Format(
    name="weibo",
    summary="columns of Weibo NER: a character with its index in the word, a BIO tag",
    read=read,
    write=write,
    sniff=sniff,
    extensions=(".weibo",),
    extra_keys=frozenset((_INDICES,)),
)
