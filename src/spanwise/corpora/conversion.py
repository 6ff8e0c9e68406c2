"""Conversion of a file or a corpus folder from one format to another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.corpora.splits import find_split_files, open_splits
from spanwise.files.writing import atomic_output
from spanwise.formats import Format, Ledger, LossError, formats
from spanwise.formats.registry import output_format, write_as
from spanwise.runs.outputs import check_output


@dataclass
class Conversion:
    """Sentences, entities and relations read and written per split, and a ledger of changes and losses."""

    format: str
    read: dict[str, Counter[str]] = field(default_factory=dict)
    written: dict[str, Counter[str]] = field(default_factory=dict)
    ledger: Ledger = field(default_factory=Ledger)


def convert(
    source: str | Path, target: str | Path, source_format: str | None = None, target_format: str | None = None,
    *, lossy: bool = False,
) -> Conversion:  # fmt: skip
    """Convert annotated text from one format to another. A corpus folder becomes a folder with the same splits.

    The formats are detected by default: that of the source from its content, that of the target from
    the name. If an annotation would be dropped, nothing is written and ``LossError`` is raised, unless
    ``lossy`` is true. The target must not overwrite the source.

    >>> from tempfile import TemporaryDirectory
    >>> from spanwise.data import FOLDER
    >>> with TemporaryDirectory() as folder:
    ...     conversion = convert(FOLDER / "test.jsonl", Path(folder) / "test.conll", lossy=True)
    >>> print(conversion.ledger)
    92 entities (overlapping another), 119 relations (not supported by the format), 13 entities (discontinuous)
    """
    source, target = Path(source), Path(target)
    check_output(target, [source])
    ledger = Ledger()
    return write_splits(
        open_splits(source, source_format, ledger), target, target_format, source=source, ledger=ledger, lossy=lossy,
        reopen=lambda: open_splits(source, source_format, Ledger()),
    )  # fmt: skip


def write_splits(
    splits: Mapping[str, Iterable[Sentence]], target: Path, target_format: str | None, *, source: Path, ledger: Ledger,
    lossy: bool, reopen: Callable[[], Mapping[str, Iterable[Sentence]]],
) -> Conversion:  # fmt: skip
    """Write the splits of ``source``: one file, or a folder with the same splits if the source is a corpus folder.

    ``reopen`` returns the sentences once more, for formats whose options depend on all of them. ``ledger``
    has the losses of reading.
    """
    is_corpus = bool(find_split_files(source))
    if is_corpus and target.suffix.lower() in _extensions() and not target.is_dir():
        raise SpanwiseError(f"{source} has the splits {', '.join(splits)}; the target must be a folder, not {target.name}")
    format, options = output_format(target, target_format or ("jsonl" if is_corpus else None))
    result = Conversion(format.name, ledger=ledger)
    if is_corpus and format.corpus_options:
        options = format.corpus_options(chain.from_iterable(reopen().values()), options)
    with atomic_output(target, is_folder=is_corpus or format.writes_folder) as temporary:
        for split, sentences in splits.items():
            path = temporary / _file_name(split, format) if is_corpus else temporary
            if is_corpus and format.writes_folder:
                path.mkdir()
            _write(format, options, sentences, path, result, split)
        if ledger.lost and not lossy:
            raise LossError(target, format, ledger)
    return result


def _extensions() -> set[str]:
    return {extension for format in formats().values() for extension in format.extensions}


def _file_name(split: str, format: Format) -> str:
    return split if format.writes_folder else split + format.extensions[0]


def _write(
    format: Format, options: dict[str, Any], sentences: Iterable[Sentence], path: Path, result: Conversion, split: str
) -> None:
    read = result.read[split] = Counter()
    writing = Ledger()  # separate from the reader's ledger, whose losses are not part of the counts
    write_as(format, options, _count(sentences, read), path, writing)
    dropped = Counter[str]()
    for (kind, _), count in writing.losses.items():
        dropped[kind] += count
    for kind in ("entities", "relations"):
        dropped[kind] += writing.notes[f"duplicate {kind}, merged"]
    result.written[split] = Counter({kind: count - dropped[kind] for kind, count in read.items()})
    result.ledger.add(writing)


def _count(sentences: Iterable[Sentence], counts: Counter[str]) -> Iterator[Sentence]:
    """Yield the sentences and count their content."""
    for sentence in sentences:
        counts["sentences"] += 1
        counts["entities"] += len(sentence.entities)
        counts["relations"] += len(sentence.relations) + len(sentence.links)
        yield sentence
