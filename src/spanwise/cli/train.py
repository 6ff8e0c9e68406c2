"""``spanwise train``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from spanwise.cli.options import FromOption


def train(
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="A folder with train/dev/test files, or one file (dev is cut off).")
    ],
    out: Annotated[Path, typer.Option("--out", metavar="RUN", help="The run folder to write.")],
    recipe: Annotated[
        str | None,
        typer.Option("--recipe", help="Which system to train; `spanwise recipes` lists them.", show_default="spanner"),
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option("--encoder", help="static, minilm, a model folder, or a hub name. Default: one that needs no network."),
    ] = None,
    task: Annotated[
        str | None, typer.Option("--task", metavar="entities|typing", help="typing: the spans are given (recipe sng).")
    ] = None,
    epochs: Annotated[int | None, typer.Option("--epochs", min=1)] = None,
    batch_size: Annotated[
        int | None, typer.Option("--batch-size", min=1, help="Sentences of a batch. Left out: 8 to 32, by the data's size.")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0)] = None,
    seeds: Annotated[
        str | None, typer.Option("--seeds", metavar="1,2,3", help="Repeat with these seeds: mean and deviation.")
    ] = None,
    folds: Annotated[
        Path | None,
        typer.Option(
            "--folds", metavar="FILE", help='Cross-validate: [{"fold": 0, "test": ["id", …]}, …] over all sentences of DATA.'
        ),
    ] = None,
    sweep: Annotated[
        list[str] | None, typer.Option("--sweep", metavar="KEY=A,B,C", help="Train a grid, choose on dev, score test once.")
    ] = None,
    device: Annotated[str, typer.Option("--device", metavar="cpu|cuda|auto")] = "auto",
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an interrupted training, with the settings it began with.")
    ] = False,
    init: Annotated[
        Path | None, typer.Option("--init", metavar="RUN", help="Start from the weights of a trained model.")
    ] = None,
    track: Annotated[
        list[str] | None, typer.Option("--track", metavar="NAME", help="Also log to tensorboard, wandb or mlflow.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Any setting: head.representation=boundary.")
    ] = None,
    source_format: FromOption = None,
) -> None:
    """Train a recipe on annotated data and leave model, scores and settings in a run folder."""
    from spanwise.cli.training_report import print_scores
    from spanwise.core.errors import SpanwiseError
    from spanwise.runtime.device import is_main_process
    from spanwise.training.folds import train_folds
    from spanwise.training.several import train_seeds, train_sweep
    from spanwise.training.together import Asked

    numbers = None if seeds is None else _numbers(seeds)
    if resume and not (sweep or folds or numbers) and (asked := Asked.read(out)):
        numbers, sweep, folds = asked.seeds or None, asked.sweep, asked.folds
    if sweep and numbers:
        raise SpanwiseError("--sweep and --seeds do not go together: sweep first, then repeat what was chosen")
    if folds and (sweep or numbers):
        raise SpanwiseError("--folds does not go together with --sweep or --seeds")
    if numbers and seed is not None:
        why = "--seed and --seeds do not go together" if seeds else f"{out} holds runs of several seeds: leave --seed out"
        raise SpanwiseError(why)
    common: dict[str, Any] = {
        "recipe": recipe, "encoder": encoder, "task": task, "epochs": epochs, "batch_size": batch_size, "device": device,
        "init": init, "trackers": tuple(track or ()), "data_format": source_format, "log": typer.echo,
    }  # fmt: skip
    overrides = tuple(settings or ())
    with _saying_how_to_go_on(out):
        if sweep:
            train_sweep(data, out, sweep, overrides=overrides, seed=seed, resume=resume, **common)
        elif folds:
            train_folds(data, out, folds, overrides=overrides, seed=seed, resume=resume, **common)
        elif numbers:
            train_seeds(data, out, numbers, overrides=overrides, resume=resume, **common)
        else:
            from spanwise.training.run import train as run

            finished = run(data, out, overrides=overrides, seed=seed, resume=resume, **common)
            if is_main_process():
                print_scores(finished.scores)
                typer.echo(f"run folder: {out}")


@contextmanager
def _saying_how_to_go_on(out: Path) -> Iterator[None]:
    """What an interrupted training leaves in its folder can be gone on with, if it has begun."""
    from spanwise.runs.files import is_unfinished, runs_in

    try:
        yield
    except KeyboardInterrupt:
        if not is_unfinished(out) and not runs_in(out):
            raise
        sys.stderr.write("spanwise: interrupted; the same command with --resume goes on with it\n")
        raise SystemExit(130) from None


def _numbers(text: str) -> list[int]:
    from spanwise.core.errors import SpanwiseError

    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise SpanwiseError(f"--seeds {text or repr(text)}: expected whole numbers with commas between, as in 1,2,3") from None
