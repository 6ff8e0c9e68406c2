"""From one format to another, a file at a time or a corpus folder at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.corpora.splits import corpus_parts, open_splits
from spanwise.files.writing import atomic_output, check_no_input
from spanwise.formats import Format, Ledger, LossError, formats
from spanwise.formats.registry import write_as, writer_for


@dataclass
class Conversion:
    """What was read and what of it was written, by split (sentences, entities, relations), and what was changed or lost."""

    format: str
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    written: dict[str, Counter[str]] = field(default_factory=dict)
    ledger: Ledger = field(default_factory=Ledger)


def convert(
    source: str | Path, target: str | Path, source_format: str | None = None, target_format: str | None = None,
    *, lossy: bool = False,
) -> Conversion:  # fmt: skip
    """Read ``source``, write ``target``. A corpus folder becomes a folder with the same splits.

    Nothing is written when anything would be lost, unless ``lossy``. What is read is never replaced by what is written.
    """
    source, target = Path(source), Path(target)
    check_no_input(target, [source])
    ledger = Ledger()
    splits = open_splits(source, source_format, ledger)
    is_corpus = bool(corpus_parts(source))
    if is_corpus and target.suffix.lower() in _extensions() and not target.is_dir():
        raise SpanwiseError(f"{source} has the splits {', '.join(splits)}: the target must be a folder, not {target.name}")
    format, options = writer_for(target, target_format or ("jsonl" if is_corpus else None))
    result = Conversion(format.name, ledger=ledger)
    if is_corpus and format.for_corpus:
        again = open_splits(source, source_format, Ledger())
        options = format.for_corpus(chain.from_iterable(again.values()), options)
    with atomic_output(target, folder=is_corpus or format.writes_folder) as temporary:
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
    read = result.counts[split] = Counter()
    writing = Ledger()  # its own, for what reading lost is not in the counts
    write_as(format, options, _counted(sentences, read), path, writing)
    gone = Counter[str]()
    for (kind, _), count in writing.losses.items():
        gone[kind] += count
    for kind in ("entities", "relations"):
        gone[kind] += writing.notes[f"{kind} given twice, merged"]
    result.written[split] = Counter({kind: count - gone[kind] for kind, count in read.items()})
    result.ledger.add(writing)


def _counted(sentences: Iterable[Sentence], counts: Counter[str]) -> Iterator[Sentence]:
    for sentence in sentences:
        counts["sentences"] += 1
        counts["entities"] += len(sentence.entities)
        counts["relations"] += len(sentence.relations) + len(sentence.links)
        yield sentence
