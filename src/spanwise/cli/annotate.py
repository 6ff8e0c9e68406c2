"""``spanwise annotate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spanwise.cli.options import BatchOption, DeviceOption, JsonOption, ThreadsOption, ThresholdsOption, check_target_file, show
from spanwise.core.counting import counted


def annotate(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Run folder, exported or installed model, or hf:OWNER/NAME.")],
    source: Annotated[
        str, typer.Argument(metavar="INPUT", help="Parquet, JSON lines or text: a file, a folder, or a quoted glob.")
    ],
    output: Annotated[Path, typer.Argument(metavar="OUTPUT", help="Folder of shards to write, or to resume.")],
    text_column: Annotated[str, typer.Option("--text-column", metavar="NAME", help="Column with the texts.")] = "text",
    format: Annotated[
        str | None,
        typer.Option("--format", metavar="parquet|jsonl", help="Format of the shards; parquet for parquet input by default."),
    ] = None,
    threshold: ThresholdsOption = None,
    overlap: Annotated[
        str, typer.Option("--overlap", metavar="nested|flat|outermost", help="Which overlapping entities to keep.")
    ] = "nested",
    workers: Annotated[
        int | None,
        typer.Option("--workers", metavar="N", min=1, help="Worker processes; one per core by default."),
    ] = None,
    ray: Annotated[
        str | None, typer.Option("--ray", metavar="local|ADDRESS", help="Run on Ray: on this machine, or on a cluster.")
    ] = None,
    precision: Annotated[
        str | None,
        typer.Option("--precision", metavar="float32|half", help="Precision of the encoder; half on a GPU by default."),
    ] = None,
    shard_size: Annotated[
        int | None,
        typer.Option("--shard-size", metavar="BYTES", min=1024, help="Size of the shards; 1 to 32 MB by default."),
    ] = None,
    batch_size: BatchOption = 64,
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
    json_file: JsonOption = None,
) -> None:
    """Annotate large tables of texts with entities and relations.

    The output is a folder of shards with all columns of the input and a list of entities per row.
    After an interruption, run the same command again to annotate the missing shards. Rows that fail
    are written to OUTPUT/_errors with the reason, and the exit code is 1.
    """
    from spanwise.annotation.run import annotate as run
    from spanwise.cli.annotation_progress import AnnotationProgress
    from spanwise.prediction.outputs import parse_thresholds

    check_target_file(json_file, Path(model), Path(source), output)
    try:
        with AnnotationProgress() as progress:
            summary = run(
                model, source, output, text_column=text_column, format=format, threshold=parse_thresholds(threshold or ()),
                overlap=overlap, batch_size=batch_size, device=device, precision=precision, workers=workers, threads=threads,
                shard_size=shard_size, ray=ray, listener=progress,
            )  # fmt: skip
    except KeyboardInterrupt:
        typer.echo("spanwise: interrupted; run the same command again to continue", err=True)
        raise SystemExit(130) from None

    def print_summary() -> None:
        counts = summary.counts
        relations = f", {counted(counts.relations, 'relation')}" if counts.relations else ""
        typer.echo(
            f"wrote {output}: {counted(counts.rows, 'row')}, {counted(counts.entities, 'entity')}{relations}, "
            f"{counted(summary.shards, 'shard')}, {progress.speed}{summary.seconds:.1f} s"
        )
        if counts.errors:
            typer.echo(f"{counted(counts.errors, 'row')} failed; the reasons are in {output / '_errors'}", err=True)
        if summary.failed_shards:
            typer.echo(f"{counted(len(summary.failed_shards), 'shard')} failed; run the command again to retry", err=True)

    show(json_file, summary.to_json, print_summary)
    if not summary.is_complete:
        raise typer.Exit(1)
