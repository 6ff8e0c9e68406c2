"""Rows of web archives: extracted text (WET) and pages (WARC), read with FastWARC and Resiliparse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from spanwise.annotation.records import Row
from spanwise.annotation.sources import Source
from spanwise.core.errors import FormatError, SpanwiseError

PLAIN, HTML = "text/plain", ("text/html", "application/xhtml+xml")
ParsedRow: TypeAlias = tuple[int, Row, str | None, int]  # place in the file, row, problem, size in bytes


def read_archive(source: Source, text_column: str) -> Iterator[ParsedRow]:
    """Yield a row with ``url``, ``date`` and the text for each record of extracted text and each page.

    Other records (requests, images, redirects) have no text and are skipped.
    """
    fastwarc = import_fastwarc(source)
    kinds = fastwarc.WarcRecordType.conversion | fastwarc.WarcRecordType.response
    with source.path.open("rb") as file:  # FastWARC detects the compression
        for record in fastwarc.ArchiveIterator(file, record_types=kinds, parse_http=True):
            expected, body = record.content_length, record.reader.read()
            if len(body) < expected:
                raise FormatError(source.path, None, f"ends within a record ({len(body)} of {expected} bytes); it is damaged")
            kind = record.http_content_type or PLAIN if record.is_http else PLAIN
            if kind != PLAIN and kind not in HTML:
                continue
            row = {"url": record.headers.get("WARC-Target-URI"), "date": record.headers.get("WARC-Date")}
            try:
                text, problem = _extract(body, kind, record.http_charset if record.is_http else "utf-8"), None
            except Exception as error:  # of the HTML parser, on any page
                text, problem = None, f"no text could be extracted: {error}"
            yield record.stream_pos, {**row, text_column: text}, problem, len(body)


def import_fastwarc(source: Source) -> Any:
    try:
        import fastwarc.warc
        import resiliparse  # noqa: F401
    except ImportError:
        raise SpanwiseError(f"{source.path}: web archives need FastWARC; run pip install 'spanwise[warc]'") from None
    return fastwarc.warc


def _extract(body: bytes, kind: str, charset: str | None) -> str:
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.encoding import bytes_to_str, detect_encoding

    text: str = bytes_to_str(body, charset or detect_encoding(body))
    return str(extract_plain_text(text, main_content=True)) if kind in HTML else text
