"""``spanwise demo``."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from spanwise.cli.options import ThreadsOption, check_target

TEXT = (
    "The University of Nairobi opened a clinic for breast and ovarian cancer in Kisumu in 2021. "
    "Metformin lowers blood glucose in type 2 diabetes and may cause nausea.\n\n"
    "A spokeswoman for the Bank of Japan said that exports to South Korea had risen since last March."
)

# A short training with a high rate: two to three minutes on two cores instead of ten with the automatic epochs.
EPOCHS, HEAD_RATE = 10, 0.003


def demo(
    out: Annotated[
        Path | None, typer.Option("--out", metavar="RUN", help="Run folder to write; a temporary one by default.")
    ] = None,
    epochs: Annotated[int, typer.Option("--epochs", metavar="N", min=1, help="Number of training epochs.")] = EPOCHS,
    threads: ThreadsOption = None,
) -> None:
    """Train, score and try a model on the bundled corpus, offline."""
    from rich.console import Console

    from spanwise.cli.training_report import print_scores
    from spanwise.corpora.splits import open_splits
    from spanwise.data import FOLDER
    from spanwise.description import describe, print_description
    from spanwise.prediction.predictor import Predictor
    from spanwise.training.run import train

    folder = out or Path(tempfile.mkdtemp(prefix="spanwise-demo-")) / "run"
    check_target(folder)
    typer.echo(f"The bundled corpus ({FOLDER}):\n")
    print_description(describe(open_splits(FOLDER)), Console())
    typer.echo("\nTraining:\n")
    run = train(FOLDER, folder, encoder="static", epochs=epochs, head_rate=HEAD_RATE, device="cpu", log=typer.echo)
    typer.echo("")
    print_scores(run.scores)
    typer.echo("\nPredictions for a new text:\n")
    for sentence in Predictor(run.model, "cpu").predict(TEXT):
        typer.echo(sentence.text.strip())
        for entity in sentence.entities:
            typer.echo(f"    {entity.type:<13} {entity.score:.2f}  {sentence.text_of(entity)}")
    program = "spanwise" if shutil.which("spanwise") else sys.argv[0]
    typer.echo(f"\nThe run folder is {folder}. To predict your own text, run\n    {program} predict {folder} FILE.txt")
    typer.echo(f"To try the model in a browser, run\n    {program} serve {folder}")
