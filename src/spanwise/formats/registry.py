"""All formats by name; which one a file is in; reading and writing by name or by looking."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from spanwise.core.errors import SpanwiseError, UnknownFormatError, unknown_name
from spanwise.core.types import Sentence
from spanwise.files.writing import atomic_output, is_stream
from spanwise.formats.base import EVERYTHING, Format, Ledger, parse_options
from spanwise.formats.shared.keeping import noted
from spanwise.formats.shared.sample import Sample

# In the order in which they are asked whether a file is theirs: the particular before the general.
_MODULES = (
    "jsonl", "dygie", "w2ner", "casrel", "cmeee", "cluener", "tablert", "spert", "prodigy", "doccano",
    "label_studio", "docbin", "hf_dataset", "genia_xml", "pubtator", "ade_rel", "multihead", "weibo", "brat", "conll",
)  # fmt: skip


@cache
def formats() -> dict[str, Format]:
    """Every format by its name."""
    found = (import_module(f"spanwise.formats.{module}").FORMAT for module in _MODULES)
    return {format.name: format for format in found}


def find(spec: str, known: Iterable[str] | None = None) -> tuple[Format, str]:
    """The format of ``name`` or ``name:key=value,…``, and the text of its options.

    ``known`` are the names that an error lists, where they are not those of all formats.
    """
    said, _, options = spec.partition(":")
    name = _plain(said)
    if name not in formats():
        raise unknown_name("format", said, formats() if known is None else known)
    return formats()[name], options


def names_format(spec: str | None, name: str) -> bool:
    """Whether ``spec`` names what is no format of annotated text but stands beside them on some commands, without options.

    >>> names_format("HTML", "html"), names_format("conll", "html"), names_format(None, "html")
    (True, False, False)
    """
    said, _, options = (spec or "").partition(":")
    if _plain(said) != name:
        return False
    parse_options(options, {}, name)
    return True


def _plain(name: str) -> str:
    return name.strip().lower().replace("-", "_")


def detect(path: Path) -> Format:
    """The format of a file or folder, by content first and by extension where the content does not tell."""
    if not path.exists():
        raise SpanwiseError(f"{path}: no such file or folder")
    sample = Sample(path)
    for format in formats().values():
        if format.reads(sample.is_folder) and format.sniff(sample):
            return format
    by_name = [f for f in formats().values() if not sample.is_folder and path.suffix.lower() in f.extensions]
    if not sample.is_folder and not sample.text.strip():
        if by_name:
            return by_name[0]
        raise UnknownFormatError(path, "the file is empty, and its name does not tell the format", formats())
    if problem := _unreadable(sample):
        raise SpanwiseError(f"{path}: {problem}")
    if len(by_name) == 1 or (by_name and path.suffix.lower() == ".jsonl" and not sample.records):
        return by_name[0]  # its reader says what is wrong, and where
    raise UnknownFormatError(path, "cannot tell the format", formats(), _hint(sample))


def is_known(path: Path) -> bool:
    """Whether the format of a file or folder can be told."""
    try:
        detect(path)
    except SpanwiseError:
        return False
    return True


_COMPRESSED = {b"\x1f\x8b": "gzip", b"PK\x03\x04": "zip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstd"}


def _unreadable(sample: Sample) -> str | None:
    """Why no format can read such a file, where that is plain to see."""
    for mark, name in _COMPRESSED.items():
        if sample.raw.startswith(mark):
            return f"is compressed ({name}); unpack it first"
    if sample.raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "is UTF-16 text; save it as UTF-8"
    return None


def _hint(sample: Sample) -> str:
    """What the beginning of a file shows that might have been a known format."""
    if sample.dicts:
        keys = dict.fromkeys(key for record in sample.dicts for key in record)
        return f"; its records have the keys {', '.join(f'{key!r:.40}' for key in list(keys)[:10])}"
    first = sample.text.lstrip()[:1]
    if first and first in "[{" and sample.is_whole:
        return "; it begins like JSON, but not like an array of records or with one record a line"
    return ""


def read(
    path: str | Path, format: str | None = None, ledger: Ledger | None = None, *, annotated: bool = True
) -> Iterator[Sentence]:
    """The sentences of a file, one at a time, in the given format or the one it seems to have.

    ``format`` may carry options: ``"conll:labels=1+2"``. What the reader had to mend or leave out is in ``ledger``. Without
    ``annotated`` the sentences are those that a reader of the bare text would see: formats without words are split as if
    nobody had annotated them, so that a model is not told where entities begin and end, and their annotations may be wrong.
    """
    path = Path(path)
    if not path.exists():
        raise SpanwiseError(f"{path}: no such file or folder")
    if is_stream(path):
        return _read_stream(path, format, ledger, annotated)
    chosen, options = (detect(path), "") if format is None else find(format)
    if not chosen.reads(path.is_dir()):
        is_one, other = ("folder", "file") if path.is_dir() else ("file", "folder")
        raise SpanwiseError(f"{path}: is a {is_one}, and {chosen.name} is read from a {other}")
    keywords = parse_options(options, chosen.read_options, chosen.name)
    ledger = ledger if ledger is not None else Ledger()
    if annotated:
        return chosen.read(path, ledger, **keywords)
    if chosen.by_characters:
        return chosen.read(path, ledger, annotated=False, **keywords)
    return (replace(one, entities=(), relations=(), links=()) for one in chosen.read(path, ledger, **keywords))


def _read_stream(path: Path, format: str | None, ledger: Ledger | None, annotated: bool) -> Iterator[Sentence]:
    """A pipe can be read once only, and most readers look at the beginning first: so it is copied to a file."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, path.name)
        with path.open("rb") as source, copy.open("wb") as sink:
            shutil.copyfileobj(source, sink)
        try:
            yield from read(copy, format, ledger, annotated=annotated)
        except UnknownFormatError as error:
            raise error.but(path=path) from None
        except SpanwiseError as error:
            raise SpanwiseError(str(error).replace(str(copy), str(path))) from None


def writer_for(path: Path, format: str | None = None, *, also: Sequence[str] = ()) -> tuple[Format, dict[str, Any]]:
    """The format to write a path in, with its options: as said, or by the extension.

    ``also`` are names that can be said besides those of formats, for errors to list.
    """
    known = [*(f.name for f in formats().values() if f.write), *also]
    if format is None:
        suffix = path.suffix.lower()
        fitting = [f for f in formats().values() if f.write and suffix in f.extensions]
        fitting = [f for f in fitting if suffix == f".{f.name}"] or fitting  # doccano writes .jsonl too
        if len(fitting) != 1:
            among = " or ".join(f.name for f in fitting) or ", ".join(known)
            raise SpanwiseError(f"{path}: the name does not tell which format to write; say it with --to ({among})")
        return fitting[0], {}
    chosen, options = find(format, known)
    if chosen.write is None:
        raise SpanwiseError(f"{chosen.name} can be read but not written")
    return chosen, parse_options(options, chosen.write_options, chosen.name)


def write(
    sentences: Iterable[Sentence],
    path: str | Path,
    format: str | None = None,
    *,
    ledger: Ledger | None = None,
    lossy: bool = False,
) -> Ledger:
    """Write sentences to a path that appears whole or not at all.

    What the format cannot hold is an error that counts it, and nothing is written; with ``lossy`` the rest is.
    Losses already in ``ledger`` (from reading) count too.
    """
    path = Path(path)
    ledger = ledger if ledger is not None else Ledger()
    chosen, options = writer_for(path, format)
    with atomic_output(path, folder=chosen.writes_folder) as temporary:
        write_as(chosen, options, sentences, temporary, ledger)
        if ledger.lost and not lossy:
            raise LossError(path, chosen, ledger)
    return ledger


def write_as(format: Format, options: dict[str, Any], sentences: Iterable[Sentence], path: Path, ledger: Ledger) -> None:
    """Write to a fresh path. What the format cannot hold is lost, what it does not keep is noted; the caller decides."""
    assert format.write is not None
    kept = format.kept(options)
    if kept < EVERYTHING:
        sentences = noted(sentences, format.name, kept, format.own_keys, ledger)
    format.write(sentences, path, ledger, **options)


class LossError(SpanwiseError):
    """Writing would lose something, and nobody said that it may."""

    def __init__(self, path: Path, format: Format, ledger: Ledger) -> None:
        self.ledger = ledger
        # What jsonl lacks was lost before, in reading.
        who, advice = ("reading", "") if format.name == "jsonl" else (format.name, ", and jsonl can hold everything")
        super().__init__(f"{path}: not written, for {who} would lose {ledger}; --lossy writes the rest{advice}")
