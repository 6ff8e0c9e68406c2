"""``spanwise train``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spanwise.cli.options import DeviceOption, EncodingOption, FromOption, ThreadsOption, with_encoding
from spanwise.cli.training_options import (
    DeterministicOption,
    EncoderOption,
    EpochsOption,
    InitOption,
    RecipeOption,
    ResumeOption,
    RunOption,
    SeedOption,
    SettingsOption,
    TrackOption,
    TrainingBatchOption,
    TrainingDataArgument,
    resume_hint,
)


def train(
    data: TrainingDataArgument,
    out: RunOption,
    recipe: RecipeOption = None,
    encoder: EncoderOption = None,
    task: Annotated[
        str | None,
        typer.Option("--task", metavar="entities|typing", help="Predict entities, or type given spans (recipe sng)."),
    ] = None,
    epochs: EpochsOption = None,
    batch_size: TrainingBatchOption = None,
    seed: SeedOption = None,
    seeds: Annotated[
        str | None, typer.Option("--seeds", metavar="1,2,3", help="Train once per seed; report mean and standard deviation.")
    ] = None,
    folds: Annotated[
        Path | None,
        typer.Option("--folds", metavar="FILE", help='Cross-validate with folds [{"fold": 0, "test": ["id", …]}, …].'),
    ] = None,
    sweep: Annotated[
        list[str] | None,
        typer.Option("--sweep", metavar="KEY=A,B,C", help="Train a grid; select on dev, score test once. Repeatable."),
    ] = None,
    jobs: Annotated[
        int, typer.Option("--jobs", metavar="N", min=1, help="Runs of --seeds, --folds or --sweep to train at a time.")
    ] = 1,
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
    deterministic: DeterministicOption = False,
    resume: ResumeOption = False,
    init: InitOption = None,
    keep_types: Annotated[
        bool, typer.Option("--keep-types", help="Keep the types of the --init model that DATA does not annotate.")
    ] = False,
    track: TrackOption = None,
    settings: SettingsOption = None,
    source_format: FromOption = None,
    encoding: EncodingOption = None,
) -> None:
    """Train a model on annotated data.

    Writes the model, its settings and its scores to a run folder.
    """
    from spanwise.runtime.launch import start_missing_processes

    start_missing_processes()
    from spanwise.cli.training_report import print_next_commands, print_scores
    from spanwise.core.errors import SpanwiseError
    from spanwise.recipes.resolve import Choices
    from spanwise.runs.folder import RunFolder
    from spanwise.runtime.device import is_main_process
    from spanwise.training.folds import train_folds
    from spanwise.training.run import RunOptions, train_choices
    from spanwise.training.seeds import train_seeds
    from spanwise.training.sweep import train_sweep

    source_format = with_encoding(source_format, encoding)
    numbers = None if seeds is None else _parse_seeds(seeds)
    if resume and not (sweep or folds or numbers) and (group := RunFolder(out).read_group()):
        numbers, sweep, folds = group.seeds or None, group.sweep, group.folds
    if sweep and numbers:
        raise SpanwiseError("--sweep and --seeds cannot be combined; sweep first, then repeat the best settings with --seeds")
    if folds and (sweep or numbers):
        raise SpanwiseError("--folds cannot be combined with --sweep or --seeds")
    if numbers and seed is not None:
        message = "--seed and --seeds cannot be combined" if seeds else f"{out} holds runs of several seeds; omit --seed"
        raise SpanwiseError(message)
    if jobs > 1 and not (numbers or sweep or folds):
        raise SpanwiseError("--jobs trains several runs at a time; it needs --seeds, --folds or --sweep")
    training = {"epochs": epochs, "batch_size": batch_size, "seed": seed, "deterministic": deterministic or None}
    choices = Choices(recipe, encoder, task, tuple(settings or ()), training)
    options = RunOptions(
        device=device, resume=resume, init=init, keep_types=keep_types, data_format=source_format,
        trackers=tuple(track or ()), log=typer.echo, jobs=jobs,
    )  # fmt: skip
    with resume_hint(out):
        if sweep:
            best = out / train_sweep(data, out, sweep, choices, options)["grid"][0]["folder"]
            print_next_commands(best, data, _data_format(out), RunFolder(best).read_scores())
        elif folds:
            train_folds(data, out, folds, choices, options)
            typer.echo(f"run folders: {', '.join(str(run.path) for run in RunFolder(out).runs())}")
        elif numbers:
            train_seeds(data, out, numbers, choices, options)
            first = out / f"seed-{numbers[0]}"
            print_next_commands(first, data, _data_format(out), RunFolder(first).read_scores(), group=out)
        else:
            run = train_choices(data, out, choices, options)
            if is_main_process():
                print_scores(run.scores)
                print_next_commands(out, data, run.data_format, run.scores)


def _data_format(out: Path) -> str | None:
    """The format of the data of a group of runs, if it was given when the group was started."""
    from spanwise.runs.folder import RunFolder

    group = RunFolder(out).read_group()
    return None if group is None else group.data_format


def _parse_seeds(text: str) -> list[int]:
    from spanwise.core.errors import SpanwiseError

    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise SpanwiseError(f"--seeds {text or repr(text)}: expected integers separated by commas, as in 1,2,3") from None
