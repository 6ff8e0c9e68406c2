"""One check for every output: no input, model or training state is overwritten."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from spanwise.core.errors import SpanwiseError
from spanwise.files.writing import is_stream
from spanwise.runs.folder import RunFolder, normalize

_COMPANIONS = {".ann": ".txt", ".txt": ".ann"}  # a text and its annotations in brat
_TABLES, _TABLES_OF_TEXTS = (".csv", ".tsv"), ("texts.csv", "texts.tsv")  # the texts of a table are in other files


def check_output(target: str | Path, inputs: Iterable[str | Path] = (), *, can_be_run: bool = False) -> None:
    """Refuse an output that would overwrite an input, or a file of a run or exported model.

    Call this before any work is done. Of an input folder, every existing file is protected; of a run
    folder, only the files it owns (``RunFolder.owns``). ``can_be_run`` is for training, which checks
    the state of its run folder itself.
    """
    target = Path(target)
    if is_stream(target):
        return
    if owner := _owner(target):
        raise SpanwiseError(f"{target}: the output would overwrite a file of the run folder {owner}; choose another output")
    if not can_be_run and _is_run(target):
        raise SpanwiseError(f"{target}: the output would overwrite a run folder; choose another output")
    check_not_input(target, inputs)


def check_not_input(target: str | Path, inputs: Iterable[str | Path]) -> None:
    """Refuse an output that would overwrite an input; see ``check_output``."""
    for source in inputs:
        if _is_input(Path(target), Path(source)):
            raise SpanwiseError(f"{target}: the output would overwrite an input; choose another output")


def _owner(target: Path) -> Path | None:
    """The run folder that a path belongs to, by its name or by the file it links to."""
    for path in (normalize(target), target.resolve()):
        for folder in path.parents:
            if RunFolder(folder).owns(path):
                return folder
    return None


def _is_run(folder: Path) -> bool:
    run = RunFolder(folder)
    return run.is_run or run.is_group


def _is_input(target: Path, source: Path) -> bool:
    if _is_run(source):
        return RunFolder(source).owns(target)
    if not target.exists():
        return False
    if source.is_dir() and target.is_file() and target.resolve().is_relative_to(source.resolve()):
        return True
    if source.suffix.lower() in _TABLES and _may_be_text(target) and target.resolve().is_relative_to(source.resolve().parent):
        return True
    companion = source.with_suffix(_COMPANIONS[source.suffix]) if source.suffix in _COMPANIONS else source
    return any(path.exists() and target.samefile(path) for path in (source, companion))


def _may_be_text(path: Path) -> bool:
    return path.suffix == ".txt" or path.name in _TABLES_OF_TEXTS
