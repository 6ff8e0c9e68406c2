"""Text in other encodings than UTF-8, recoded before it is read."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from spanwise.core.errors import SpanwiseError
from spanwise.files.companions import companion_files
from spanwise.files.disk import temporary_folder
from spanwise.files.names import is_hidden

_CHUNK = 1 << 16
_SAMPLE = 1 << 20
_XML_ENCODING = re.compile(r"""\A(\ufeff?<\?xml\b[^>]*?)\s+encoding\s*=\s*(?:"[^"]*"|'[^']*')""")
# The marks of UTF-32 start with those of UTF-16.
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16",
}  # fmt: skip


def check_encoding(name: str) -> str:
    """Return the name if Python knows this text encoding.

    >>> check_encoding("latin-1")
    'latin-1'
    """
    try:
        "".encode(name)
        codecs.lookup(name)
    except (LookupError, ValueError, TypeError):
        raise SpanwiseError(f"unknown encoding {name!r:.40}; expected a name such as latin-1, windows-1252 or utf-16") from None
    return name


def marked_encoding(start: bytes) -> str | None:
    """Return the encoding that a byte order mark at the start of a file names; None without a mark, and for UTF-8.

    >>> marked_encoding("a".encode("utf-16")), marked_encoding("a".encode("utf-32")), marked_encoding(b"a")
    ('utf-16', 'utf-32', None)
    """
    return next((encoding for mark, encoding in _BYTE_ORDER_MARKS.items() if start.startswith(mark)), None)


def encoding_advice(raw: bytes, path: Path | str = "") -> str:
    """Return what to do about bytes that are not UTF-8; the start of their file is examined, too.

    >>> encoding_advice("naïve".encode("latin-1")), encoding_advice("“naïve”".encode("windows-1252"))
    ('pass --encoding latin-1', 'pass --encoding windows-1252')
    >>> encoding_advice(b"GIF89a\\x00\\xff")
    'it is a binary file, or UTF-16 (then pass --encoding utf-16-le)'
    """
    start = raw
    if path and Path(path).is_file():
        with Path(path).open("rb") as file:
            start = file.read(_SAMPLE)
    raw += start
    encoding = marked_encoding(start)
    if encoding is None and 0 in raw:
        return "it is a binary file, or UTF-16 (then pass --encoding utf-16-le)"
    return f"pass --encoding {encoding or _single_byte_encoding(raw)}"


def _single_byte_encoding(raw: bytes) -> str:
    """The likely encoding of a Western text with one byte per character."""
    if any(0x80 <= byte < 0xA0 for byte in raw):
        try:
            raw.decode("windows-1252")
        except UnicodeDecodeError:
            return "latin-1"
        return "windows-1252"
    return "latin-1"


class RecodedLines:
    """The lines of a stream in another encoding, as UTF-8; only ``\\n`` ends a line."""

    def __init__(self, file: IO[bytes], encoding: str, name: str) -> None:
        self._text = io.TextIOWrapper(file, encoding=encoding, newline="\n")
        self._encoding, self._name = encoding, name

    def __enter__(self) -> RecodedLines:
        return self

    def __exit__(self, *error: object) -> None:
        self._text.close()

    def __iter__(self) -> Iterator[bytes]:
        try:
            for line in self._text:
                yield line.encode("utf-8", errors="surrogatepass")
        except UnicodeError as error:
            raise _undecodable(self._name, self._encoding, error) from None


@contextmanager
def recoded_copy(path: Path, encoding: str) -> Iterator[Path]:
    """Yield a copy of a file or folder in UTF-8, with the same name; it is removed afterwards.

    Hidden files of a folder, which no reader reads, are not copied. The files that are read together
    with a file are next to the copy, if they have the same encoding.
    """
    with temporary_folder() as folder:
        copy = folder / path.name
        sources = [file for file in sorted(path.rglob("*")) if not is_hidden(file.relative_to(path))] if path.is_dir() else []
        if path.is_dir():
            copy.mkdir()
        for source in sources or [path]:
            target = copy / source.relative_to(path) if sources else copy
            if source.is_dir():
                target.mkdir(exist_ok=True)
            else:
                _recode(source, target, encoding)
        for source in [] if path.is_dir() else companion_files(path):
            try:
                _recode(source, copy.with_name(source.name), encoding)
            except SpanwiseError:  # of another encoding: the reader reports it if it needs the file
                copy.with_name(source.name).unlink()
        yield copy


def _recode(source: Path, target: Path, encoding: str) -> None:
    try:
        with source.open(encoding=encoding, newline="") as file, target.open("w", encoding="utf-8", newline="") as sink:
            # Without the old encoding in an XML declaration, which a parser would apply to the copy.
            sink.write(_XML_ENCODING.sub(r"\1", file.read(_CHUNK), count=1))
            while piece := file.read(_CHUNK):
                sink.write(piece)
    except UnicodeError as error:
        raise _undecodable(str(source), encoding, error) from None


def _undecodable(name: str, encoding: str, error: UnicodeError) -> SpanwiseError:
    reason = error.reason if isinstance(error, UnicodeDecodeError) else str(error)
    return SpanwiseError(f"{name}: not {encoding} ({reason}); pass another --encoding")
