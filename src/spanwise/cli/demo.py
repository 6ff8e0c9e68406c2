"""``spanwise demo``."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

TEXT = (
    "The University of Nairobi opened a clinic for breast and ovarian cancer in Kisumu in 2021. "
    "Metformin lowers blood glucose in type 2 diabetes and may cause nausea.\n\n"
    "A spokeswoman for the Bank of Japan said that exports to South Korea had risen since last March."
)


def demo(
    out: Annotated[
        Path | None, typer.Option("--out", metavar="RUN", help="The run folder; a temporary one if left out.")
    ] = None,
    epochs: Annotated[int, typer.Option("--epochs", min=1)] = 30,
) -> None:
    """Describe the bundled corpus, train a model on it, score it and predict a text. A few minutes, no network."""
    from rich.console import Console

    from spanwise.cli.training_report import print_scores
    from spanwise.corpora.splits import open_splits
    from spanwise.data import FOLDER
    from spanwise.description import describe, print_description
    from spanwise.prediction.load import Predictor
    from spanwise.training.run import train

    folder = out or Path(tempfile.mkdtemp(prefix="spanwise-demo-")) / "run"
    typer.echo(f"The bundled corpus, {FOLDER}:\n")
    print_description(describe(open_splits(FOLDER)), Console())
    typer.echo("\nTraining on it:\n")
    run = train(FOLDER, folder, recipe="spanner", encoder="static", epochs=epochs, batch_size=8, device="cpu", log=typer.echo)
    typer.echo("")
    print_scores(run.scores)
    typer.echo("\nWhat it finds in a text it has not seen:\n")
    for sentence in Predictor(run.model, "cpu").predict(TEXT):
        typer.echo(sentence.text.strip())
        for entity in sentence.entities:
            typer.echo(f"    {entity.type:<13} {entity.score:.2f}  {sentence.text_of(entity)}")
    program = "spanwise" if shutil.which("spanwise") else sys.argv[0]
    typer.echo(f"\nThe run folder is {folder}; predict your own text with\n    {program} predict {folder} FILE.txt")
    typer.echo(f"or on a page in your browser, which this starts:\n    {program} serve {folder}")
