"""The registry of formats: detection, reading and writing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from spanwise.core.errors import SpanwiseError, UnknownFormatError, unknown_name
from spanwise.core.registry import Registry
from spanwise.core.types import Sentence
from spanwise.files.disk import temporary_copy
from spanwise.files.encodings import check_encoding, recoded_copy
from spanwise.files.writing import atomic_output, is_stream
from spanwise.formats.base import ALL_METADATA, PATH, Format, Ledger, parse_options
from spanwise.formats.shared.hints import describe_content, find_problem
from spanwise.formats.shared.metadata import note_dropped_metadata
from spanwise.formats.shared.sample import Sample

# The order of detection: specific formats before general ones, formats of other packages last.
_BUILTIN = (
    "jsonl", "dygie", "w2ner", "casrel", "cmeee", "cluener", "tablert", "spert", "prodigy", "doccano",
    "label_studio", "docbin", "hf_dataset", "genia_xml", "bioc_xml", "bioc_json", "pubtator", "csv", "ade_rel", "multihead",
    "weibo", "brat", "conll",
)  # fmt: skip
# Bytes of which a file of these formats has at least one. Formats that this excludes are not imported to detect a format.
_JSON, _XML = (b"{", b"["), (b"<",)
_CONTENTS = {
    "jsonl": _JSON, "dygie": _JSON, "w2ner": _JSON, "casrel": _JSON, "cmeee": _JSON, "cluener": _JSON, "tablert": _JSON,
    "spert": _JSON, "prodigy": _JSON, "doccano": _JSON, "label_studio": _JSON, "bioc_json": _JSON, "genia_xml": _XML,
    "bioc_xml": _XML,
}  # fmt: skip
FORMATS = Registry("format", "spanwise.formats", {name: f"spanwise.formats.{name}:FORMAT" for name in _BUILTIN})


@cache
def formats() -> dict[str, Format]:
    """Return all formats by name."""
    return {name: _load(name) for name in FORMATS}


def possible_formats(sample: Sample) -> Iterator[Format]:
    """Yield the formats that the content of a sample does not exclude, in the order of detection."""
    for name in FORMATS:
        if sample.is_folder or name not in _CONTENTS or any(mark in sample.raw for mark in _CONTENTS[name]):
            yield _load(name)


def _load(name: str) -> Format:
    format: Format = FORMATS.load(name)
    if format.name != name or _normalize(name) != name:
        raise SpanwiseError(f"format {name!r}: expected a Format of this name in lower case, found {format.name!r}")
    return format


def find_format(spec: str, known: Iterable[str] | None = None) -> tuple[Format, str]:
    """Return the format named by ``name`` or ``name:key=value,…``, and the text of its options.

    ``known`` are the names listed in the error message (default: all formats).
    """
    given_name, _, options = (split_encoding(spec)[0] or "").partition(":")
    name = _normalize(given_name)
    if name not in FORMATS:
        raise unknown_name("format", given_name, FORMATS if known is None else known)
    return _load(name), options


def names_format(spec: str | None, name: str) -> bool:
    """Return True if ``spec`` is the pseudo-format ``name`` (``text`` or ``html``), which takes no options.

    >>> names_format("HTML", "html"), names_format("conll", "html"), names_format(None, "html")
    (True, False, False)
    """
    given_name, _, options = (split_encoding(spec)[0] or "").partition(":")
    if _normalize(given_name) != name:
        return False
    parse_options(options, {}, name)
    return True


def split_encoding(spec: str | None) -> tuple[str | None, str | None]:
    """Separate a format from the encoding of its files, which is an option of every format.

    A format without a name is detected.

    >>> split_encoding("conll:labels=2,encoding=latin-1"), split_encoding(":encoding=utf-16"), split_encoding("brat")
    (('conll:labels=2', 'latin-1'), (None, 'utf-16'), ('brat', None))
    """
    name, _, options = (spec or "").partition(":")
    parts = options.split(",")
    encodings = [part.partition("=")[2] for part in parts if part.startswith("encoding=")]
    if not encodings:
        return spec, None
    rest = ",".join(part for part in parts if not part.startswith("encoding="))
    return (f"{name}:{rest}" if rest else name) or None, check_encoding(encodings[-1])


def with_encoding(spec: str | None, encoding: str | None) -> str | None:
    """Return the format with an encoding as an option, as ``read`` and all commands accept it.

    >>> with_encoding("conll:labels=2", "latin-1"), with_encoding(None, "latin-1"), with_encoding("brat", None)
    ('conll:labels=2,encoding=latin-1', ':encoding=latin-1', 'brat')
    """
    if encoding is None:
        return spec
    separator = "," if ":" in (spec or "") else ":"
    return f"{spec or ''}{separator}encoding={check_encoding(encoding)}"


def _normalize(name: str) -> str:
    return name.strip().lower().replace("-", "_")


def detect(path: Path) -> Format:
    """Return the format of a file or folder, by content first and by extension second."""
    if not path.exists():
        raise SpanwiseError(f"{path}: no such file or folder")
    sample = Sample(path)
    for format in possible_formats(sample):
        if format.can_read(sample.is_folder) and format.sniff(sample):
            return format
    by_extension = [f for f in formats().values() if not sample.is_folder and path.suffix.lower() in f.extensions]
    if not sample.is_folder and not sample.text.strip():
        if by_extension:
            return by_extension[0]
        raise UnknownFormatError(path, "the file is empty and its extension does not identify the format", formats())
    if problem := find_problem(sample):
        raise SpanwiseError(f"{path}: {problem}")
    if len(by_extension) == 1 or (by_extension and path.suffix.lower() == ".jsonl" and not sample.records):
        return by_extension[0]  # its reader reports the problem and the line
    raise UnknownFormatError(path, "cannot detect the format", formats(), describe_content(sample))


def is_companion(path: Path) -> bool:
    """Return True for a file that a format reads together with the files next to it."""
    return any(path.name in format.companions for format in formats().values())


def can_detect(path: Path) -> bool:
    """Return True if the format of a file or folder can be detected."""
    try:
        detect(path)
    except SpanwiseError:
        return False
    return True


def read(
    path: str | Path, format: str | None = None, ledger: Ledger | None = None, *, with_annotations: bool = True
) -> Iterator[Sentence]:
    """Stream the sentences of a file or folder.

    The format is detected by default. It may have options: ``"conll:labels=1+2"``. The option
    ``encoding`` of every format is the encoding of the files: ``":encoding=latin-1"`` (default: UTF-8).
    ``ledger`` counts what the reader repaired or dropped.

    ``with_annotations=False`` reads bare text for prediction: formats with character offsets are split
    into words as if they had no annotations, so word boundaries do not reveal entities. Invalid
    annotations are then ignored.

    >>> from spanwise.data import FOLDER
    >>> sentence = next(read(FOLDER / "train.jsonl"))
    >>> sentence.id, sentence.entities[0].type
    ('news-01-0', 'Place')
    """
    path = Path(path)
    if not path.exists():
        raise SpanwiseError(f"{path}: no such file or folder")
    format, encoding = split_encoding(format)
    if encoding is not None:
        return _read_recoded(path, format, encoding, ledger, with_annotations)
    if is_stream(path):
        return _read_stream(path, format, ledger, with_annotations)
    chosen, options = (detect(path), "") if format is None else find_format(format)
    if not chosen.can_read(path.is_dir()):
        actual, expected = ("folder", "file") if path.is_dir() else ("file", "folder")
        raise SpanwiseError(f"{path}: {chosen.name} expects a {expected}, found a {actual}")
    keywords = parse_options(options, chosen.read_options, chosen.name)
    ledger = ledger if ledger is not None else Ledger()
    if with_annotations:
        return chosen.read(path, ledger, **keywords)
    if chosen.has_character_offsets or chosen.can_lack_annotations:
        return chosen.read(path, ledger, with_annotations=False, **keywords)
    return (replace(sentence, entities=(), relations=(), links=()) for sentence in chosen.read(path, ledger, **keywords))


def _read_stream(path: Path, format: str | None, ledger: Ledger | None, with_annotations: bool) -> Iterator[Sentence]:
    with temporary_copy(path.open("rb"), path.name) as copy:
        yield from _read_copy(copy, format, ledger, with_annotations, {copy: path})


def _read_recoded(
    path: Path, format: str | None, encoding: str, ledger: Ledger | None, with_annotations: bool
) -> Iterator[Sentence]:  # fmt: skip
    with ExitStack() as stack:
        copy = stack.enter_context(recoded_copy(path, encoding))
        originals = {copy: path}
        if format is not None:
            format = _recode_options(format, encoding, originals, stack)
        yield from _read_copy(copy, format, ledger, with_annotations, originals)


def _recode_options(spec: str, encoding: str, originals: dict[Path, Path], stack: ExitStack) -> str:
    """Return the format with copies of the files that its options name, and add the copies to ``originals``."""
    format, options = find_format(spec)
    parts = options.split(",")
    for number, part in enumerate(parts):
        key, _, value = part.partition("=")
        if format.read_options.get(key) is PATH and Path(value).exists():
            copy = stack.enter_context(recoded_copy(Path(value), encoding))
            originals[copy] = Path(value)
            parts[number] = f"{key}={copy}"
    return f"{format.name}:{','.join(parts)}"


def _read_copy(
    copy: Path, format: str | None, ledger: Ledger | None, with_annotations: bool, originals: Mapping[Path, Path]
) -> Iterator[Sentence]:  # fmt: skip
    """Read a copy; errors name the originals of copies."""
    try:
        yield from read(copy, format, ledger, with_annotations=with_annotations)
    except UnknownFormatError as error:
        raise error.with_changes(path=originals[copy]) from None
    except SpanwiseError as error:
        message = str(error)
        for temporary, original in originals.items():
            message = message.replace(str(temporary), str(original))
        raise SpanwiseError(message) from None


def output_format(path: Path, format: str | None = None, *, also: Sequence[str] = ()) -> tuple[Format, dict[str, Any]]:
    """Return the format to write and its options, as given or by the extension of the path.

    ``also`` are further names that the error message lists.
    """
    known = [*(f.name for f in formats().values() if f.write), *also]
    if format is None:
        suffix = path.suffix.lower()
        candidates = [f for f in formats().values() if f.write and suffix in f.extensions]
        candidates = [f for f in candidates if suffix == f".{f.name}"] or candidates  # doccano writes .jsonl too
        if len(candidates) != 1:
            names = " or ".join(f.name for f in candidates) or ", ".join(known)
            raise SpanwiseError(f"{path}: cannot infer the output format from the name; choose it with --to ({names})")
        return candidates[0], {}
    chosen, options = find_format(format, known)
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
    """Write sentences to a path, which is created completely or not at all.

    The format is detected from the name by default. It may have options: ``"conll:scheme=bioes"``.
    Raises ``LossError`` and writes nothing if the format cannot store all annotations, unless
    ``lossy`` is set. Losses that are already in ``ledger`` (from reading) count as well.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     ledger = write([Sentence("s1", ("in", "Oslo"))], Path(folder) / "one.jsonl")
    >>> ledger.lost
    0
    """
    path = Path(path)
    ledger = ledger if ledger is not None else Ledger()
    chosen, options = output_format(path, format)
    with atomic_output(path, is_folder=chosen.writes_folder) as temporary:
        write_as(chosen, options, sentences, temporary, ledger)
        if ledger.lost and not lossy:
            raise LossError(path, chosen, ledger)
    return ledger


def write_as(format: Format, options: dict[str, Any], sentences: Iterable[Sentence], path: Path, ledger: Ledger) -> None:
    """Write sentences to a new path and count losses and dropped metadata in the ledger."""
    assert format.write is not None
    stored = format.stored_metadata(options)
    if stored < ALL_METADATA:
        sentences = note_dropped_metadata(sentences, format.name, stored, format.extra_keys, ledger)
    if "partial" not in format.supports:
        sentences = _without_marks(sentences, ledger)
    format.write(sentences, path, ledger, **options)


def _without_marks(sentences: Iterable[Sentence], ledger: Ledger) -> Iterator[Sentence]:
    """Count partial annotations as lost: without their marks, open spans would read as no entities."""
    for sentence in sentences:
        ledger.lose("partial annotations", "not supported by the format", sentence.annotated is not None)
        yield sentence


class LossError(SpanwiseError):
    """Writing would drop annotations, and ``lossy`` is not set."""

    def __init__(self, path: Path, format: Format, ledger: Ledger) -> None:
        self.ledger = ledger
        if format.name == "jsonl":  # supports everything: the losses come from reading
            problem, advice = f"reading dropped {ledger}", "pass --lossy to write the rest"
        else:
            problem = f"{format.name} would drop {ledger}"
            advice = "pass --lossy to write the rest, or choose jsonl, which supports everything"
        super().__init__(f"{path}: not written because {problem}; {advice}")
