"""The columns of multi-head selection (Bekoulis et al. 2018): word number, word, BIO tag, relations, the words they lead to.

A sentence begins with ``#doc ID``. A relation stands at the last word of its head and names the last word of its tail::

    #doc 17
    0	Oslo	B-Loc	['Located_In']	[3]
    1	lies	O	['N']	[1]

``N`` at a word's own number is no relation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spanwise.core import tags
from spanwise.core.errors import FormatError
from spanwise.core.types import Relation, Sentence
from spanwise.files.names import default_id
from spanwise.files.reading import lines
from spanwise.files.writing import writing
from spanwise.formats.base import Format, Ledger
from spanwise.formats.conll import safe_words
from spanwise.formats.shared.fitting import fitted, not_in_a_column
from spanwise.formats.shared.sample import Sample

_MARK = re.compile(r"#doc(?:\s+(.*))?", re.DOTALL)
_NAME = re.compile(r"""'([^'\\]*)'|"([^"\\]*)\"""")
_NAMES = re.compile(rf"\[\s*(?:{_NAME.pattern})(?:\s*,\s*(?:{_NAME.pattern}))*\s*\]")
_NUMBERS = re.compile(r"\[\s*[0-9]{1,9}(?:\s*,\s*[0-9]{1,9})*\s*\]")
_NONE = "N"
_HOLDS = frozenset(("relations",))


@dataclass
class _Rows:
    """The rows of the sentence being read. An arrow is a line, a relation's type and the words at both ends."""

    id: str
    words: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    arrows: list[tuple[int, str, int, int]] = field(default_factory=list)


def read(path: Path, ledger: Ledger, /) -> Iterator[Sentence]:
    rows: _Rows | None = None
    count = 0
    for number, line in lines(path):
        mark = _MARK.fullmatch(line)
        if mark:
            if rows is not None:
                yield _sentence(rows, path, ledger)
            rows = _Rows((mark.group(1) or "").strip() or default_id(path, count))
            count += 1
        elif line.strip():
            if rows is None:
                raise FormatError(path, number, "expected '#doc ID' before the first word")
            _add(rows, line, path, number)
    if rows is not None:
        yield _sentence(rows, path, ledger)


def _add(rows: _Rows, line: str, path: Path, number: int) -> None:
    cells = line.split("\t")
    if len(cells) != 5:
        raise FormatError(
            path, number, f"found {len(cells)} columns, expected 5: number, word, tag, relations, words they lead to"
        )
    place, word, tag, names, ends = cells
    if place != str(len(rows.words)):
        raise FormatError(path, number, f"found the word number {place[:20]!r}, expected {len(rows.words)}")
    if not word:
        raise FormatError(path, number, "the word is empty")
    if not tags.is_tag(tag):
        raise FormatError(path, number, f"{tag!r} is not a tag: expected O, B-X or I-X")
    if not _NAMES.fullmatch(names) or not _NUMBERS.fullmatch(ends):
        raise FormatError(path, number, f"found {names!r} and {ends!r}, expected two lists such as ['Kill'] and [4]")
    kinds = [match.group(1) or match.group(2) or "" for match in _NAME.finditer(names)]
    targets = [int(target) for target in re.findall(r"[0-9]+", ends)]
    if len(kinds) != len(targets):
        raise FormatError(path, number, f"{len(kinds)} relations lead to {len(targets)} words")
    if "" in kinds:
        raise FormatError(path, number, "a relation without a name")
    rows.arrows += [(number, k, len(rows.words), t) for k, t in zip(kinds, targets, strict=True) if k != _NONE]
    rows.words.append(word)
    rows.tags.append(tag)


def _sentence(rows: _Rows, path: Path, ledger: Ledger) -> Sentence:
    entities, repairs = tags.decode(rows.tags)
    ledger.note(tags.REPAIRED, repairs)
    ending_at = {entity.range.end - 1: number for number, entity in enumerate(entities)}
    relations = []
    for line, kind, head, tail in rows.arrows:
        if tail >= len(rows.words):
            raise FormatError(path, line, f"relation {kind!r} leads to word {tail}, the sentence has {len(rows.words)}")
        if head in ending_at and tail in ending_at:
            relations.append(Relation(kind, ending_at[head], ending_at[tail]))
        else:
            ledger.lose("relations", "between words of which one ends no entity")
    return Sentence(rows.id, tuple(rows.words), tuple(entities), tuple(relations))


def write(sentences: Iterable[Sentence], path: Path, ledger: Ledger, /) -> None:
    with writing(path) as file:
        for sentence in sentences:
            kept = fitted(sentence, _HOLDS, ledger, not_in_a_column)
            name = " ".join(sentence.id.split())
            ledger.note("ids that cannot stand in a line, changed", int(name != sentence.id or not name))
            file.write(f"#doc {name}\n")
            words = safe_words(kept, "\t", ledger)
            columns = tags.encode(kept.entities, len(words)), _arrows(kept, ledger)
            for place, (word, tag, (names, ends)) in enumerate(zip(words, *columns, strict=True)):
                file.write(f"{place}\t{word}\t{tag}\t[{', '.join(names)}]\t{ends}\n")


def _arrows(sentence: Sentence, ledger: Ledger) -> Sequence[tuple[list[str], list[int]]]:
    """The quoted names of the relations at each word, and the words they lead to."""
    found: list[tuple[list[str], list[int]]] = [([], []) for _ in sentence.words]
    for relation in sentence.relations:
        quote = "'" if "'" not in relation.type else '"'
        name = f"{quote}{relation.type}{quote}"
        if relation.type == _NONE or not _NAME.fullmatch(name) or re.search(r"[\t\n]", name):
            ledger.lose("relations", "with a name that the columns cannot hold")
            continue
        head, tail = (sentence.entities[end].range.end - 1 for end in (relation.head, relation.tail))
        found[head][0].append(name)
        found[head][1].append(tail)
    return [arrows if arrows[0] else ([f"'{_NONE}'"], [place]) for place, arrows in enumerate(found)]


def sniff(sample: Sample) -> bool:
    rows = [line for line in sample.lines if line.strip()][:2]
    if len(rows) < 2 or "\t" in rows[0] or not _MARK.fullmatch(rows[0]):
        return False
    return rows[1].count("\t") == 4 or _MARK.fullmatch(rows[1]) is not None


FORMAT = Format(
    name="multihead",
    summary="the columns of multi-head selection: number, word, BIO tag, relations and the words they lead to",
    read=read,
    write=write,
    sniff=sniff,
    extensions=(".multihead",),
    holds=_HOLDS,
    keeps=frozenset(("ids",)),
)
