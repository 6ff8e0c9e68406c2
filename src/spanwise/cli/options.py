"""Arguments and options shared by several commands."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spanwise.core.terminal import escape_controls

if TYPE_CHECKING:
    from spanwise.formats import Ledger

FromOption = Annotated[
    str | None,
    typer.Option("--from", metavar="FORMAT", help="Input format; detected by default."),
]
FromOrTextOption = Annotated[
    str | None,
    typer.Option("--from", metavar="FORMAT", help="Input format, or 'text' for plain text; detected by default."),
]
EncodingOption = Annotated[
    str | None,
    typer.Option("--encoding", metavar="NAME", help="Encoding of text data, such as latin-1; UTF-8 by default."),
]
# For commands that take either a model and data, or predictions and gold.
ModelArgument = Annotated[Path | None, typer.Argument(metavar="MODEL", help="Run folder, exported folder, or installed model.")]
DataArgument = Annotated[Path | None, typer.Argument(metavar="DATA", help="File, or folder with train/dev/test files.")]
SplitOption = Annotated[str, typer.Option("--split", metavar="NAME", help="Split of DATA to use.")]
PredOption = Annotated[Path | None, typer.Option("--pred", metavar="FILE", help="Predictions of any system; needs --gold.")]
GoldOption = Annotated[Path | None, typer.Option("--gold", metavar="FILE", help="Gold annotations.")]
PredFormatOption = Annotated[
    str | None,
    typer.Option("--pred-format", metavar="FORMAT", help="Format of the predictions; detected by default."),
]
GoldFormatOption = Annotated[
    str | None,
    typer.Option("--gold-format", metavar="FORMAT", help="Format of gold and training data; detected by default."),
]
ThresholdsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--threshold",
        metavar="[TYPE=]SCORE",
        help="Drop entities and relations with a lower score. Repeatable by type.",
    ),
]
PaperAttributesOption = Annotated[
    bool,
    typer.Option("--paper-attributes", help="Compute eCon and eDen literally by Eq. 23c and 23d of Bundling Learning."),
]
BatchOption = Annotated[int, typer.Option("--batch-size", metavar="N", min=1, help="Sentences per batch.")]


def _use_threads(count: int | None) -> int | None:
    """Called with the option's value before the command, which imports torch, starts."""
    from spanwise.runtime.threads import use_threads

    use_threads(count)
    return count


ThreadsOption = Annotated[
    int | None,
    typer.Option("--threads", metavar="N", min=1, callback=_use_threads, help="CPU threads; all available cores by default."),
]
DeviceOption = Annotated[str, typer.Option("--device", metavar="cpu|cuda|auto", help="Device to run the model on.")]
JsonOption = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON ('-' for standard output).")
]


def dash_as_standard_output(path: Path | None) -> Path | None:
    """Called with the path of an output: ``-`` is standard output, as for inputs it is standard input."""
    from spanwise.files.writing import STANDARD_OUTPUT

    return STANDARD_OUTPUT if path is not None and str(path) == "-" else path


def with_encoding(format: str | None, encoding: str | None) -> str | None:
    """Return the format with the encoding of its files as an option."""
    if encoding is None:
        return format
    from spanwise.formats import registry

    return registry.with_encoding(format, encoding)


def check_target(target: Path | None, *inputs: Path | None) -> None:
    """Refuse an output that would overwrite an input or a model, before any work is done."""
    from spanwise.runs.outputs import check_output

    if target is not None and str(target) != "-":
        paths = [path for path in inputs if path is not None]
        check_output(target, paths if target.is_dir() else [file for path in paths for file in _input_files(path)])


def check_target_file(target: Path | None, *inputs: Path | None) -> None:
    """Refuse an output as ``check_target`` does, or because no file can have its path."""
    from spanwise.files.writing import check_new_output

    check_target(target, *inputs)
    if target is not None and str(target) != "-":
        check_new_output(target)


def _input_files(path: Path) -> list[Path]:
    """The files of a corpus folder that are read; the folder may also hold other files."""
    from spanwise.corpora.splits import find_split_files
    from spanwise.runs.folder import RunFolder

    if RunFolder(path).has_model:
        return [path]
    if parts := find_split_files(path):
        return [file for files in parts.values() for file in files]
    return [*path.rglob("*.txt"), *path.rglob("*.ann")] if path.is_dir() else [path]


def show(json_file: Path | None, to_json: Callable[[], Any], print_text: Callable[[], None]) -> None:
    """Write the result as JSON if requested; print it unless the JSON goes to standard output."""
    from spanwise.files.writing import standard_output, to_readable_json, write_json

    if json_file is not None:
        if str(json_file) == "-":
            standard_output().write(to_readable_json(to_json()))
            return
        write_json(json_file, to_json())
    print_text()


def print_ledger(ledger: Ledger) -> None:
    """Print repairs and losses of reading and writing to standard error."""
    for note in ledger.note_lines:
        sys.stderr.write(f"note: {escape_controls(note)}\n")
    if ledger.lost:
        sys.stderr.write(f"lost: {escape_controls(str(ledger))}\n")
