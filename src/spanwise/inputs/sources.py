"""Inputs of ``spanwise predict``: raw text, JSON records, annotated data, and folders of these."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import IO, cast

from spanwise.core.errors import FormatError, SpanwiseError, UnknownFormatError
from spanwise.core.types import Sentence
from spanwise.corpora.splits import check_no_model
from spanwise.files.disk import temporary_copy
from spanwise.files.encodings import RecodedLines, recoded_copy
from spanwise.files.names import is_hidden, printable, stem
from spanwise.files.reading import read_json_records
from spanwise.files.writing import is_stream
from spanwise.formats import Ledger, can_detect, read
from spanwise.formats.registry import FORMATS, detect, find_format, names_format, split_encoding, with_encoding
from spanwise.formats.shared.sample import Sample
from spanwise.formats.shared.unique_names import UniqueIds, UniqueNames
from spanwise.inputs.recognition import TEXT_RECORDS, has_text_records, note_recognised, recognise, sample_stream
from spanwise.inputs.texts import NEEDS_SPANS
from spanwise.text.reading import TEXT, sentences_from_stream, sentences_from_text
from spanwise.vectors import check_no_vectors

STDIN = "-"
_STDIN_FILE = Path("/dev/stdin")
_STDIN_NAME = "standard input"
INPUT_FORMATS = (TEXT, *FORMATS)


def read_inputs(
    sources: Iterable[str], format: str | None = None, ledger: Ledger | None = None, *, needs_spans: bool = False
) -> Iterator[Sentence]:  # fmt: skip
    """Yield the sentences of all sources: files, folders, and ``-`` for standard input.

    ``.txt`` files and standard input are raw text, unless their content is clearly in another format,
    which the ledger notes; with the format ``text`` every file is raw text. Texts are named after
    their files, and repeated names get a number. Data keeps its ids; ids that occur in an earlier file
    get a number. Annotations are read only if the model ``needs_spans``. Unknown formats and missing
    files raise an error before anything is read.
    """
    format, encoding = split_encoding(format)
    files = _all_files(sources, format)
    if needs_spans and any(_is_raw_text(path, format) for path, _ in files):
        raise SpanwiseError(NEEDS_SPANS)
    names = UniqueNames(ledger)
    streams = [_sentences(path, name, format, encoding, ledger, names, needs_spans) for path, name in files]
    if len(streams) == 1 or all(_is_raw_text(path, format) for path, _ in files):  # no ids to compare
        return chain.from_iterable(streams)
    return chain.from_iterable(map(UniqueIds(ledger).rename, streams))


def input_paths(sources: Iterable[str], format: str | None = None) -> list[Path]:
    """List the paths that ``read_inputs`` reads; standard input is ``/dev/stdin``."""
    return [path or _STDIN_FILE for path, _ in _all_files(sources, split_encoding(format)[0])]


def check_input_formats(sources: Iterable[str], format: str | None = None) -> None:
    """Raise an error for a file whose format is not given and cannot be detected; reads only samples."""
    format, encoding = split_encoding(format)
    if encoding is not None:
        return  # the samples are not in UTF-8
    for path, _ in _all_files(sources, format):
        if path is None or format is not None or is_stream(path) or _is_raw_text(path, format) or has_texts(path):
            continue
        try:
            detect(path)
        except UnknownFormatError as error:
            raise error.with_changes(names=INPUT_FORMATS) from None


def _all_files(sources: Iterable[str], format: str | None) -> list[tuple[Path | None, str]]:
    if format is not None and not names_format(format, TEXT):
        find_format(format, INPUT_FORMATS)
    return [file for source in sources for file in _files(source, format)]


def _files(source: str, format: str | None) -> Iterator[tuple[Path | None, str]]:
    """Yield the paths of a source and the names of their texts; None is standard input."""
    path = Path(source)
    if source == STDIN:
        yield None, "text"
    elif not path.exists():
        raise SpanwiseError(f"{source}: no such file or folder")
    elif not path.is_dir() or _is_single_input(path, format):
        yield path, stem(path)
    else:
        check_no_vectors(path)
        check_no_model(path)
        files = [file for file in sorted(path.rglob("*")) if file.is_file() and not is_hidden(file.relative_to(path))]
        if not files:
            raise SpanwiseError(f"{source}: no files in this folder")
        for file in files:
            yield file, printable(file.relative_to(path).with_suffix("").as_posix())


def _is_single_input(folder: Path, format: str | None) -> bool:
    """Whether the folder is one input, as brat folders are."""
    if format is not None:
        return not names_format(format, TEXT) and find_format(format)[0].can_read(is_folder=True)
    return can_detect(folder)


def _is_raw_text(path: Path | None, format: str | None) -> bool:
    """Whether an input is raw text; standard input may still turn out to be data."""
    if format is not None:
        return names_format(format, TEXT)
    return path is None or (path.suffix.lower() == ".txt" and _recognise_file(path) is None)


def _recognise_file(path: Path) -> str | None:
    """Return the format of a ``.txt`` file that is not raw text."""
    return None if path.suffix.lower() != ".txt" or not path.is_file() else recognise(Sample(path))


def _sentences(
    path: Path | None, name: str, format: str | None, encoding: str | None, ledger: Ledger | None, names: UniqueNames,
    with_annotations: bool,
) -> Iterator[Sentence]:  # fmt: skip
    if encoding is not None and path is None and (format is None or names_format(format, TEXT)):
        lines = RecodedLines(sys.stdin.buffer, encoding, _STDIN_NAME)
        yield from sentences_from_stream(cast(IO[bytes], lines), names.make_unique(name), _STDIN_NAME)
        return
    if encoding is not None and path is not None and format is not None and not names_format(format, TEXT):
        yield from read(path, with_encoding(format, encoding), ledger, with_annotations=with_annotations)
        return
    if encoding is not None:
        with recoded_copy(path or _STDIN_FILE, encoding) as copy:
            try:
                yield from _sentences(copy, name, format, None, ledger, names, with_annotations)
            except UnknownFormatError as error:
                raise error.with_changes(path=path) from None
            except SpanwiseError as error:
                raise SpanwiseError(str(error).replace(str(copy), str(path or _STDIN_NAME))) from None
        return
    if path is None and format is None:
        yield from _standard_input(name, ledger, names)
    elif _is_raw_text(path, format):
        file, shown = (sys.stdin.buffer, _STDIN_NAME) if path is None else (path.open("rb"), str(path))
        yield from sentences_from_stream(file, names.make_unique(name), shown)
    elif path is not None and format is None and not with_annotations and has_texts(path):
        yield from text_records(path, names, ledger)
    else:
        recognised = _recognise_file(path) if path is not None and format is None else None
        if recognised is not None:
            note_recognised(ledger, recognised)
        if recognised == TEXT_RECORDS and path is not None:
            yield from text_records(path, names, ledger)
            return
        try:
            yield from read(path or _STDIN_FILE, format or recognised, ledger, with_annotations=with_annotations)
        except UnknownFormatError as error:
            raise error.with_changes(names=INPUT_FORMATS) from None


def _standard_input(name: str, ledger: Ledger | None, names: UniqueNames) -> Iterator[Sentence]:
    """Yield the sentences of raw text as its lines arrive, or of data that the first lines show."""
    sample, file = sample_stream(sys.stdin.buffer)
    format = recognise(sample)
    if format is None:
        yield from sentences_from_stream(file, names.make_unique(name), _STDIN_NAME)
        return
    note_recognised(ledger, format)
    with temporary_copy(file, "stdin") as copy:
        try:
            yield from (
                text_records(copy, names, ledger)
                if format == TEXT_RECORDS
                else read(copy, format, ledger, with_annotations=False)
            )
        except SpanwiseError as error:
            raise SpanwiseError(str(error).replace(str(copy), _STDIN_NAME)) from None


def has_texts(path: Path) -> bool:
    """Whether a file in no known format holds JSON records with a ``text`` each."""
    if path.is_dir() or path.suffix.lower() not in (".jsonl", ".json"):
        return False
    return not can_detect(path) and has_text_records(Sample(path))


def text_records(path: Path, names: UniqueNames, ledger: Ledger | None) -> Iterator[Sentence]:
    """Yield the sentences of JSON records with a ``text``.

    Other keys go to the first sentence of the record. A record without an id is named after the
    file and its index.
    """
    file_name = ""
    for index, (line, record) in enumerate(read_json_records(path)):
        if not isinstance(record, dict) or not isinstance(record.get("text"), str):
            raise FormatError(path, line, "expected an object with a text, as in the previous records")
        if not record["text"].strip():
            if ledger is not None:
                ledger.note("documents without words, skipped")
            continue
        rest = {key: value for key, value in record.items() if key not in ("id", "text")}
        if isinstance(record.get("id"), str | int):
            name = str(record["id"])
        else:
            file_name = file_name or names.make_unique(stem(path))
            name = f"{file_name}-{index}"
        for sentence in sentences_from_text(record["text"], name):
            yield Sentence(
                sentence.id, sentence.words, text=sentence.text, starts=sentence.starts, document=sentence.document,
                position=sentence.position, start=sentence.start, extra=(rest or None) if sentence.position == 0 else None,
            )  # fmt: skip
