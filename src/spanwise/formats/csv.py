"""CSV and TSV: a table with one row per entity, with character offsets.

``document,start,end,type,text,score,document_text``. The names are in the first line, in any order; the last three
are optional. ``text`` is compared with the document, and the offsets are authoritative. The starts
and ends of a discontinuous entity are separated by semicolons: ``0;10`` and ``5;14``. A row without
start, end and type names a document without entities. Other columns are stored in ``Entity.extra``.

The text of a document is in the first of these places:

- in ``document_text`` in one row of the document. Its rows must be together.
- in the file or folder of the option ``texts``, or in ``texts.csv`` or ``texts.tsv`` next to the table:
  a table with the columns ``document`` and ``text``
- in ``DOCUMENT.txt`` next to the table, or in the folder of the option ``texts``

The writer writes ``document_text`` in the first row of each document, unless ``texts=no`` is set.
Relations are not supported.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from spanwise.core.counting import counted
from spanwise.core.errors import FormatError
from spanwise.core.types import Sentence, Span
from spanwise.files.companions import TABLES_OF_TEXTS
from spanwise.files.reading import read_text
from spanwise.files.writing import open_output
from spanwise.formats.base import PATH, YES_OR_NO, Format, Ledger, one_of
from spanwise.formats.csv_tables import SEPARATORS, Table, similar_names, split_header, to_line
from spanwise.formats.shared.documents import Document, Mention, to_documents
from spanwise.formats.shared.sample import Sample
from spanwise.formats.shared.splitting import to_sentences
from spanwise.formats.shared.unique_names import UniqueNames
from spanwise.text.text_index import TextIndex

_REQUIRED = ("document", "start", "end", "type")
_COLUMNS = (*_REQUIRED, "text", "score", "document_text")
_OFFSET = re.compile(r"([0-9]{1,15})(?:\.0+)?")  # 3.0: spreadsheets and pandas write so if the column has empty cells

_Row = tuple[int, dict[str, str]]


def read(
    path: Path,
    ledger: Ledger,
    /,
    *,
    separator: str | None = None,
    texts: str | None = None,
    split: bool = True,
    with_annotations: bool = True,
) -> Iterator[Sentence]:
    """Read documents. ``texts`` is a folder or table of texts; ``split=False`` keeps each text as one sentence."""
    table = Table(path, SEPARATORS[separator] if separator else None)
    if table.is_empty:
        return
    has_only_texts = not with_annotations and "text" in table.columns and not {"start", "end"} & set(table.columns)
    table.require(("document", "text") if has_only_texts else _REQUIRED)
    rows = ((line, row) for line, row in table.rows() if _check_document(row, path, line))
    if has_only_texts or "document_text" in table.columns:
        groups = _consecutive(rows, path, "text" if has_only_texts else "document_text")
    else:
        groups = _with_texts(rows, path, texts, ledger)
    for name, text, members in groups:
        document = Document(name, text)
        if with_annotations:
            _add_mentions(document, members, path, ledger)
        yield from to_sentences(document, path, ledger, line=members[0][0], split=split)


def _check_document(row: dict[str, str], path: Path, line: int) -> bool:
    if not row["document"]:
        raise FormatError(path, line, "the column 'document' is empty; expected the name of a document")
    return True


def _consecutive(rows: Iterator[_Row], path: Path, column: str) -> Iterator[tuple[str, str, list[_Row]]]:
    """Yield documents whose text is in the table, one after another."""
    seen: set[str] = set()
    for name, group in groupby(rows, key=lambda row: row[1]["document"]):
        members = list(group)
        if name in seen:
            problem = f"document {name!r:.60} occurs again; its rows must be together: sort the table by document"
            raise FormatError(path, members[0][0], problem)
        seen.add(name)
        text = next((row[column] for _, row in members if row[column]), "")
        if other := next((line for line, row in members if row[column] not in ("", text)), None):
            raise FormatError(path, other, f"document {name!r:.60} has two different texts")
        if not text and any(row.get("start") for _, row in members):
            raise FormatError(path, members[0][0], f"no text of document {name!r:.60} in the column {column!r}")
        yield name, text, members


def _with_texts(rows: Iterator[_Row], path: Path, texts: str | None, ledger: Ledger) -> Iterator[tuple[str, str, list[_Row]]]:
    """Yield the documents of a table whose texts are in other files."""
    groups: dict[str, list[_Row]] = {}
    for line, row in rows:
        groups.setdefault(row["document"], []).append((line, row))
    place = path.parent if texts is None else Path(texts)
    if not place.exists():
        raise FormatError(path, None, f"the texts {texts!r} do not exist; expected a folder or a table of texts")
    table = next((file for name in TABLES_OF_TEXTS if (file := place / name).is_file()), None) if place.is_dir() else place
    if table is not None and table != path:
        texts_table = Table(table)
        texts_table.require(("document", "text"))
        for name, text, _ in _consecutive(texts_table.rows(), table, "text"):
            members = groups.pop(name, None)
            ledger.note("texts of documents without a row in the table, skipped", int(members is None))
            if members is not None:
                yield name, text, members
    for name, members in groups.items():
        yield name, _read_document_file(name, place if place.is_dir() else place.parent, path, members[0][0]), members


def _read_document_file(name: str, folder: Path, path: Path, line: int) -> str:
    file = folder / (name if name.lower().endswith(".txt") else f"{name}.txt")
    if "\0" in name or ".." in Path(name).parts or Path(name).is_absolute():
        raise FormatError(path, line, f"document {name!r:.60} is not the name of a file in the folder of the texts")
    try:
        return read_text(file)
    except OSError:
        places = f"{file.name:.60}, in texts.csv (with the columns document and text) or in a column 'document_text'"
        raise FormatError(path, line, f"no text of document {name!r:.60}; expected it in {places}") from None


def _add_mentions(document: Document, members: list[_Row], path: Path, ledger: Ledger) -> None:
    index = TextIndex(document.text)
    for line, row in members:
        if not (row["start"] or row["end"] or row["type"]):
            continue
        starts, ends = (_parse_offsets(row[name], name, path, line) for name in ("start", "end"))
        if len(starts) != len(ends):
            raise FormatError(path, line, f"{counted(len(starts), 'start')}, but {counted(len(ends), 'end')}")
        if not row["type"]:
            raise FormatError(path, line, "the column 'type' is empty")
        fragments = tuple(map(Span, starts, ends))
        extra = {name: value for name, value in row.items() if value and name and name not in _COLUMNS}
        score = _parse_score(row.get("score", ""), path, line)
        document.mentions.append(Mention(str(line), row["type"], fragments, score, extra or None, line))
        if row.get("text") and not index.matches(sorted(fragments), row["text"]):
            ledger.note("entities whose text differs from the document at their offsets")


def _parse_offsets(cell: str, name: str, path: Path, line: int) -> list[int]:
    offsets = [_OFFSET.fullmatch(part.strip()) for part in cell.split(";")]
    if not all(offsets):
        problem = f"{name}: expected a number of characters, or several as in 0;10, found {cell!r:.60}"
        raise FormatError(path, line, problem)
    return [int(offset[1]) for offset in offsets if offset]


def _parse_score(cell: str, path: Path, line: int) -> float | None:
    try:
        score = float(cell) if cell.strip() else None
    except ValueError:
        score = math.nan
    if score is not None and not math.isfinite(score):
        raise FormatError(path, line, f"score: expected a number, found {cell!r:.60}")
    return score


def write(
    sentences: Iterable[Sentence], path: Path, ledger: Ledger, /, *, separator: str | None = None, texts: bool = True
) -> None:
    """Write documents. The separator is a tab for ``.tsv`` files and a comma otherwise."""
    delimiter = SEPARATORS[separator or ("tab" if path.suffix.lower() == ".tsv" else "comma")]
    names = UniqueNames(ledger)
    with open_output(path) as file:
        file.write(to_line(_COLUMNS if texts else _COLUMNS[:-1], delimiter))
        for document in to_documents(sentences, ledger):
            ledger.lose("relations", "not supported by the format", len(document.relations))
            ledger.note("documents without a name, named _", int(not document.id))
            name = names.make_unique(document.id or "_")
            for number, cells in enumerate(_rows(document)):
                text = [document.text if number == 0 else ""] if texts else []
                file.write(to_line([name, *cells, *text], delimiter))


def _rows(document: Document) -> Iterator[list[str]]:
    for mention in document.mentions:
        starts, ends = zip(*mention.fragments, strict=True)
        surface = " ".join(document.text[start:end] for start, end in mention.fragments)
        offsets = [";".join(map(str, numbers)) for numbers in (starts, ends)]
        yield [*offsets, mention.type, surface, "" if mention.score is None else repr(float(mention.score))]
    if not document.mentions:
        yield [""] * 5


def sniff(sample: Sample) -> bool:
    first = next((line for line in sample.lines if line.strip()), "")
    columns = set(split_header(first)[0]) if len(first) < 10_000 else set()
    if columns >= {*_REQUIRED} or columns == {"document", "text"}:
        return True
    similar = similar_names(columns)
    return sample.path.suffix.lower() in (".csv", ".tsv") and {"start", "end"} <= similar and len(similar) >= 3


FORMAT = Format(
    name="csv",
    has_character_offsets=True,
    summary="a table with one row per entity: document, start, end, type, text, score (.csv, or .tsv with tabs)",
    read=read,
    write=write,
    sniff=sniff,
    extensions=(".csv",),
    companions=TABLES_OF_TEXTS,
    supports=frozenset(("nested", "crossing", "discontinuous", "several types")),
    metadata=frozenset(("documents", "scores")),
    read_options={"separator": one_of(*SEPARATORS), "texts": PATH, "split": YES_OR_NO},
    write_options={"separator": one_of(*SEPARATORS), "texts": YES_OR_NO},
)
