"""One check for every output: no input, model or training state is overwritten."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from spanwise.core.errors import SpanwiseError
from spanwise.files.companions import companion_files
from spanwise.files.writing import is_stream
from spanwise.runs.folder import RunFolder, normalize


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
    return any(path.exists() and target.samefile(path) for path in (source, *companion_files(source)))
