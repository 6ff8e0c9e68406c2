"""Write predictions: in any format, as an HTML page, or to standard output."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.decoding.thresholds import Threshold
from spanwise.files.names import printable
from spanwise.files.writing import STANDARD_OUTPUT, atomic_output, check_new_output, open_output, standard_output, to_json
from spanwise.formats import Ledger, write
from spanwise.formats.jsonl import to_record
from spanwise.formats.registry import names_format, output_format

HTML = "html"


def parse_thresholds(texts: Iterable[str]) -> Threshold:
    """Parse one threshold (``0.5``) or thresholds by type (``Drug=0.3``, ``Place=0.6``).

    >>> parse_thresholds(["0.5"]), parse_thresholds(["Drug=0.3"]), parse_thresholds([])
    (0.5, {'Drug': 0.3}, 0.0)
    """
    for_all, by_type = 0.0, {}
    for text in texts:
        name, equals, value = text.rpartition("=")
        try:
            score = float(value)
        except ValueError:
            score = -1.0
        if not 0 <= score <= 1 or (equals and not name):
            raise SpanwiseError(f"threshold {text!r}: expected a number from 0 to 1, or TYPE=NUMBER")
        if name:
            by_type[name] = score
        else:
            for_all = score
    if for_all and by_type:
        raise SpanwiseError("pass either one threshold for all types or thresholds by type, not both")
    return by_type or for_all


def types_in(*corpora: Iterable[Sentence]) -> tuple[list[str], list[str]]:
    """Return the types of entities, and those of relations."""
    sentences = [sentence for corpus in corpora for sentence in corpus]
    entities = {entity.type for sentence in sentences for entity in sentence.entities}
    relations = {relation.type for sentence in sentences for relation in sentence.relations}
    return sorted(entities), sorted(relations | {link.type for sentence in sentences for link in sentence.links})


def check_output_format(output: Path | None, format: str | None) -> None:
    """Raise an error if the format cannot be written to the path. Called before the model is loaded."""
    if output is None:
        if format not in (None, "jsonl"):
            raise SpanwiseError("--to needs --output; pass --output - for standard output")
        return
    format = format or _default_format(output)
    is_folder = not _is_page(output, format) and output_format(output, format, also=(HTML,))[0].writes_folder
    check_new_output(output, is_folder=is_folder)


def write_predictions(
    sentences: Iterable[Sentence], output: Path, format: str | None, *, types: Sequence[str], model: str, ledger: Ledger
) -> None:  # fmt: skip
    """Write predictions atomically. The ledger counts annotations that the format cannot represent."""
    format = format or _default_format(output)
    if _is_page(output, format):
        from spanwise.drawing.page import write_page

        with atomic_output(output) as temporary, open_output(temporary) as file:
            write_page(sentences, file, types, printable(output.stem))
        return
    target, options = output_format(output, format)
    if target.name == "label_studio" and "kind" not in options:  # predictions to correct instead of annotations
        format = f"{format or target.name}{',' if ':' in (format or '') else ':'}kind=predictions"
        sentences = _with_model_name(sentences, model)
    if target.name == "jsonl":
        sentences = map(_with_characters, sentences)
    write(sentences, output, format, ledger=ledger, lossy=True)


def _default_format(output: Path) -> str | None:
    return "jsonl" if output == STANDARD_OUTPUT else None


def _is_page(output: Path, format: str | None) -> bool:
    return names_format(format, HTML) or (format is None and output.suffix.lower() in (".html", ".htm"))


def _with_model_name(sentences: Iterable[Sentence], model: str) -> Iterator[Sentence]:
    """Add the model's name, which Label Studio shows next to its predictions."""
    for sentence in sentences:
        yield replace(sentence, extra={**(sentence.extra or {}), "prediction": {"model_version": printable(Path(model).name)}})


def print_predictions(sentences: Iterable[Sentence]) -> None:
    """Print predictions as JSON lines, with the text and character offsets of each entity."""
    output = standard_output()
    for sentence in sentences:
        output.write(to_json(to_record(_with_characters(sentence))) + "\n")


def _with_characters(sentence: Sentence) -> Sentence:
    """Add the text of each entity and its character offsets in the document."""
    offset = sentence.start or 0
    entities = []
    for entity in sentence.entities:
        ranges = [[offset + position for position in sentence.characters(fragment)] for fragment in entity.fragments]
        entities.append(replace(entity, extra={**(entity.extra or {}), "text": sentence.text_of(entity), "characters": ranges}))
    return replace(sentence, entities=tuple(entities))
