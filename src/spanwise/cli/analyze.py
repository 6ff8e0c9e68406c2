"""``spanwise analyze``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spanwise.cli.options import (
    BatchOption,
    DataArgument,
    DeviceOption,
    GoldFormatOption,
    GoldOption,
    ModelArgument,
    PredFormatOption,
    PredOption,
    SplitOption,
    ThresholdOption,
    print_ledger,
)


def analyze(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder to write: new, empty, or an earlier analysis.")],
    model: ModelArgument = None,
    data: DataArgument = None,
    split: SplitOption = "test",
    pred: PredOption = None,
    gold: GoldOption = None,
    train: Annotated[
        Path | None,
        typer.Option("--train", metavar="FILE_OR_FOLDER", help="Training data: which entities and words were seen in it."),
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(
            "--against",
            metavar="[NAME=]PATH[,PATH...]",
            help="Another system to compare with: files of predictions or run folders. May be given again.",
        ),
    ] = None,
    pred_format: PredFormatOption = None,
    gold_format: GoldFormatOption = None,
    threshold: ThresholdOption = 0.0,
    projection: Annotated[
        str, typer.Option("--projection", metavar="pca|tsne|umap", help="How a model's span vectors are drawn.")
    ] = "pca",
    batch_size: BatchOption = 64,
    device: DeviceOption = "auto",
) -> None:
    """Show why a model fails: figures, tables, and a report with every mistake, from a model or any system's predictions.

    Writes report.html, figures (PNG and SVG), tables (CSV) and numbers.json to DIR. A model is tried on DATA; predictions
    (--pred) of any system are compared with --gold, and show all but what needs the model itself.
    """
    from spanwise.analysis.analyze import analyze as run
    from spanwise.analysis.projection import check_projection
    from spanwise.analysis.subjects import Reading, of_model, of_predictions
    from spanwise.analysis.writing import check_folder

    check_folder(out)
    check_projection(projection)
    reading = Reading(split, gold_format, pred_format, threshold, batch_size, device, projection)
    if model is not None and data is not None and pred is None and gold is None:
        subject = of_model(model, data, train=train, against=against or (), reading=reading)
    elif pred is not None and gold is not None and model is None:
        subject = of_predictions(pred, gold, train=train, against=against or (), reading=reading)
    else:
        raise typer.BadParameter("give either MODEL and DATA, or --pred FILE and --gold FILE")
    report = run(subject, out)
    print_ledger(reading.ledger)
    typer.echo(f"wrote {report}")
