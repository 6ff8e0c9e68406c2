"""What was predicted, written down: in any format, as a page, or line by line."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.decoding.thresholds import Threshold
from spanwise.files.names import printable
from spanwise.files.writing import atomic_output, to_json, writing
from spanwise.formats import Ledger, write
from spanwise.formats.jsonl import to_record
from spanwise.formats.registry import names_format, writer_for

HTML = "html"


def parse_thresholds(texts: Iterable[str]) -> Threshold:
    """One threshold, or some for types by name: ``0.5``, or ``Drug=0.3`` and ``Place=0.6``.

    >>> parse_thresholds(["0.5"]), parse_thresholds(["Drug=0.3"]), parse_thresholds([])
    (0.5, {'Drug': 0.3}, 0.0)
    """
    one, several = 0.0, {}
    for text in texts:
        name, _, value = text.rpartition("=")
        try:
            score = float(value)
        except ValueError:
            score = -1.0
        if not 0 <= score <= 1:
            raise SpanwiseError(f"threshold {text!r}: expected a number from 0 to 1, or TYPE=NUMBER")
        if name:
            several[name] = score
        else:
            one = score
    if one and several:
        raise SpanwiseError("give one threshold for all types or one for each of some types, not both")
    return several or one


def check_output(output: Path | None, format: str | None) -> None:
    """Whether a format can be written to a path, asked before the model is put to work."""
    if output is None:
        if format not in (None, "jsonl"):
            raise SpanwiseError("--to needs --output; standard output is jsonl")
    elif not _is_page(output, format):
        writer_for(output, format, also=(HTML,))


def write_found(
    found: Iterable[Sentence], output: Path, format: str | None, *, types: Sequence[str], model: str, ledger: Ledger
) -> None:  # fmt: skip
    """Write to a path that appears whole or not at all; what the format cannot hold is left out and counted."""
    if _is_page(output, format):
        from spanwise.drawing.page import write_page

        with atomic_output(output) as temporary, writing(temporary) as file:
            write_page(found, file, types, printable(output.stem))
        return
    chosen, options = writer_for(output, format)
    if chosen.name == "label_studio" and "kind" not in options:  # for people to correct, not as if people had made it
        format, found = f"{format or chosen.name}{',' if ':' in (format or '') else ':'}kind=predictions", _by(model, found)
    if chosen.name == "jsonl":
        found = map(_with_characters, found)
    write(found, output, format, ledger=ledger, lossy=True)


def _is_page(output: Path, format: str | None) -> bool:
    return names_format(format, HTML) or (format is None and output.suffix.lower() in (".html", ".htm"))


def _by(model: str, found: Iterable[Sentence]) -> Iterator[Sentence]:
    """With the name of the model, which Label Studio shows beside its predictions."""
    for sentence in found:
        yield replace(sentence, extra={**(sentence.extra or {}), "prediction": {"model_version": printable(Path(model).name)}})


def print_found(found: Iterable[Sentence]) -> None:
    """The interchange format on standard output, with what each entity says and its characters in the document."""
    for sentence in found:
        sys.stdout.write(to_json(to_record(_with_characters(sentence))) + "\n")


def _with_characters(sentence: Sentence) -> Sentence:
    """With what each entity says and its characters in the document, as keys of its own."""
    base = sentence.start or 0
    entities = []
    for entity in sentence.entities:
        places = [[base + place for place in sentence.characters(fragment)] for fragment in entity.fragments]
        entities.append(replace(entity, extra={**(entity.extra or {}), "text": sentence.text_of(entity), "characters": places}))
    return replace(sentence, entities=tuple(entities))
