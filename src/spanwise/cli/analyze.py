"""``spanwise analyze``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spanwise.cli.options import print_ledger


def analyze(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder to write: new, empty, or an earlier analysis.")],
    model: Annotated[Path | None, typer.Argument(metavar="[MODEL]", help="A run folder, with the data to try it on.")] = None,
    data: Annotated[
        Path | None, typer.Argument(metavar="[DATA]", help="A file, or a folder with train/dev/test files.")
    ] = None,
    split: Annotated[str, typer.Option("--split", help="Which split of a DATA folder; for a model.")] = "test",
    pred: Annotated[Path | None, typer.Option("--pred", metavar="FILE", help="What a system predicted, with --gold.")] = None,
    gold: Annotated[Path | None, typer.Option("--gold", metavar="FILE", help="What is right.")] = None,
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
    pred_format: Annotated[
        str | None,
        typer.Option("--pred-format", metavar="FORMAT", help="Format of --pred and --against. Seen from the file if left out."),
    ] = None,
    gold_format: Annotated[
        str | None,
        typer.Option(
            "--gold-format", metavar="FORMAT", help="Format of DATA, --gold and --train. Seen from the file if left out."
        ),
    ] = None,
    threshold: Annotated[
        float, typer.Option("--threshold", min=0, max=1, help="Leave out entities and relations with a lower score.")
    ] = 0.0,
    projection: Annotated[
        str, typer.Option("--projection", metavar="pca|tsne|umap", help="How a model's span vectors are drawn.")
    ] = "pca",
    batch_size: Annotated[int, typer.Option("--batch-size", min=1, help="For a model.")] = 64,
    device: Annotated[str, typer.Option("--device", metavar="cpu|cuda|auto", help="For a model.")] = "auto",
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
