"""``spanwise suggest``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from spanwise.cli.options import (
    BatchOption,
    DeviceOption,
    EncodingOption,
    FromOrTextOption,
    ThreadsOption,
    ThresholdsOption,
    check_target,
    dash_as_standard_output,
    print_ledger,
    with_encoding,
)
from spanwise.cli.training_options import EncoderOption, EpochsOption, RecipeOption, SeedOption, SettingsOption
from spanwise.core.counting import counted

if TYPE_CHECKING:
    from spanwise.active_learning.choosing import Criteria
    from spanwise.recipes.resolve import Choices


def suggest(
    model: Annotated[
        str | None,
        typer.Argument(metavar="MODEL", help="Run folder, exported or installed model, or hf:OWNER/NAME.", show_default=False),
    ] = None,
    pool: Annotated[
        list[str] | None,
        typer.Argument(metavar="POOL", help="Files or folders to choose from; '-' is standard input.", show_default=False),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            callback=dash_as_standard_output,
            help="File to write; with --simulate, the folder of the report.",
        ),
    ] = None,
    count: Annotated[int, typer.Option("--count", "-n", metavar="N", min=1, help="Sentences or documents to choose.")] = 100,
    strategy: Annotated[
        str, typer.Option("--strategy", metavar="both|uncertainty|diversity|random", help="How to choose texts.")
    ] = "both",
    unit: Annotated[str, typer.Option("--unit", metavar="sentence|document", help="Unit to choose.")] = "sentence",
    annotated: Annotated[
        list[Path] | None,
        typer.Option("--annotated", metavar="FILE", help="Skip texts that are in this file or folder. Repeatable."),
    ] = None,
    annotated_format: Annotated[
        str | None,
        typer.Option("--annotated-format", metavar="FORMAT", help="Format of the --annotated files; detected by default."),
    ] = None,
    prefer: Annotated[
        list[str] | None,
        typer.Option("--prefer", metavar="TYPE[=WEIGHT]", help="Prefer texts with this type; default weight 10. Repeatable."),
    ] = None,
    per_word: Annotated[bool, typer.Option("--per-word", help="Divide the score of a text by its number of words.")] = False,
    target_format: Annotated[
        str | None,
        typer.Option(
            "--to", "--format", metavar="FORMAT", help="Output format or html; detected from the file name by default."
        ),
    ] = None,
    threshold: ThresholdsOption = None,
    simulate: Annotated[
        Path | None,
        typer.Option("--simulate", metavar="DATA", help="Compare the strategy with random choice on this labelled corpus."),
    ] = None,
    repeats: Annotated[
        int, typer.Option("--repeats", metavar="N", min=1, help="With --simulate, repetitions with other seeds.")
    ] = 1,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", min=1, help="With --simulate, stop at this many sentences.")
    ] = None,
    recipe: RecipeOption = None,
    encoder: EncoderOption = None,
    epochs: EpochsOption = None,
    seed: SeedOption = None,
    settings: SettingsOption = None,
    batch_size: BatchOption = 64,
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
    source_format: FromOrTextOption = None,
    encoding: EncodingOption = None,
) -> None:
    """Choose which texts to annotate next, with predictions.

    By default, sentences with many entities and uncertain spans are chosen, but few with the same
    words. To correct the predictions in an annotation tool, pass --to label_studio, brat or another
    format.

    With --simulate, omit MODEL and POOL. The training sentences of DATA are annotated in rounds of
    N, and each round trains a new model (--recipe, --encoder, --epochs, --set). The learning curve
    is compared with that of random choice.
    """
    from spanwise.active_learning.choosing import Criteria, parse_preferred

    criteria = Criteria(count, strategy, unit, parse_preferred(prefer or ()), per_word, 1 if seed is None else seed)
    source_format = with_encoding(source_format, encoding)
    if output is None:
        raise typer.BadParameter("pass --output FILE, the file to write (with --simulate, a folder)")
    if simulate is not None:
        if model is not None or pool or annotated or threshold or target_format:
            raise typer.BadParameter(
                "--simulate DATA trains its own models on DATA: omit MODEL, POOL, --annotated, --threshold and --to"
            )
        if unit != "sentence":
            raise typer.BadParameter("--simulate counts sentences: omit --unit")
        from spanwise.recipes.resolve import Choices  # needs torch

        choices = Choices(recipe, encoder, None, tuple(settings or ()), {"epochs": epochs})
        _simulate(simulate, output, choices, criteria, repeats, limit, device, source_format)
        return
    if model is None or not pool:
        raise typer.BadParameter("pass MODEL and POOL, or --simulate DATA")
    if recipe is not None or encoder is not None or epochs is not None or settings or limit is not None or repeats > 1:
        raise typer.BadParameter("--recipe, --encoder, --epochs, --set, --limit and --repeats are for --simulate")
    done = AnnotatedFiles([str(path) for path in annotated or ()], annotated_format)
    _suggest(model, pool, output, criteria, done, target_format, threshold or (), batch_size, device, source_format)


class AnnotatedFiles(NamedTuple):
    """Files whose texts are skipped, and their format."""

    paths: Sequence[str]
    format: str | None

    def check(self) -> None:
        from spanwise.core.errors import SpanwiseError, UnknownFormatError
        from spanwise.inputs.sources import check_input_formats

        try:
            check_input_formats(self.paths, self.format)
        except UnknownFormatError as error:  # the command would name --from, the format of the pool
            raise SpanwiseError(str(error.with_changes(option="--annotated-format"))) from None


def _suggest(
    model: str, pool: Sequence[str], output: Path, criteria: Criteria, annotated: AnnotatedFiles, target_format: str | None,
    threshold: Sequence[str], batch_size: int, device: str, source_format: str | None,
) -> None:  # fmt: skip
    from spanwise.active_learning.choosing import Pool, choose
    from spanwise.active_learning.pre_annotation import pre_annotate
    from spanwise.active_learning.units import SeenTexts
    from spanwise.cli.prediction_progress import PredictionProgress
    from spanwise.core.errors import SpanwiseError
    from spanwise.files.writing import is_stream
    from spanwise.formats import Ledger
    from spanwise.inputs.sources import check_input_formats, input_paths, read_inputs
    from spanwise.prediction.load import load
    from spanwise.prediction.outputs import check_output_format, parse_thresholds, write_predictions

    # Check the options and inputs before the model is loaded.
    thresholds = parse_thresholds(threshold)
    check_output_format(output, target_format)
    skipped_paths = (*input_paths(annotated.paths, annotated.format), *map(Path, annotated.paths))
    check_target(output, Path(model), *input_paths(pool, source_format), *skipped_paths)
    check_input_formats(pool, source_format)
    annotated.check()
    # Choose.
    ledger, progress = Ledger(), PredictionProgress()
    predictor = load(model, device)
    units = Pool(SeenTexts(read_inputs(annotated.paths, annotated.format, Ledger())) if annotated.paths else None)
    with progress.show(is_visible=True):
        sentences = read_inputs(pool, source_format, ledger, needs_spans=predictor.needs_spans)
        chosen = choose(predictor, sentences, criteria, units, batch_size=batch_size)
        if not chosen:
            reason = (
                f"all {units.units:,} {criteria.unit}s of the pool are annotated already"
                if units.units
                else "the pool is empty"
            )
            raise SpanwiseError(f"nothing to suggest: {reason}")
        predicted = pre_annotate(predictor, chosen, unit=criteria.unit, threshold=thresholds, batch_size=batch_size)
        written = progress.count(predicted)
        write_predictions(written, output, target_format, types=predictor.types, model=model, ledger=ledger)
    print_ledger(ledger)
    is_to_stream = is_stream(output)  # the data may go to standard output, so messages go to standard error
    skipped = f", {units.skipped:,} skipped as annotated, repeated or empty" if units.skipped else ""
    typer.echo(f"read {counted(units.units, criteria.unit)}{skipped}", err=is_to_stream)
    if len(chosen) < criteria.count:
        message = f"fewer than {criteria.count:,} {criteria.unit}s are left to annotate; all of them were chosen"
        typer.echo(message, err=is_to_stream)
    documents = f"{counted(len(chosen), 'document')}, " if criteria.unit == "document" else ""
    typer.echo(f"wrote {output}: {documents}{progress.summary}", err=is_to_stream)


def _simulate(
    data: Path, out: Path, choices: Choices, criteria: Criteria, repeats: int, limit: int | None, device: str,
    source_format: str | None,
) -> None:  # fmt: skip
    from spanwise.active_learning.learning_curve import simulate_curves, summarize, write_curves
    from spanwise.active_learning.simulate import Simulation
    from spanwise.analysis.writing import check_output_folder
    from spanwise.core.errors import SpanwiseError
    from spanwise.training.building import replace_encoder
    from spanwise.training.data import read_training_corpus

    check_target(out, data)
    check_output_folder(out)
    corpus = read_training_corpus(data, source_format, typer.echo)
    if criteria.count >= (size := len(corpus["train"])):
        available = counted(size, "training sentence")
        raise SpanwiseError(f"a simulation starts with {criteria.count:,} sentences; found only {available}; pass a smaller -n")
    config = choices.resolve()
    if choices.takes_default_encoder:
        config = replace_encoder(config, corpus, typer.echo)
    simulation = Simulation(corpus, config, criteria, start=criteria.count, device=device)
    seeds = range(criteria.seed, criteria.seed + repeats)
    curves = simulate_curves(simulation, seeds, limit=limit, log=typer.echo)
    title = f"Learning curve on {corpus.name or data.name}"
    report = write_curves(curves, out, title)
    typer.echo(summarize(curves))
    typer.echo(f"wrote {report}")
