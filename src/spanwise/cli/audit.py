"""``spanwise audit``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spanwise.cli.options import DeviceOption, EncodingOption, FromOption, ThreadsOption, print_ledger, with_encoding
from spanwise.cli.training_options import (
    EncoderOption,
    RecipeOption,
    SeedOption,
    SettingsOption,
    TrainingBatchOption,
)
from spanwise.core.counting import counted
from spanwise.core.errors import SpanwiseError
from spanwise.core.terminal import escape_controls

if TYPE_CHECKING:
    from spanwise.audit.corrections import Changes

MAX_LINES = 20  # changed entities that are printed


def audit(
    data: Annotated[
        Path | None, typer.Argument(metavar="DATA", help="Annotated file, or folder with train/dev/test files.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Folder to write; with --apply, the corrected corpus.")
    ] = None,
    apply: Annotated[
        Path | None,
        typer.Option("--apply", metavar="FILE", help="Write DATA with these corrections instead of auditing it."),
    ] = None,
    split: Annotated[
        str | None, typer.Option("--split", metavar="NAME", help="Split to audit; all splits together by default.")
    ] = None,
    folds: Annotated[
        int | None,
        typer.Option("--folds", metavar="N", help="Number of models, 5 by default; each predicts the part it has not seen."),
    ] = None,
    repeats: Annotated[
        int | None,
        typer.Option("--repeats", metavar="N", min=1, help="Repetitions with other folds, 1 by default; scores are averaged."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", min=1, help="Maximum number of suggestions; all by default.")
    ] = None,
    target_format: Annotated[
        str | None,
        typer.Option("--to", metavar="FORMAT", help="Also write the sentences to correct, e.g. label-studio or brat."),
    ] = None,
    recipe: RecipeOption = None,
    encoder: EncoderOption = None,
    epochs: Annotated[
        int | None,
        typer.Option("--epochs", metavar="N", min=1, help="Training epochs; half as many as `spanwise train` by default."),
    ] = None,
    batch_size: TrainingBatchOption = None,
    seed: SeedOption = None,
    settings: SettingsOption = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted audit; finished folds are reused.")] = False,
    lossy: Annotated[
        bool, typer.Option("--lossy", help="With --apply, drop annotations that the format cannot represent.")
    ] = False,
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
    source_format: FromOption = None,
    encoding: EncodingOption = None,
) -> None:
    """Find likely annotation errors, and apply corrections.

    Models are cross-validated on DATA. Where they disagree with its annotations, DIR gets a list of
    suggestions, the most certain first (suggestions.csv, suggestions.json), a page to read them in
    (report.html), and tables of strings and sentences that are annotated inconsistently.

    --apply takes suggestions.json without the suggestions that you reject, or the sentences of --to
    after you corrected them. It writes the corrected corpus and prints what changed.
    """
    source_format = with_encoding(source_format, encoding)
    training = {"epochs": epochs, "batch_size": batch_size, "seed": seed}
    if apply is not None:
        options: dict[str, object] = {
            "split": split, "folds": folds, "repeats": repeats, "limit": limit, "recipe": recipe, "encoder": encoder,
            **training, "set": settings or None, "resume": resume or None,
        }  # fmt: skip
        if unused := [f"--{name.replace('_', '-')}" for name, value in options.items() if value is not None]:
            raise typer.BadParameter(f"--apply corrects DATA without auditing it: omit {', '.join(unused)}")
        _apply(apply, data, out, source_format, target_format, lossy=lossy)
        return
    if lossy:
        raise typer.BadParameter("--lossy needs --apply")
    if data is None or out is None:
        raise SpanwiseError("spanwise audit: expected DATA and --out DIR (see spanwise audit --help)")
    from spanwise.audit.audit import audit as run

    try:
        result = run(
            data, out, split=split, folds=folds, repeats=repeats, recipe=recipe, encoder=encoder, overrides=settings or (),
            limit=limit, to=target_format, device=device, resume=resume, data_format=source_format, log=typer.echo,
            **{name: value for name, value in training.items() if value is not None},
        )  # fmt: skip
    except KeyboardInterrupt:
        typer.echo("spanwise: interrupted; add --resume to the command to continue", err=True)
        raise SystemExit(130) from None
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in result.counts.most_common())
    typer.echo(f"{counted(len(result.suggestions), 'suggestion')}{': ' * bool(kinds)}{kinds}")
    likely = sum(suggestion.score >= 0.5 for suggestion in result.suggestions)
    typer.echo(f"suggestions with a score of at least 0.5, where gold is probably wrong: {likely:,}")
    typer.echo(f"wrote {', '.join(map(str, result.files))}")


def _apply(
    corrections: Path, data: Path | None, out: Path | None, data_format: str | None, target_format: str | None, *, lossy: bool
) -> None:
    from spanwise.audit.application import apply_corrections

    path, changes, ledger = apply_corrections(
        corrections, data, out, data_format=data_format, target_format=target_format, lossy=lossy
    )
    _print_changes(changes)
    print_ledger(ledger)
    typer.echo(f"wrote {path}")


def _print_changes(changes: Changes) -> None:
    for line in changes.lines[:MAX_LINES]:
        typer.echo(escape_controls(line))
    if len(changes.lines) > MAX_LINES:
        typer.echo(f"… and {len(changes.lines) - MAX_LINES:,} more")
    counts = ", ".join(f"{count:,} {kind}" for kind, count in sorted(changes.counts.items()))
    typer.echo(f"changed: {counts or 'nothing'}")
