"""``spanwise analyze``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spanwise.cli.options import (
    BatchOption,
    DataArgument,
    DeviceOption,
    EncodingOption,
    GoldFormatOption,
    GoldOption,
    PaperAttributesOption,
    PredFormatOption,
    SplitOption,
    ThreadsOption,
    ThresholdsOption,
    check_target,
    print_ledger,
    with_encoding,
)


def analyze(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder to write: new, empty, or an earlier analysis.")],
    model: Annotated[Path | None, typer.Argument(metavar="MODEL", help="Run folder, or another torch model; not ONNX.")] = None,
    data: DataArgument = None,
    split: SplitOption = "test",
    pred: Annotated[
        list[Path] | None,
        typer.Option("--pred", metavar="FILE", help="Predictions of any system; needs --gold. Repeat it for several runs."),
    ] = None,
    gold: GoldOption = None,
    train: Annotated[
        Path | None,
        typer.Option("--train", metavar="FILE_OR_FOLDER", help="Training data; marks the entities and words seen in it."),
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(
            "--against",
            metavar="[NAME=]PATH[,PATH...]",
            help="Another system: prediction files or run folders. Repeatable.",
        ),
    ] = None,
    pred_format: PredFormatOption = None,
    gold_format: GoldFormatOption = None,
    encoding: EncodingOption = None,
    threshold: ThresholdsOption = None,
    paper_attributes: PaperAttributesOption = False,
    projection: Annotated[
        str, typer.Option("--projection", metavar="pca|tsne|umap", help="Projection of the span vectors.")
    ] = "pca",
    batch_size: BatchOption = 64,
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
) -> None:
    """Analyse the errors of a model or of predictions.

    Pass MODEL and DATA, or --pred and --gold. Writes report.html, figures (PNG and SVG), tables
    (CSV) and numbers.json to DIR. With --pred, sections that need the model are omitted. For several
    runs (several --pred, or a folder written by `spanwise train --seeds`), the report also has the
    mean and deviation of tables.
    """
    from spanwise.prediction.outputs import parse_thresholds
    from spanwise.prediction.systems import parse_systems

    pred_format = with_encoding(pred_format, encoding)
    gold_format = with_encoding(gold_format, encoding)
    thresholds = parse_thresholds(threshold or ())
    compared = [path for system in parse_systems(against or ()) for path in system.paths]
    check_target(out, model, data, *(pred or ()), gold, train, *compared)

    from spanwise.analysis.analyze import analyze as run
    from spanwise.analysis.inputs import InputOptions, input_from_predictions, input_from_runs
    from spanwise.analysis.projection import check_projection
    from spanwise.analysis.writing import check_output_folder

    check_output_folder(out)
    check_projection(projection)
    options = InputOptions(split, gold_format, pred_format, thresholds, batch_size, device, projection, paper_attributes)
    if model is not None and data is not None and not pred and gold is None:
        analysis_input = input_from_runs(model, data, train=train, against=against or (), options=options)
    elif pred and gold is not None and model is None:
        analysis_input = input_from_predictions(pred, gold, train=train, against=against or (), options=options)
    else:
        raise typer.BadParameter("pass either MODEL and DATA, or --pred FILE and --gold FILE")
    report = run(analysis_input, out)
    print_ledger(options.ledger)
    typer.echo(f"wrote {report}")
