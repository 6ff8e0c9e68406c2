"""Columns: a word a line with its tags, a blank line between sentences (CoNLL, IOB2, LitBank, GermEval …).

Which columns hold the word and the tags is seen from the file and can be said: ``conll:words=1,labels=2+3``. Several columns of
tags are the levels of nested entities. Every tag scheme is read; tags without a letter (``PER``, as in Few-NERD) are read
as one entity as long as they stay the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from spanwise.core import tags
from spanwise.core.errors import FormatError
from spanwise.core.types import Entity, Sentence
from spanwise.files.names import default_id, stem
from spanwise.files.reading import lines
from spanwise.files.writing import writing
from spanwise.formats.base import NAME, WHOLE, YES_OR_NO, Format, Ledger, Option, one_of, whole
from spanwise.formats.conll_layout import DOCUMENT, Layout, cells_at, find_layout, look, tag_in
from spanwise.formats.shared.sample import Sample

_ID = re.compile(r"#\s*(?:sent_)?id\s*[=:]\s*(\S.*)")
_SEPARATORS = {"tab": "\t", "space": " "}


@dataclass
class _Gathered:
    """The rows of the sentence being read."""

    number: int = 0
    id: str | None = None
    words: list[str] = field(default_factory=list)
    pos: list[str] = field(default_factory=list)
    columns: list[list[str]] = field(default_factory=list)


def read(
    path: Path,
    ledger: Ledger,
    /,
    *,
    words: int | None = None,
    labels: tuple[int, ...] | None = None,
    pos: int | None = None,
    separator: str | None = None,
    type: str = tags.UNTYPED,
) -> Iterator[Sentence]:
    """Columns count from 0, or from the end with -1, -2 … ``type`` is what tags mean that are a letter alone."""
    layout = find_layout(path, words, labels, pos, separator, type)
    document, position = 0, 0
    gathered = _Gathered(columns=[[] for _ in layout.labels])
    number, count = 0, 0
    for number, line in lines(path):
        if line.startswith(DOCUMENT):
            if gathered.words:
                yield _sentence(gathered, layout, path, count, document, position, ledger)
                count += 1
                gathered = _Gathered(columns=[[] for _ in layout.labels])
            document, position = document + 1, 0
            continue
        if line.strip():
            _gather(gathered, layout, line, path, number, ledger)
            continue
        if gathered.words:
            yield _sentence(gathered, layout, path, count, document, position, ledger)
            count, position = count + 1, position + 1
            gathered = _Gathered(columns=[[] for _ in layout.labels])
    if gathered.words:
        yield _sentence(gathered, layout, path, count, document, position, ledger)


def _gather(gathered: _Gathered, layout: Layout, line: str, path: Path, number: int, ledger: Ledger) -> None:
    cells = layout.split(line)
    if line.startswith("#") and not layout.is_row(cells):
        name = _ID.match(line)
        if name:
            gathered.id = name.group(1).strip()
        else:
            ledger.note("comment lines left out")
        return
    needed = (layout.words, *layout.labels, *(() if layout.pos is None else (layout.pos,)))
    if not all(cells_at(cells, column) for column in needed):
        named = f"word in column {layout.words}, tags in {'+'.join(map(str, layout.labels))}"
        raise FormatError(path, number, f"found {len(cells)} columns, expected more ({named}; columns count from 0)")
    word = cells[layout.words]
    if not word:
        raise FormatError(path, number, f"the word (column {layout.words}) is empty")
    for column, label in zip(gathered.columns, layout.labels, strict=True):
        tag = tag_in(cells[label])
        if not layout.is_tag(tag):
            expected = "expected O or a tag such as B-X, I-X, E-X, S-X"
            raise FormatError(path, number, f"{cells[label]!r} in column {label} is not a tag: {expected}")
        ledger.note("tags with blanks around them, trimmed", int(tag != cells[label]))
        column.append(tags.typed(tag, layout.untyped) if layout.untyped else tag)
    gathered.words.append(word)
    gathered.number = number
    if layout.pos is not None:
        gathered.pos.append(cells[layout.pos])


def _sentence(
    gathered: _Gathered, layout: Layout, path: Path, count: int, document: int, position: int, ledger: Ledger
) -> Sentence:
    entities: list[Entity] = []
    for column in gathered.columns:
        found, repairs = (tags.decode_runs(column), 0) if layout.plain else tags.decode(column)
        entities += found
        ledger.note(tags.REPAIRED, repairs)
        if layout.untyped:
            ledger.note(tags.untyped_note("conll", layout.untyped), len(found))
    kept = tuple(dict.fromkeys(entities))
    ledger.note("entities tagged the same in two columns, merged", len(entities) - len(kept))
    try:
        return Sentence(
            id=gathered.id or default_id(path, count),
            words=tuple(gathered.words),
            entities=kept,
            pos=tuple(gathered.pos) if layout.pos is not None else None,
            document=f"{stem(path)}-d{document}" if document else None,
            position=position if document else None,
        )
    except ValueError as error:
        raise FormatError(path, gathered.number, str(error)) from None


def write(
    sentences: Iterable[Sentence],
    path: Path,
    ledger: Ledger,
    /,
    *,
    scheme: str = "bio",
    levels: int = 1,
    separator: str = "tab",
    pos: bool = False,
    ids: bool = False,
    documents: bool = False,
) -> None:
    """One column of tags, or ``levels`` of them for nested entities, the wider ones first."""
    between = _SEPARATORS[separator]
    document: str | None = None
    with writing(path) as file:
        for sentence in sentences:
            if documents and sentence.document != document:
                document = sentence.document
                file.write(between.join([DOCUMENT, *(["-"] if pos else []), *["O"] * levels]) + "\n\n")
            if not sentence.words:
                ledger.lose("sentences", "without words")
                continue
            if ids:
                name = " ".join(sentence.id.split()) or "-"
                ledger.note("ids that cannot stand in a comment, changed", int(name != sentence.id))
                file.write(f"# id = {name}\n")
            columns = tag_columns(sentence, levels, scheme, ledger, between)
            if pos:
                columns.insert(0, [_safe(tag, between) or "-" for tag in sentence.pos or ["-"] * len(sentence.words)])
            _write_rows(file, safe_words(sentence, between, ledger), columns, between)


def _write_rows(file: IO[str], words: list[str], columns: list[list[str]], between: str) -> None:
    for row in zip(words, *columns, strict=True):
        file.write(between.join(row) + "\n")
    file.write("\n")


def tag_columns(sentence: Sentence, levels: int, scheme: str, ledger: Ledger, between: str = "\t") -> list[list[str]]:
    """The columns of tags of a sentence; what does not fit them is in the ledger."""
    entities = dict.fromkeys(sentence.entities)
    ledger.note("entities given twice, merged", len(sentence.entities) - len(entities))
    contiguous = [entity for entity in entities if not entity.is_discontinuous]
    ledger.lose("entities", "discontinuous", len(entities) - len(contiguous))
    kept = [entity for entity in contiguous if _safe(entity.type, between) == entity.type == entity.type.rstrip(" ")]
    ledger.lose("entities", "with white space in the type", len(contiguous) - len(kept))
    placed = tags.levels(kept, most=levels)
    ledger.lose("entities", "overlapping another", len(kept) - sum(map(len, placed)))
    ledger.lose("relations", "no place for relations", len(sentence.relations) + len(sentence.links))
    placed += [[]] * (levels - len(placed))
    return [tags.encode(level, len(sentence.words), scheme) for level in placed]


def safe_words(sentence: Sentence, between: str, ledger: Ledger) -> list[str]:
    """The words as they can stand in a column."""
    words = [_safe(word, between) for word in sentence.words]
    changed = sum(a != b for a, b in zip(words, sentence.words, strict=True))
    ledger.lose("words", "with white space or marks that columns cannot hold, written with _ instead", changed)
    return words


def _safe(text: str, between: str) -> str:
    safe = re.sub(r"[\t\n]|\r(?=$)" if between == "\t" else r"[ \t\n]|\r(?=$)", "_", text)
    return "_" + safe[1:] if safe.startswith((DOCUMENT, "\ufeff")) else safe


def sniff(sample: Sample) -> bool:
    first = next((line.strip() for line in sample.lines if line.strip()), "")
    if sample.dicts or (first.startswith("<") and first.endswith(">")):  # JSON and XML
        return False
    layout = look(sample.lines)
    return layout is not None and (not layout.plain or bool(layout.untyped) or sample.path.suffix.lower() in FORMAT.extensions)


def _numbers(value: str) -> tuple[int, ...]:
    return tuple(whole(part) for part in value.split("+"))


def _positive(value: str) -> int:
    if whole(value) < 1:
        raise ValueError(f"expected 1 or more, found {value}")
    return whole(value)


def _keeps(*, pos: bool = False, ids: bool = False, **others: Any) -> frozenset[str]:
    return frozenset(what for what, is_kept in (("pos", pos), ("ids", ids)) if is_kept)


FORMAT = Format(
    name="conll",
    summary="a word a line with its tags (BIO, BIOES, BMES, BILOU, IOB1), one column or several levels",
    read=read,
    write=write,
    sniff=sniff,
    extensions=(".conll", ".bio", ".iob", ".iob2", ".bioes", ".tsv"),
    keeps_with=_keeps,
    read_options={
        "words": WHOLE,
        "labels": Option(_numbers, "N+N"),
        "pos": WHOLE,
        "separator": one_of("tab", "space"),
        "type": NAME,
    },
    write_options={
        "scheme": one_of(*tags.SCHEMES),
        "levels": Option(_positive, "N"),
        "separator": one_of("tab", "space"),
        "pos": YES_OR_NO,
        "ids": YES_OR_NO,
        "documents": YES_OR_NO,
    },
)
