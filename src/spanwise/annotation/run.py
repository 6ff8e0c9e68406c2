"""Annotate files: plan the shards, run an engine, and count."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from spanwise.annotation.engine import Engine, Event, ModelSettings, Note, Progress, ShardDone
from spanwise.annotation.job import JobFolder, ShardResult
from spanwise.annotation.reading import ColumnError, check_columns, read_rows
from spanwise.annotation.shard_work import ShardWork
from spanwise.annotation.shards import Shard, choose_shard_size, plan_shards
from spanwise.annotation.sources import PARQUET, Source, find_sources
from spanwise.annotation.writing import WRITERS
from spanwise.core.counting import counted
from spanwise.core.errors import FormatError, SpanwiseError, unknown_name
from spanwise.decoding.thresholds import Threshold
from spanwise.prediction.load import model_folder
from spanwise.runs.folder import RunFolder
from spanwise.runs.outputs import check_output

TRAINING_FILES = ("run.json", "resume.json", "metrics.jsonl", ".lock")  # they do not change predictions


@dataclass
class Summary:
    """The result of an annotation. ``rows`` counts rows with predictions, also those of earlier runs."""

    shards: int = 0
    finished_before: int = 0
    seconds: float = 0.0
    counts: ShardResult = field(default_factory=ShardResult)
    failed_shards: list[dict[str, str]] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Whether every row has predictions."""
        return not self.failed_shards and not self.counts.errors

    def to_json(self) -> dict[str, Any]:
        return {
            **asdict(self.counts), "shards": self.shards, "finished_before": self.finished_before,
            "failed_shards": self.failed_shards, "seconds": round(self.seconds, 3),
        }  # fmt: skip


class Listener:
    """Base of objects that are called while an annotation runs; the command line shows progress with one."""

    def start(self, shards: Sequence[Shard], finished: Sequence[Shard]) -> None: ...

    def advance(self, rows: int, words: int) -> None: ...

    def finish_shard(self, shard: Shard, rows: int) -> None: ...

    def note(self, text: str) -> None: ...


def annotate(
    model: str | Path,
    source: str | Path,
    output: str | Path,
    *,
    text_column: str = "text",
    format: str | None = None,
    threshold: Threshold = 0.0,
    overlap: str = "nested",
    batch_size: int = 64,
    device: str = "auto",
    precision: str | None = None,
    workers: int | None = None,
    threads: int | None = None,
    shard_size: int | None = None,
    ray: str | None = None,
    listener: Listener | None = None,
) -> Summary:
    """Add predictions to tables of texts, in shards that are written to a folder.

    Use it for millions of rows; for texts in memory, ``load`` and ``BasePredictor.stream`` are simpler.
    Call it again after an interruption: finished shards are kept. Rows that fail are written with the
    reason to ``_errors`` in the output, and do not stop the others.

    ``spanwise.annotate("RUN", "corpus/", "out/", text_column="body").counts.rows`` is the number of rows
    with predictions. In a script, call it below ``if __name__ == "__main__":``, because each worker
    process imports the script.

    Args:
        model: a run folder, an exported folder, an installed model, or ``hf:owner/model``.
        source: a file, a folder or a glob of parquet tables, JSON lines, texts or web archives.
        output: a new folder, or that of an earlier call with the same model and settings.
        text_column: the column with a text or a list of words.
        format: ``parquet`` or ``jsonl``; that of the input by default.
        threshold: minimum score of a prediction, or scores by type; 0 is the default of the model.
        overlap: ``nested``, ``flat`` or ``outermost`` (see ``BasePredictor.predict``).
        batch_size: sentences per batch.
        device: ``cpu``, ``cuda`` or ``auto``.
        precision: ``float32`` or ``half``; by default half on a GPU.
        workers: worker processes; by default one per core.
        threads: CPU threads of all workers; by default all cores.
        shard_size: bytes of input per shard; by default 1 to 32 MB.
        ray: ``local`` or the address of a Ray cluster to run on.
        listener: receives events while the annotation runs.
    """
    from spanwise.annotation.choice import choose_engine, choose_precision

    started, listener = time.perf_counter(), listener or Listener()
    output = Path(output).expanduser()
    check_output(output, [Path(model)])
    sources = find_inputs(str(source), output)
    format = check_format(format, sources)
    folder = model_folder(model)
    job = JobFolder(output, WRITERS[format].suffix)
    check_first_rows(sources, text_column)
    precision = choose_precision(precision, device)
    whole = sum(source.is_one_shard for source in sources) if shard_size else 0
    shard_size = shard_size or job.read_setting("shard_size") or choose_shard_size(sources)
    settings = {
        "model": fingerprint(folder), "text_column": text_column, "threshold": threshold, "overlap": overlap, "format": format,
        "precision": precision, "shard_size": shard_size,
    }  # fmt: skip
    with job.lock():
        job.open(settings)
        shards = plan_shards(sources, shard_size)
        job.check_stray_files(shards)
        finished = {shard: result for shard in shards if (result := job.finished(shard)) is not None}
        unfinished = [shard for shard in shards if shard not in finished]
        summary = Summary(shards=len(shards), finished_before=len(finished), counts=sum(finished.values(), ShardResult()))
        listener.start(unfinished, list(finished))
        if whole:
            listener.note(f"the shard size does not apply to {counted(whole, 'compressed input file')}: each is one shard")
        options = {"text_column": text_column, "threshold": threshold, "overlap": overlap, "batch_size": batch_size}
        model_settings = ModelSettings(str(folder), device, precision, options)
        if unfinished:
            engine = choose_engine(
                ShardWork(job, format), model_settings, unfinished, workers=workers, threads=threads, ray=ray
            )
            _run(engine, unfinished, summary, listener)
    summary.seconds = time.perf_counter() - started
    return summary


def _run(engine: Engine, shards: Sequence[Shard], summary: Summary, listener: Listener) -> None:
    def handle(event: Event) -> None:
        if isinstance(event, Progress):
            listener.advance(event.rows, event.words)
        elif isinstance(event, Note):
            listener.note(event.text)
        elif isinstance(event, ShardDone):
            summary.counts += event.result
            listener.finish_shard(event.shard, event.result.rows + event.result.errors)
        else:
            summary.failed_shards.append({"shard": event.shard.name, "reason": event.reason})
            listener.note(f"{event.reason}; the shard is skipped")
            listener.finish_shard(event.shard, 0)

    engine.run(shards, handle)


def check_format(format: str | None, sources: Sequence[Source]) -> str:
    """Return the format of the output: that of the input by default (jsonl for text)."""
    if format is None:
        return "parquet" if all(source.format == PARQUET for source in sources) else "jsonl"
    if format not in WRITERS:
        raise unknown_name("output format", format, WRITERS)
    return format


def find_inputs(pattern: str, output: Path) -> list[Source]:
    """Find the input files, without the shards of an earlier run; refuse an output folder with other inputs."""
    target = output.resolve()
    has_shards = JobFolder.is_job(output) and not Path(pattern).expanduser().resolve().is_relative_to(target)
    sources = find_sources(pattern, skipped=target if has_shards else None)
    for source in sources:
        if source.path.resolve().is_relative_to(target):
            raise SpanwiseError(f"{output}: contains the input {source.path}; choose another folder")
    return sources


def check_first_rows(sources: Sequence[Source], text_column: str) -> None:
    """Refuse an input whose first rows have no text column, or that is a JSON array, before the model is loaded."""
    source = sources[0]
    try:
        rows = next(read_rows(Shard(source, 0, None, source.name), text_column), None)
    except ColumnError:
        raise
    except FormatError:
        return  # a damaged file; its shard reports it
    if rows is None or 0 not in rows.problems:
        return
    record = rows.records([0])[0]
    if list(record) == ["line"]:  # not a JSON object
        if isinstance(record["line"], list) or str(record["line"]).lstrip().startswith("["):
            raise FormatError(source.path, None, "is a JSON array; expected JSON lines, with one object per line")
    elif len(rows.problems) == len(rows.texts):
        check_columns(list(record), text_column, str(source.path))


def fingerprint(folder: Path) -> str:
    """Identify a model by the content of the files that prediction needs."""
    digest = hashlib.sha256()
    for path in sorted(set(RunFolder(folder).files())):
        name = path.relative_to(folder).as_posix()
        if name not in TRAINING_FILES and not name.startswith("checkpoints/"):
            with path.open("rb") as file:
                digest.update(f"{name}\0".encode() + hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:32]
