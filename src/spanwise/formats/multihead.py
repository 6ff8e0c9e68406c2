"""Columns of multi-head selection (Bekoulis et al. 2018): index, word, BIO tag, relations, target words.

A sentence starts with ``#doc ID``. A relation is on the last word of its head and points to the last word
of its tail::

    #doc 17
    0	Oslo	B-Loc	['Located_In']	[3]
    1	lies	O	['N']	[1]

``N`` with the word's own index means no relation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spanwise.core import tags
from spanwise.core.counting import counted
from spanwise.core.errors import FormatError
from spanwise.core.types import Relation, Sentence
from spanwise.files.names import default_id
from spanwise.files.reading import read_lines
from spanwise.files.writing import open_output
from spanwise.formats.base import Format, Ledger, fill_empty_words
from spanwise.formats.conll import escape_words
from spanwise.formats.shared.restriction import column_problem, restrict
from spanwise.formats.shared.sample import Sample

_MARK = re.compile(r"#doc(?:\s+(.*))?", re.DOTALL)
_NAME = re.compile(r"""'([^'\\]*)'|"([^"\\]*)\"""")
_NAMES = re.compile(rf"\[\s*(?:{_NAME.pattern})(?:\s*,\s*(?:{_NAME.pattern}))*\s*\]")
_NUMBERS = re.compile(r"\[\s*[0-9]{1,9}(?:\s*,\s*[0-9]{1,9})*\s*\]")
_NONE = "N"
_SUPPORTS = frozenset(("relations",))


@dataclass
class _Rows:
    """The rows of the current sentence. Relations are tuples of line number, type, head word and tail word."""

    id: str
    words: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    relations: list[tuple[int, str, int, int]] = field(default_factory=list)


def read(path: Path, ledger: Ledger, /) -> Iterator[Sentence]:
    rows: _Rows | None = None
    count = 0
    for number, line in read_lines(path):
        mark = _MARK.fullmatch(line)
        if mark:
            if rows is not None:
                yield _to_sentence(rows, path, ledger)
            rows = _Rows((mark.group(1) or "").strip() or default_id(path, count))
            count += 1
        elif line.strip():
            if rows is None:
                raise FormatError(path, number, "expected '#doc ID' before the first word")
            _add_row(rows, line, path, number)
    if rows is not None:
        yield _to_sentence(rows, path, ledger)


def _add_row(rows: _Rows, line: str, path: Path, number: int) -> None:
    cells = line.split("\t")
    if len(cells) != 5:
        raise FormatError(
            path, number, f"found {counted(len(cells), 'column')}, expected 5: index, word, tag, relations, target words"
        )
    index, word, tag, names, ends = cells
    if index != str(len(rows.words)):
        raise FormatError(path, number, f"found the word index {index[:20]!r}, expected {len(rows.words)}")
    if not tags.is_tag(tag):
        raise FormatError(path, number, f"{tag!r} is not a tag; expected O, B-X or I-X")
    if not _NAMES.fullmatch(names) or not _NUMBERS.fullmatch(ends):
        raise FormatError(path, number, f"found {names!r} and {ends!r}, expected two lists such as ['Kill'] and [4]")
    types = [match.group(1) or match.group(2) or "" for match in _NAME.finditer(names)]
    targets = [int(target) for target in re.findall(r"[0-9]+", ends)]
    if len(types) != len(targets):
        raise FormatError(path, number, f"found {counted(len(types), 'relation')} and {counted(len(targets), 'target word')}")
    if "" in types:
        raise FormatError(path, number, "a relation has no type")
    pairs = zip(types, targets, strict=True)
    rows.relations += [(number, type, len(rows.words), target) for type, target in pairs if type != _NONE]
    rows.words.append(word)
    rows.tags.append(tag)


def _to_sentence(rows: _Rows, path: Path, ledger: Ledger) -> Sentence:
    entities, repairs = tags.decode(rows.tags)
    ledger.note(tags.REPAIRED, repairs)
    by_last_word = {entity.range.end - 1: index for index, entity in enumerate(entities)}
    relations = []
    for line, type, head, tail in rows.relations:
        if tail >= len(rows.words):
            raise FormatError(path, line, f"relation {type!r} points to word {tail} of {counted(len(rows.words), 'word')}")
        if head in by_last_word and tail in by_last_word:
            relations.append(Relation(type, by_last_word[head], by_last_word[tail]))
        else:
            ledger.lose("relations", "between words that do not end an entity")
    return Sentence(rows.id, fill_empty_words(rows.words, ledger), tuple(entities), tuple(relations))


def write(sentences: Iterable[Sentence], path: Path, ledger: Ledger, /) -> None:
    with open_output(path) as file:
        for sentence in sentences:
            restricted = restrict(sentence, _SUPPORTS, ledger, column_problem)
            id = " ".join(sentence.id.split())
            ledger.note("ids changed to fit on one line", int(id != sentence.id or not id))
            file.write(f"#doc {id}\n")
            words = escape_words(restricted, "\t", ledger)
            columns = tags.encode(restricted.entities, len(words)), _relation_columns(restricted, ledger)
            for index, (word, tag, (names, ends)) in enumerate(zip(words, *columns, strict=True)):
                file.write(f"{index}\t{word}\t{tag}\t[{', '.join(names)}]\t{ends}\n")


def _relation_columns(sentence: Sentence, ledger: Ledger) -> Sequence[tuple[list[str], list[int]]]:
    """Return the quoted relation types of each word and their target words."""
    columns: list[tuple[list[str], list[int]]] = [([], []) for _ in sentence.words]
    for relation in sentence.relations:
        quote = "'" if "'" not in relation.type else '"'
        name = f"{quote}{relation.type}{quote}"
        if relation.type == _NONE or not _NAME.fullmatch(name) or re.search(r"[\t\n]", name):
            ledger.lose("relations", "with a type that the columns cannot hold")
            continue
        head, tail = (sentence.entities[end].range.end - 1 for end in (relation.head, relation.tail))
        columns[head][0].append(name)
        columns[head][1].append(tail)
    return [column if column[0] else ([f"'{_NONE}'"], [index]) for index, column in enumerate(columns)]


def sniff(sample: Sample) -> bool:
    rows = [line for line in sample.lines if line.strip()][:2]
    if len(rows) < 2 or "\t" in rows[0] or not _MARK.fullmatch(rows[0]):
        return False
    return rows[1].count("\t") == 4 or _MARK.fullmatch(rows[1]) is not None


FORMAT = Format(
    name="multihead",
    summary="columns of multi-head selection: index, word, BIO tag, relations, target words",
    read=read,
    write=write,
    sniff=sniff,
    extensions=(".multihead",),
    supports=_SUPPORTS,
    metadata=frozenset(("ids",)),
)
