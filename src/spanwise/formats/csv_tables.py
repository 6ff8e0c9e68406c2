"""Tables in CSV and TSV files: separators, quotes, and the names in the first line."""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from spanwise.core.counting import counted
from spanwise.core.errors import FormatError
from spanwise.files.limits import TABLE_COLUMNS
from spanwise.files.reading import decode_line

SEPARATORS = {"comma": ",", "tab": "\t", "semicolon": ";"}
# Names that other tools give to the columns, for suggestions.
SYNONYMS = {
    "document": ("doc", "doc_id", "docid", "document_id", "id", "file", "filename", "file_name", "pmid", "name"),
    "start": ("begin", "from", "offset", "start_char", "char_start", "start_offset", "begin_offset", "off0"),
    "end": ("stop", "to", "end_char", "char_end", "end_offset", "off1"),
    "type": ("label", "tag", "class", "category", "entity", "entity_type", "mark"),
    "text": ("mention", "span", "word", "words", "surface", "string", "entity_text"),
    "score": ("confidence", "probability", "prob"),
    "document_text": ("doc_text", "full_text", "content"),
}
_WORDS = {"word", "words", "token", "tokens"}
_NEEDS_QUOTES = re.compile(r'[",;\t\r\n]|^\s|\s$')


def split_header(line: str, separator: str | None = None) -> tuple[list[str], str]:
    """Return the names in the first line of a table in lower case, and the separator.

    >>> split_header("Document;Start;End")
    (['document', 'start', 'end'], ';')
    """
    candidates = [separator] if separator else SEPARATORS.values()
    headers = [(_split_line(line, candidate), candidate) for candidate in candidates]
    return max(headers, key=lambda header: (len(SYNONYMS.keys() & set(header[0])), len(header[0])))


def similar_names(columns: Iterable[str]) -> set[str]:
    """Return the column names of the format that are present, also under the name that another tool gives them."""
    present = set(columns)
    return {name for name, others in SYNONYMS.items() if present & {name, *others}}


def _split_line(line: str, separator: str) -> list[str]:
    try:
        cells = next(csv.reader([line], delimiter=separator), [])
    except csv.Error:
        cells = line.split(separator)
    return [cell.strip().lower() for cell in cells]


class Table:
    """The rows of a table with their line numbers, as cells by column name.

    Names that are missing in a row are empty cells.
    """

    def __init__(self, path: Path, separator: str | None = None) -> None:
        self.path = path
        with path.open("rb") as file:
            lines = ((number, decode_line(raw, path, number)) for number, raw in enumerate(file, 1))
            self.header_line, first = next(((number, line) for number, line in lines if line.strip()), (1, ""))
        self.is_empty = not first
        self.columns, self.separator = split_header(first.rstrip("\r\n"), separator)
        if len(self.columns) > TABLE_COLUMNS:
            raise FormatError(path, self.header_line, f"has {len(self.columns):,} columns; the limit is {TABLE_COLUMNS:,}")

    def require(self, names: Sequence[str]) -> None:
        """Report missing columns, and which of the existing ones may be meant."""
        missing = [name for name in names if name not in self.columns]
        if duplicate := next((name for name in self.columns if name and self.columns.count(name) > 1), None):
            raise FormatError(self.path, self.header_line, f"two columns are named {duplicate!r:.40}")
        if not missing:
            return
        if _WORDS & set(self.columns) and not {"start", "end"} & similar_names(self.columns):
            problem = (
                f"has a row per word; expected a row per entity with the columns {', '.join(names)}; or write words and tags "
                "with tabs between them, an empty line after each sentence and no header, which is the format conll"
            )
            raise FormatError(self.path, self.header_line, problem)
        renames = [(other, name) for name in missing for other in SYNONYMS[name] if other in self.columns][:5]
        advice = "; rename " + ", ".join(f"{other!r} to {name!r}" for other, name in renames) if renames else ""
        if renames and (absent := [name for name in missing if name not in dict(renames).values()]):
            advice += f", and add {', '.join(map(repr, absent))}"
        columns = ", ".join(f"{name!r:.40}" for name in self.columns[:10])
        listed = f"{'s' * (len(missing) > 1)} {', '.join(map(repr, missing))}"
        problem = f"no column{listed} in the first line; expected {', '.join(names)}, found {columns}{advice}"
        raise FormatError(self.path, self.header_line, problem)

    def rows(self) -> Iterator[tuple[int, dict[str, str]]]:
        csv.field_size_limit(sys.maxsize)  # the default is less than the text of a long document
        with self.path.open("rb") as file:
            lines = (decode_line(raw, self.path, number) for number, raw in enumerate(file, 1))
            reader = csv.reader(lines, delimiter=self.separator, strict=True)
            while True:
                line = reader.line_num + 1
                try:
                    cells = next(reader, None)
                except csv.Error as error:
                    problem = f"invalid quotes or line breaks ({error}); write quotes in a cell twice and quote the cell"
                    raise FormatError(self.path, line, problem) from None
                if cells is None:
                    return
                if line > self.header_line and any(cells):
                    if any(cells[len(self.columns) :]):
                        problem = (
                            f"expected {counted(len(self.columns), 'column')}, found {len(cells)}; quote cells with separators"
                        )
                        raise FormatError(self.path, line, problem)
                    yield line, dict.fromkeys(self.columns, "") | dict(zip(self.columns, cells, strict=False))


def to_line(cells: Sequence[str], separator: str) -> str:
    """Return the line of a row, with quotes where a cell needs them.

    >>> to_line(["a", 'say "so" again', "c, d"], ",")
    'a,"say ""so"" again","c, d"\\n'
    """
    quoted = ['"' + cell.replace('"', '""') + '"' if _NEEDS_QUOTES.search(cell) else cell for cell in cells]
    return separator.join(quoted) + "\n"
