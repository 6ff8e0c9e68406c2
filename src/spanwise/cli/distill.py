"""``spanwise distill``."""

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


def distill(
    teachers: Annotated[
        list[str], typer.Argument(metavar="TEACHER", help="Run folders of trained models, or folders of several runs.")
    ],
    data: TrainingDataArgument,
    out: RunOption,
    unlabelled: Annotated[
        list[Path] | None,
        typer.Option(
            "--unlabelled", metavar="TEXT", help="Also learn from this text, in any format; labels are ignored. Repeatable."
        ),
    ] = None,
    recipe: RecipeOption = None,
    encoder: EncoderOption = None,
    epochs: EpochsOption = None,
    batch_size: TrainingBatchOption = None,
    seed: SeedOption = None,
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
    deterministic: DeterministicOption = False,
    resume: ResumeOption = False,
    init: InitOption = None,
    track: TrackOption = None,
    settings: SettingsOption = None,
    source_format: FromOption = None,
    encoding: EncodingOption = None,
) -> None:
    """Train a model that learns from trained models, its teachers.

    Distil several models into one, or a large model into a small one. On DATA, the student learns
    from gold and from the mean probabilities of the teachers (--set training.gold_weight=0.5). On
    unlabelled text, it learns from the probabilities only. All other options are those of train.
    """
    from spanwise.runtime.launch import start_missing_processes

    start_missing_processes()
    from spanwise.cli.training_report import print_next_commands, print_scores
    from spanwise.recipes.resolve import Choices
    from spanwise.runtime.device import is_main_process
    from spanwise.training.run import RunOptions, train_choices

    training = {"epochs": epochs, "batch_size": batch_size, "seed": seed, "deterministic": deterministic or None}
    choices = Choices(recipe, encoder, None, tuple(settings or ()), training)
    options = RunOptions(
        device=device, resume=resume, init=init, data_format=with_encoding(source_format, encoding),
        trackers=tuple(track or ()), log=typer.echo, teachers=tuple(teachers), unlabelled=tuple(map(str, unlabelled or ())),
    )  # fmt: skip
    with resume_hint(out):
        run = train_choices(data, out, choices, options)
    if is_main_process():
        print_scores(run.scores)
        print_next_commands(out, data, run.data_format, run.scores)
