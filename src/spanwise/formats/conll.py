"""CoNLL columns: one word per line with its tags, a blank line between sentences (IOB2, LitBank, GermEval …).

The columns of words and tags are detected, or given: ``conll:words=1,labels=2+3``. Several tag columns are
the levels of nested entities. All tag schemes are read. Tags without a prefix (``PER``, as in Few-NERD)
form one entity as long as they stay the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from spanwise.core import tags
from spanwise.core.counting import counted
from spanwise.core.errors import FormatError
from spanwise.core.types import Entity, Sentence
from spanwise.files.names import default_id, stem
from spanwise.files.reading import read_lines
from spanwise.files.writing import open_output
from spanwise.formats.base import INTEGER, NAME, YES_OR_NO, Format, Ledger, Option, fill_empty_words, one_of, parse_integer
from spanwise.formats.conll_layout import DOCUMENT, Layout, cells_at, find_layout, guess_layout, strip_tag
from spanwise.formats.shared.sample import Sample

_ID = re.compile(r"#\s*(?:sent_)?id\s*[=:]\s*(\S.*)")
_SEPARATORS = {"tab": "\t", "space": " "}


@dataclass
class _Rows:
    """The rows of the current sentence."""

    line: int = 0  # of the last row
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
    with_annotations: bool = True,
) -> Iterator[Sentence]:
    """Read columns, counted from 0 or from the end (-1, -2 …). ``type`` is the type for tags without one.

    ``with_annotations=False`` needs no tags, and does not check them.
    """
    layout = find_layout(path, words, labels, pos, separator, type, needs_tags=with_annotations)
    tag_columns = layout.labels if with_annotations else ()
    document, position, count = 0, 0, 0
    rows = _Rows(columns=[[] for _ in tag_columns])
    for number, line in read_lines(path):
        starts_document = line.startswith(DOCUMENT)
        if line.strip() and not starts_document:
            _add_row(rows, layout, tag_columns, line, path, number, ledger)
            continue
        if rows.words:
            yield _to_sentence(rows, layout, path, count, document, position, ledger)
            count, position = count + 1, position + 1
            rows = _Rows(columns=[[] for _ in tag_columns])
        if starts_document:
            document, position = document + 1, 0
    if rows.words:
        yield _to_sentence(rows, layout, path, count, document, position, ledger)


def _add_row(
    rows: _Rows, layout: Layout, tag_columns: tuple[int, ...], line: str, path: Path, number: int, ledger: Ledger
) -> None:  # fmt: skip
    cells = layout.split(line)
    if line.startswith("#") and not layout.is_row(cells):
        id = _ID.match(line)
        if id:
            rows.id = id.group(1).strip()
        else:
            ledger.note("comment lines skipped")
        return
    needed = (layout.words, *tag_columns, *(() if layout.pos is None else (layout.pos,)))
    if not all(cells_at(cells, column) for column in needed):
        columns = f", tags in {'+'.join(map(str, tag_columns))}" if tag_columns else ""
        expected = f"word in column {layout.words}{columns}"
        raise FormatError(
            path, number, f"found {counted(len(cells), 'column')}, expected more ({expected}; columns count from 0)"
        )
    word = cells[layout.words]
    for column, label in zip(rows.columns, tag_columns, strict=True):
        tag = strip_tag(cells[label])
        if not layout.is_tag(tag):
            expected = "expected O or a tag such as B-X, I-X, E-X, S-X"
            raise FormatError(path, number, f"{cells[label]!r} in column {label} is not a tag; {expected}")
        ledger.note("tags with surrounding spaces, trimmed", int(tag != cells[label]))
        column.append(tags.with_type(tag, layout.untyped) if layout.untyped else tag)
    rows.words.append(word)
    rows.line = number
    if layout.pos is not None:
        rows.pos.append(cells[layout.pos])


def _to_sentence(rows: _Rows, layout: Layout, path: Path, count: int, document: int, position: int, ledger: Ledger) -> Sentence:
    entities: list[Entity] = []
    for column in rows.columns:
        decoded, repairs = (tags.decode_runs(column), 0) if layout.is_plain else tags.decode(column)
        entities += decoded
        ledger.note(tags.REPAIRED, repairs)
        if layout.untyped:
            ledger.note(tags.untyped_tags_note("conll", layout.untyped), len(decoded))
    distinct = tuple(dict.fromkeys(entities))
    ledger.note("entities repeated in several tag columns, merged", len(entities) - len(distinct))
    try:
        return Sentence(
            id=rows.id or default_id(path, count),
            words=fill_empty_words(rows.words, ledger),
            entities=distinct,
            pos=tuple(rows.pos) if layout.pos is not None else None,
            document=f"{stem(path)}-d{document}" if document else None,
            position=position if document else None,
        )
    except ValueError as error:
        raise FormatError(path, rows.line, str(error)) from None


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
    """Write one tag column, or ``levels`` columns for nested entities, wider entities first."""
    delimiter = _SEPARATORS[separator]
    document: str | None = None
    with open_output(path) as file:
        for sentence in sentences:
            if documents and sentence.document != document:
                document = sentence.document
                file.write(delimiter.join([DOCUMENT, *(["-"] if pos else []), *["O"] * levels]) + "\n\n")
            if not sentence.words:
                ledger.lose("sentences", "without words")
                continue
            if ids:
                id = " ".join(sentence.id.split()) or "-"
                ledger.note("ids changed to fit in a comment", int(id != sentence.id))
                file.write(f"# id = {id}\n")
            columns = tag_columns(sentence, levels, scheme, ledger, delimiter)
            if pos:
                columns.insert(0, [_escape(tag, delimiter) or "-" for tag in sentence.pos or ["-"] * len(sentence.words)])
            _write_rows(file, escape_words(sentence, delimiter, ledger), columns, delimiter)


def _write_rows(file: IO[str], words: list[str], columns: list[list[str]], delimiter: str) -> None:
    for row in zip(words, *columns, strict=True):
        file.write(delimiter.join(row) + "\n")
    file.write("\n")


def tag_columns(sentence: Sentence, levels: int, scheme: str, ledger: Ledger, delimiter: str = "\t") -> list[list[str]]:
    """Return the tag columns of a sentence; entities that do not fit are counted as lost."""
    entities = dict.fromkeys(sentence.entities)
    ledger.note("duplicate entities, merged", len(sentence.entities) - len(entities))
    contiguous = [entity for entity in entities if not entity.is_discontinuous]
    ledger.lose("entities", "discontinuous", len(entities) - len(contiguous))
    writable = [entity for entity in contiguous if _escape(entity.type, delimiter) == entity.type == entity.type.rstrip(" ")]
    ledger.lose("entities", "with whitespace in the type", len(contiguous) - len(writable))
    by_level = tags.split_into_levels(writable, max_levels=levels)
    ledger.lose("entities", "overlapping another", len(writable) - sum(map(len, by_level)))
    ledger.lose("relations", "not supported by the format", len(sentence.relations) + len(sentence.links))
    by_level += [[]] * (levels - len(by_level))
    return [tags.encode(level, len(sentence.words), scheme) for level in by_level]


def escape_words(sentence: Sentence, delimiter: str, ledger: Ledger) -> list[str]:
    """Return the words with ``_`` for characters that a column cannot hold."""
    words = [_escape(word, delimiter) for word in sentence.words]
    changed = sum(a != b for a, b in zip(words, sentence.words, strict=True))
    ledger.lose("words", "with characters that columns cannot hold, replaced by _", changed)
    return words


def _escape(text: str, delimiter: str) -> str:
    escaped = re.sub(r"[\t\n]|\r(?=$)" if delimiter == "\t" else r"[ \t\n]|\r(?=$)", "_", text)
    return "_" + escaped[1:] if escaped.startswith((DOCUMENT, "\ufeff")) else escaped


def sniff(sample: Sample) -> bool:
    first = next((line.strip() for line in sample.lines if line.strip()), "")
    if sample.dicts or (first.startswith("<") and first.endswith(">")):  # JSON and XML
        return False
    layout = guess_layout(sample.lines)
    if layout is None:
        return False
    return not layout.is_plain or bool(layout.untyped) or sample.path.suffix.lower() in FORMAT.extensions


def _parse_columns(value: str) -> tuple[int, ...]:
    return tuple(parse_integer(part) for part in value.split("+"))


def _parse_positive(value: str) -> int:
    if parse_integer(value) < 1:
        raise ValueError(f"expected 1 or more, found {value}")
    return parse_integer(value)


def _metadata(*, pos: bool = False, ids: bool = False, **others: Any) -> frozenset[str]:
    return frozenset(kind for kind, is_written in (("pos", pos), ("ids", ids)) if is_written)


FORMAT = Format(
    name="conll",
    summary="one word per line with its tags (BIO, BIOES, BMES, BILOU, IOB1), in one or more columns",
    read=read,
    write=write,
    sniff=sniff,
    extensions=(".conll", ".bio", ".iob", ".iob2", ".bioes", ".tsv"),
    metadata_for=_metadata,
    can_lack_annotations=True,
    read_options={
        "words": INTEGER,
        "labels": Option(_parse_columns, "N+N"),
        "pos": INTEGER,
        "separator": one_of("tab", "space"),
        "type": NAME,
    },
    write_options={
        "scheme": one_of(*tags.SCHEMES),
        "levels": Option(_parse_positive, "N"),
        "separator": one_of("tab", "space"),
        "pos": YES_OR_NO,
        "ids": YES_OR_NO,
        "documents": YES_OR_NO,
    },
)
