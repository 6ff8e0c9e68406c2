"""From one format to another, a file at a time or a corpus folder at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from spanwise.corpora import open_splits
from spanwise.errors import SpanwiseError
from spanwise.formats.base import Format, Ledger
from spanwise.formats.files import replacing
from spanwise.formats.registry import LossError, find, write, writer_for
from spanwise.types import Sentence


@dataclass
class Conversion:
    """What came through, by split, and what was changed or lost on the way."""

    format: str
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    ledger: Ledger = field(default_factory=Ledger)


def convert(
    source: str | Path, target: str | Path, source_format: str | None = None, target_format: str | None = None,
    *, lossy: bool = False,
) -> Conversion:  # fmt: skip
    """Read ``source``, write ``target``. A corpus folder becomes a folder with the same splits.

    Nothing is written when anything would be lost, unless ``lossy``.
    """
    target = Path(target)
    ledger = Ledger()
    splits = open_splits(source, source_format, ledger)
    if len(splits) == 1 and not _is_corpus_folder(Path(source), splits):
        ((split, sentences),) = splits.items()
        result = Conversion(writer_for(target, target_format)[0].name, ledger=ledger)
        write(_counted(sentences, result, split), target, target_format, ledger=ledger, lossy=lossy)
        return result
    if target.suffix and not target.is_dir():
        raise SpanwiseError(f"{source} has the splits {', '.join(splits)}: the target must be a folder, not {target.name}")
    format, _ = find(target_format or "jsonl")
    result = Conversion(format.name, ledger=ledger)
    with replacing(target, folder=True) as folder:
        for split, sentences in splits.items():
            write(_counted(sentences, result, split), folder / _file_name(split, format), target_format or "jsonl",
                  ledger=ledger, lossy=True)  # fmt: skip
        if ledger.lost and not lossy:
            raise LossError(target, format, ledger)
    return result


def _is_corpus_folder(source: Path, splits: Iterable[str]) -> bool:
    return source.is_dir() and "all" not in splits


def _file_name(split: str, format: Format) -> str:
    return split if format.is_folder else split + format.extensions[0]


def _counted(sentences: Iterable[Sentence], result: Conversion, split: str) -> Iterator[Sentence]:
    counts = result.counts.setdefault(split, Counter())
    for sentence in sentences:
        counts["sentences"] += 1
        counts["entities"] += len(sentence.entities)
        counts["relations"] += len(sentence.relations) + len(sentence.links)
        yield sentence
