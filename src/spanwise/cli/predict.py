"""``spanwise predict``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

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


def predict(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Run folder, exported or installed model, or hf:OWNER/NAME.")],
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE|FOLDER|-",
            help="Raw text or annotated data; standard input by default.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            callback=dash_as_standard_output,
            help="File to write; standard output as jsonl by default.",
        ),
    ] = None,
    target_format: Annotated[
        str | None,
        typer.Option(
            "--to", "--format", metavar="FORMAT", help="Output format or html; detected from the file name by default."
        ),
    ] = None,
    threshold: ThresholdsOption = None,
    overlap: Annotated[
        str, typer.Option("--overlap", metavar="nested|flat|outermost", help="Which overlapping entities to keep.")
    ] = "nested",
    batch_size: BatchOption = 64,
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
    source_format: FromOrTextOption = None,
    encoding: EncodingOption = None,
) -> None:
    """Predict entities and relations in texts or annotated data.

    Raw text (.txt files, standard input, any file with --from text, JSON records with a text) is
    split into sentences and words; a line end always ends a sentence. Annotated data keeps its
    words, order and ids; repeated ids get a number. Its annotations are ignored, except by models
    that type given spans. All files of a folder are read. Predictions that the output format cannot
    represent are dropped and counted.
    """
    from spanwise.runtime.collection import paused_collection

    with paused_collection():
        from spanwise.cli.prediction_progress import PredictionProgress, can_show_bar
        from spanwise.files.writing import is_stream
        from spanwise.formats import Ledger
        from spanwise.inputs.sources import STDIN, check_input_formats, input_paths, read_inputs
        from spanwise.prediction.load import load
        from spanwise.prediction.outputs import check_output_format, parse_thresholds, print_predictions, write_predictions

        # Check the options and inputs before the model is loaded.
        source_format = with_encoding(source_format, encoding)
        thresholds = parse_thresholds(threshold or ())
        check_output_format(output, target_format)
        check_target(output, Path(model), *input_paths(sources or [STDIN], source_format))
        check_input_formats(sources or [STDIN], source_format)
        predictor = load(model, device, maps_weights=True)  # this process is short, and copying the weights takes longer
    # Predict.
    ledger = Ledger()
    progress = PredictionProgress()
    sentences = read_inputs(sources or [STDIN], source_format, ledger, needs_spans=predictor.needs_spans)
    predicted = progress.count(predictor.stream(sentences, threshold=thresholds, overlap=overlap, batch_size=batch_size))
    with progress.show(is_visible=can_show_bar(output is not None)):
        if output is None:
            print_predictions(predicted)
        else:
            write_predictions(predicted, output, target_format, types=predictor.types, model=model, ledger=ledger)
    print_ledger(ledger)
    if output is None:
        typer.echo(f"predicted {progress.summary}", err=True)
    else:
        typer.echo(f"wrote {output}: {progress.summary}", err=is_stream(output))
