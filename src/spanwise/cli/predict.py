"""``spanwise predict``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spanwise.cli.options import FromOrTextOption, print_ledger


def predict(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A run folder, or a model's name on the Hugging Face hub.")],
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE|FOLDER|-",
            help="Raw text, or data in any format; standard input ('-') if left out.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to write; standard output, as jsonl, if left out."),
    ] = None,
    target_format: Annotated[
        str | None,
        typer.Option("--to", "--format", metavar="FORMAT", help="html, or a format of spanwise formats, with options."),
    ] = None,
    threshold: Annotated[
        list[str] | None,
        typer.Option(
            "--threshold",
            metavar="[TYPE=]SCORE",
            help="Leave out what scores lower; of one type, where it is named. Repeatable.",
        ),
    ] = None,
    overlap: Annotated[
        str, typer.Option("--overlap", metavar="nested|flat|outermost", help="Which of entities that overlap to keep.")
    ] = "nested",
    batch_size: Annotated[int, typer.Option("--batch-size", min=1)] = 64,
    device: Annotated[str, typer.Option("--device", metavar="cpu|cuda|auto")] = "auto",
    source_format: FromOrTextOption = None,
) -> None:
    """Find entities in raw text or in pretokenised data, with scores and character offsets.

    Raw text (a .txt file, standard input, any file with --from text, the texts of JSON records) is split into sentences and
    words; a line end always ends a sentence. Data in a known format keeps its words, order and ids (those that an earlier file
    has too are numbered); its annotations change nothing, but for a model that types given spans. Of a folder all files
    are read, of a brat folder all texts. What the output format cannot hold is left out and counted.
    """
    from spanwise.formats import Ledger
    from spanwise.inputs.sources import STDIN, input_sentences
    from spanwise.prediction.load import load
    from spanwise.prediction.outputs import check_output, parse_thresholds, print_found, write_found

    thresholds = parse_thresholds(threshold or ())
    check_output(output, target_format)
    ledger = Ledger()
    predictor = load(model, device)
    sentences = input_sentences(sources or [STDIN], source_format, ledger, needs_spans=predictor.needs_spans, output=output)
    found = predictor.stream(sentences, threshold=thresholds, overlap=overlap, batch_size=batch_size)
    if output is None:
        print_found(found)
    else:
        write_found(found, output, target_format, types=predictor.types, model=model, ledger=ledger)
    print_ledger(ledger)
    if output is not None:
        typer.echo(f"wrote {output}")
