"""Weibo NER's columns: a character with its place in its word, a tab and a BIO tag; a blank line between messages.

``北0<tab>B-LOC.NAM`` and ``京1<tab>I-LOC.NAM``. The places are kept in the sentence's ``extra`` and written back.
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
from spanwise.files.reading import lines
from spanwise.files.writing import writing
from spanwise.formats.base import Format, Ledger
from spanwise.formats.conll import safe_words
from spanwise.formats.shared.characters import of_characters, to_characters
from spanwise.formats.shared.fitting import fitted, not_in_a_column
from spanwise.formats.shared.sample import Sample

# A character outside the first plane came out of the corpus's making as two replacement characters, one for each surrogate.
_BROKEN = "\ufffd\ufffd"
_ROW = re.compile(rf"({_BROKEN}|.)([0-9]{{1,9}})\t(.+)")
_PLACES = "places_in_word"


def read(path: Path, ledger: Ledger, /) -> Iterator[Sentence]:
    rows: list[tuple[str, int, str]] = []
    count = 0
    for number, line in lines(path):
        if line.strip():
            rows.append(_row(line, path, number, ledger))
        elif rows:
            yield _sentence(rows, default_id(path, count), ledger)
            rows, count = [], count + 1
    if rows:
        yield _sentence(rows, default_id(path, count), ledger)


def _row(line: str, path: Path, number: int, ledger: Ledger) -> tuple[str, int, str]:
    match = _ROW.fullmatch(line)
    if not match:
        expected = "expected a character with its place in its word, a tab and a tag"
        raise FormatError(path, number, f"found {line[:40]!r}, {expected}")
    character, place, tag = match.groups()
    if not tags.is_tag(tag):
        raise FormatError(path, number, f"{tag!r} is not a tag: expected O, B-X or I-X")
    ledger.note("characters broken in two, read as one", int(character == _BROKEN))
    return character[0], int(place), tag


def _sentence(rows: list[tuple[str, int, str]], id: str, ledger: Ledger) -> Sentence:
    characters, places, labels = zip(*rows, strict=True)
    entities, repairs = tags.decode(labels)
    ledger.note(tags.REPAIRED, repairs)
    return of_characters(id, "".join(characters), entities, {_PLACES: list(places)})


def write(sentences: Iterable[Sentence], path: Path, ledger: Ledger, /) -> None:
    with writing(path) as file:
        for sentence in sentences:
            if not sentence.words:
                ledger.lose("sentences", "without words")
                continue
            characters = fitted(to_characters(_closed_up(sentence), ledger), FORMAT.holds, ledger, not_in_a_column)
            labels = tags.encode(characters.entities, len(characters.words))
            written = safe_words(characters, "\t", ledger)
            for character, place, tag in zip(written, _places(sentence), labels, strict=True):
                file.write(f"{character}{place}\t{tag}\n")
            file.write("\n")


def _closed_up(sentence: Sentence) -> Sentence:
    """The sentence without what stands between its words: the columns hold words only."""
    starts = tuple(accumulate(map(len, sentence.words[:-1]), initial=0))
    return replace(sentence, text="".join(sentence.words), starts=starts)


def _places(sentence: Sentence) -> list[int]:
    """The place of each character in its word: as it was read, or by the words there are."""
    kept: Any = (sentence.extra or {}).get(_PLACES)
    if isinstance(kept, list) and len(kept) == sum(map(len, sentence.words)) and all(_is_place(place) for place in kept):
        return kept
    return list(chain.from_iterable(range(len(word)) for word in sentence.words))


def _is_place(place: Any) -> bool:
    return type(place) is int and 0 <= place < 10**9


def sniff(sample: Sample) -> bool:
    place = -1
    for line in sample.lines:
        row = _ROW.fullmatch(line)
        if row is not None and tags.is_tag(row.group(3)) and int(row.group(2)) in (0, place + 1):
            place = int(row.group(2))
        elif line.strip():
            return False  # or columns of words that end in a digit
        else:
            place = -1
    return any(map(str.strip, sample.lines))


FORMAT = Format(
    name="weibo",
    summary="Weibo NER's columns: a character with its place in its word, a BIO tag",
    read=read,
    write=write,
    sniff=sniff,
    extensions=(".weibo",),
    own_keys=frozenset(("places_in_word",)),
)
