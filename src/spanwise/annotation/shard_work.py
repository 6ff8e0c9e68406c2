"""Annotate one shard: read, predict, write, record. Runs in any process of any engine."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Any, Protocol

from spanwise.annotation.annotator import Annotator
from spanwise.annotation.crashes import StartNote
from spanwise.annotation.job import JobFolder, ShardResult, make_parent
from spanwise.annotation.reading import Rows, read_rows
from spanwise.annotation.records import Annotation
from spanwise.annotation.shards import Shard
from spanwise.annotation.writing import WRITERS, Problems, ShardWriter, to_line
from spanwise.files.writing import atomic_output
from spanwise.runtime.collection import manual_collection

MAX_MEMORY = 1 << 20  # bytes of failed rows before they are kept in a temporary file
Report = Callable[[int, int], None]  # called with the numbers of rows and words of each finished batch


class SupportsWrite(Protocol):
    def write(self, data: bytes, /) -> int: ...


@dataclass(frozen=True)
class ShardWork:
    """How shards are annotated: everything that a worker needs except the model."""

    folder: JobFolder
    format: str

    def annotate(self, shard: Shard, annotator: Annotator, report: Report = lambda rows, words: None) -> ShardResult:
        """Annotate a shard unless it is finished. Its files appear all at once, and its marker last."""
        if (finished := self.folder.finished(shard)) is not None:
            return finished
        fingerprint = shard.fingerprint
        note = StartNote.read(self.folder.note_file(shard))
        result = ShardResult()
        data_file, errors_file = self.folder.data_file(shard), self.folder.errors_file(shard)
        data = atomic_output(make_parent(data_file))
        with data as path, SpooledTemporaryFile(MAX_MEMORY) as errors, manual_collection() as collect_garbage:
            writer = WRITERS[self.format](path, with_relations=annotator.predictor.finds_relations)
            try:
                for rows in read_rows(shard, annotator.text_column):
                    annotations = annotate_rows(rows, annotator, note)
                    counts = write_rows(rows, annotations, writer, errors, shard.source.path)
                    result += counts
                    report(counts.rows + counts.errors, counts.words)
                    del rows, annotations
                    collect_garbage()
            finally:
                note.stop()
                writer.close()
            if result.errors:
                errors.seek(0)
                with atomic_output(make_parent(errors_file)) as errors_path, errors_path.open("wb") as sink:
                    shutil.copyfileobj(errors, sink)
        if not writer.has_columns:
            data_file.unlink()
        if not result.errors:  # remove those of an earlier attempt
            with suppress(FileNotFoundError):
                errors_file.unlink()
        self.folder.finish(shard, result, fingerprint)
        return result


def annotate_rows(rows: Rows, annotator: Annotator, note: StartNote) -> list[Annotation]:
    """Annotate a batch of rows; rows that could not be read, or that ended the process twice, have an error."""
    problems = rows.problems | note.blamed(rows.places)
    readable = [index for index in range(len(rows.texts)) if index not in problems]
    groups = [[index] for index in readable] if note.is_suspicious(rows.places) else [readable]
    annotations = [Annotation(error=problems.get(index)) for index in range(len(rows.texts))]
    for group in groups:
        if group:
            note.start(rows.places[group[0]], rows.places[group[-1]])
            for index, annotation in zip(group, annotator.annotate([rows.texts[i] for i in group]), strict=True):
                annotations[index] = annotation
    return annotations


def write_rows(
    rows: Rows, annotations: list[Annotation], writer: ShardWriter, errors: SupportsWrite, source: Path
) -> ShardResult:  # fmt: skip
    """Write rows with predictions to the shard, and failed rows with their reasons to its errors."""
    indices = [index for index, annotation in enumerate(annotations) if annotation.error is None]
    failed: Problems = {index: a.error for index, a in enumerate(annotations) if a.error is not None}
    failed |= writer.write(rows, annotations, indices)
    order = sorted(failed)
    for index, record in zip(order, rows.records(order), strict=True):
        errors.write(to_line({"reason": failed[index], "source": str(source), "place": rows.places[index], "row": record}))
    written: list[Any] = [annotations[index] for index in indices if index not in failed]
    return ShardResult(
        rows=len(written),
        errors=len(failed),
        words=sum(annotation.words for annotation in written),
        entities=sum(len(annotation.entities) for annotation in written),
        relations=sum(len(annotation.relations) for annotation in written),
    )
