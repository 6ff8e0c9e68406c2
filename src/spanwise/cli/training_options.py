"""Options shared by the commands that train a model, and what they print."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

TrainingDataArgument = Annotated[
    Path, typer.Argument(metavar="DATA", help="Folder with train/dev/test files, or one file to split.")
]
RunOption = Annotated[Path, typer.Option("--out", metavar="RUN", help="Run folder to write.")]
RecipeOption = Annotated[
    str | None,
    typer.Option("--recipe", metavar="NAME", help="Method to train; `spanwise recipes` lists them.", show_default="spanwise"),
]
EncoderOption = Annotated[
    str | None,
    typer.Option("--encoder", metavar="NAME", help="Encoder: static, minilm, a model folder, or hf:NAME on the hub."),
]
EpochsOption = Annotated[
    int | None,
    typer.Option("--epochs", metavar="N", min=1, help="Training epochs; by default 6 to 100, depending on the data."),
]
TrainingBatchOption = Annotated[
    int | None,
    typer.Option("--batch-size", metavar="N", min=1, help="Sentences per batch; by default 8 to 32, depending on the data."),
]
SeedOption = Annotated[int | None, typer.Option("--seed", metavar="N", min=0, help="Random seed.")]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Resume an interrupted run with its settings.")]
DeterministicOption = Annotated[
    bool, typer.Option("--deterministic", help="Give the same weights on every run on a GPU; slower.")
]
InitOption = Annotated[Path | None, typer.Option("--init", metavar="RUN", help="Start from the weights of this trained model.")]
TrackOption = Annotated[
    list[str] | None, typer.Option("--track", metavar="NAME", help="Also log to tensorboard, wandb or mlflow. Repeatable.")
]
SettingsOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Change a setting, e.g. head.representation=boundary. Repeatable."),
]


@contextmanager
def resume_hint(out: Path) -> Iterator[None]:
    """Mention --resume when a started run is interrupted."""
    from spanwise.runs.folder import RunFolder

    try:
        yield
    except KeyboardInterrupt:
        if not RunFolder(out).is_unfinished and not RunFolder(out).runs():
            raise
        sys.stderr.write("spanwise: interrupted; add --resume to the command to continue\n")
        raise SystemExit(130) from None
