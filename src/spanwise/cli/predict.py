"""``spanwise predict``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spanwise.cli.options import FromOption, print_ledger

if TYPE_CHECKING:
    from spanwise.formats import Ledger
    from spanwise.types import Sentence


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A run folder.")],
    source: Annotated[
        str, typer.Argument(metavar="[FILE|-]", help="Raw text, or annotated data whose annotations are ignored.")
    ] = "-",
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="Where to write; standard output if left out.")
    ] = None,
    target_format: Annotated[str | None, typer.Option("--format", metavar="FORMAT", help="Format of the output.")] = None,
    threshold: Annotated[
        float, typer.Option("--threshold", min=0, max=1, help="Leave out entities and relations with a lower score.")
    ] = 0.0,
    batch_size: Annotated[int, typer.Option("--batch-size", min=1)] = 64,
    device: Annotated[str, typer.Option("--device", metavar="cpu|cuda|auto")] = "auto",
    source_format: FromOption = None,
) -> None:
    """Find entities in raw text or in pretokenised data, with scores and character offsets.

    Raw text (a .txt file or standard input) is split into sentences and words; a line end always ends a sentence. Data in a
    known format keeps its ids, words and order; its annotations are not looked at, but for a model that types given spans.
    What the output format cannot hold is left out and counted.
    """
    import json

    from spanwise.errors import SpanwiseError
    from spanwise.formats import Ledger, write
    from spanwise.formats.jsonl import to_record
    from spanwise.inference.load import load

    if target_format is not None and output is None and target_format != "jsonl":
        raise SpanwiseError("--format needs --output; standard output is jsonl")
    ledger = Ledger()
    predictor = load(model, device)
    sentences = _sentences(source, source_format, ledger, predictor.model.needs_spans)
    found = predictor.stream(sentences, threshold=threshold, batch_size=batch_size)
    if output is not None:
        write(found, output, target_format, ledger=ledger, lossy=True)
        print_ledger(ledger)
        typer.echo(f"wrote {output}")
        return
    for sentence in found:
        record = to_record(sentence)
        for entity, shown in zip(sentence.entities, record["entities"], strict=True):
            base = sentence.start or 0
            shown["text"] = sentence.text_of(entity)
            shown["characters"] = [[base + place for place in sentence.characters(f)] for f in entity.fragments]
        sys.stdout.write(json.dumps(record, ensure_ascii=False) + "\n")
    print_ledger(ledger)


def _sentences(source: str, source_format: str | None, ledger: Ledger, needs_spans: bool) -> Iterator[Sentence]:
    """The sentences of a source: data in a known format, or raw text from a .txt file or standard input."""
    from spanwise.errors import SpanwiseError
    from spanwise.formats import read
    from spanwise.formats.files import stem
    from spanwise.inference.load import NEEDS_SPANS
    from spanwise.inference.raw import raw_sentences

    path = Path(source)
    is_raw = source == "-" or (source_format is None and path.suffix.lower() == ".txt")
    if needs_spans and is_raw:
        raise SpanwiseError(NEEDS_SPANS)
    if source == "-":
        return raw_sentences(sys.stdin.buffer, "text", "standard input")
    if not path.exists():
        raise SpanwiseError(f"{source}: no such file or folder")
    if is_raw:
        return raw_sentences(path.open("rb"), stem(path), source)
    return read(path, source_format, ledger, annotated=needs_spans)
