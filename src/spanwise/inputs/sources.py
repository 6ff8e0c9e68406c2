"""What a user wants predicted: raw text, texts in JSON records, data in any readable format, folders of these."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from spanwise.core.errors import FormatError, SpanwiseError, UnknownFormatError
from spanwise.core.types import Sentence
from spanwise.files.names import printable, stem
from spanwise.files.reading import json_records
from spanwise.files.writing import check_no_input
from spanwise.formats import Ledger, formats, is_known, read
from spanwise.formats.registry import find, names_format
from spanwise.formats.shared.naming import DistinctIds, DistinctNames
from spanwise.formats.shared.sample import Sample
from spanwise.inputs.texts import NEEDS_SPANS
from spanwise.text.reading import TEXT, raw_sentences, text_sentences
from spanwise.vectors import check_no_vectors

STDIN = "-"
_STDIN_FILE = Path("/dev/stdin")
OFFERED = (TEXT, *formats())


def input_sentences(
    sources: Iterable[str], format: str | None = None, ledger: Ledger | None = None, *, needs_spans: bool = False,
    output: Path | None = None,
) -> Iterator[Sentence]:  # fmt: skip
    """The sentences of all sources, one after another: files, folders, and ``-`` for standard input.

    A ``.txt`` file and standard input are raw text, unless a format is said; any file is, where the format is ``text``.
    Texts are called after their files, those with the name of another numbered; data keeps its ids, but for those that an
    earlier file has. Annotations change nothing, unless a model ``needs_spans``. Wrong names are an error at once,
    before anything is read, and so is an ``output`` that is an input too.
    """
    if format is not None and not names_format(format, TEXT):
        find(format, OFFERED)
    files = [file for source in sources for file in _files(source, format)]
    if needs_spans and any(_is_raw(path, format) for path, _ in files):
        raise SpanwiseError(NEEDS_SPANS)
    if output is not None:
        check_no_input(output, [path or _STDIN_FILE for path, _ in files])
    names = DistinctNames(ledger)
    streams = [_sentences(path, name, format, ledger, names, needs_spans) for path, name in files]
    if len(streams) == 1 or all(_is_raw(path, format) for path, _ in files):  # nothing need be remembered
        return chain.from_iterable(streams)
    return chain.from_iterable(map(DistinctIds(ledger).of, streams))


def _files(source: str, format: str | None) -> Iterator[tuple[Path | None, str]]:
    """What a source stands for: files (or folders of one format; None for standard input), and names of their texts."""
    path = Path(source)
    if source == STDIN:
        yield None, "text"
    elif not path.exists():
        raise SpanwiseError(f"{source}: no such file or folder")
    elif not path.is_dir() or _is_one(path, format):
        yield path, stem(path)
    else:
        check_no_vectors(path)
        inside = [file for file in sorted(path.rglob("*")) if file.is_file() and not _is_hidden(file.relative_to(path))]
        if not inside:
            raise SpanwiseError(f"{source}: there is no file in this folder")
        for file in inside:
            yield file, printable(file.relative_to(path).with_suffix("").as_posix())


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts) or path.name.endswith("~")


def _is_one(folder: Path, format: str | None) -> bool:
    """Whether a folder is data by itself, as brat's are."""
    if format is not None:
        return not names_format(format, TEXT) and find(format)[0].reads(folder=True)
    return is_known(folder)


def _is_raw(path: Path | None, format: str | None) -> bool:
    return names_format(format, TEXT) or (format is None and (path is None or path.suffix.lower() == ".txt"))


def _sentences(
    path: Path | None, name: str, format: str | None, ledger: Ledger | None, names: DistinctNames, annotated: bool
) -> Iterator[Sentence]:  # fmt: skip
    if _is_raw(path, format):
        file, shown = (sys.stdin.buffer, "standard input") if path is None else (path.open("rb"), str(path))
        yield from raw_sentences(file, names.of(name), shown)
    elif path is not None and format is None and not annotated and has_texts(path):
        yield from text_records(path, names)
    else:
        try:
            yield from read(path or _STDIN_FILE, format, ledger, annotated=annotated)
        except UnknownFormatError as error:
            raise error.but(names=OFFERED) from None


def has_texts(path: Path) -> bool:
    """Whether a file is of JSON records with a ``text`` each and in no known format."""
    if path.is_dir() or path.suffix.lower() not in (".jsonl", ".json"):
        return False
    if is_known(path):
        return False
    records = Sample(path).records
    return bool(records) and all(isinstance(one, dict) and isinstance(one.get("text"), str) for one in records)


def text_records(path: Path, names: DistinctNames) -> Iterator[Sentence]:
    """The sentences of JSON records that have a ``text``; other keys are kept with the first sentence of each.

    A record without an id is called after the file, and its number in it.
    """
    file_name = ""
    for number, (line, record) in enumerate(json_records(path)):
        if not isinstance(record, dict) or not isinstance(record.get("text"), str):
            raise FormatError(path, line, "expected an object with a text, as in the records before")
        rest = {key: value for key, value in record.items() if key not in ("id", "text")}
        if isinstance(record.get("id"), str | int):
            name = str(record["id"])
        else:
            file_name = file_name or names.of(stem(path))
            name = f"{file_name}-{number}"
        for sentence in text_sentences(record["text"], name):
            yield Sentence(
                sentence.id, sentence.words, text=sentence.text, starts=sentence.starts, document=sentence.document,
                position=sentence.position, start=sentence.start, extra=(rest or None) if sentence.position == 0 else None,
            )  # fmt: skip
