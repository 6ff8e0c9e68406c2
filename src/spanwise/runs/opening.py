"""Open a run folder, or a folder for a group of runs, for training."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from spanwise.core.errors import SpanwiseError
from spanwise.files.work_folders import remove_leftovers
from spanwise.runs.folder import GROUPS, RunFolder
from spanwise.runs.writer import only_writer

_UNFINISHED = "contains an unfinished run; pass --resume to continue it, or choose another folder"


@contextmanager
def open_run_folder(out: Path, *, should_resume: bool, log: Callable[[str], None]) -> Iterator[None]:
    """Open a folder that is new, empty, or contains an unfinished run to resume, as its only writer.

    A folder that was created here is removed again if training fails before it writes anything.
    """
    run = RunFolder(out)
    if should_resume:
        clean_finished_run(run)
    _check_not_finished(run, should_resume)
    with create_folder(out), only_writer(out, log):
        _check_not_finished(run, should_resume)  # by the writer before
        _check_contents(run, should_resume)
        yield


@contextmanager
def open_group_folder(out: Path, kind: str, *, should_resume: bool, log: Callable[[str], None]) -> Iterator[None]:
    """Open a folder for a group of runs, as its only writer; ``kind`` is a key of ``GROUPS``."""
    _check_not_finished(RunFolder(out), should_resume)
    with create_folder(out), only_writer(out, log):
        _check_group_folder(out, kind, should_resume)
        remove_leftovers(out)
        yield


def clean_finished_run(run: RunFolder) -> None:
    """Remove what a process left that was killed after it wrote the report: training state, work folders, lock file."""
    if run.is_finished:
        with suppress(SpanwiseError), only_writer(run.path, lambda line: None):
            remove_leftovers(run.path)
            run.remove_training_state()


@contextmanager
def create_folder(path: Path) -> Iterator[None]:
    """Create a folder and its parents; on failure, remove those that were created and are still empty."""
    created = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        with suppress(OSError):  # the folder is not empty
            for folder in created:
                folder.rmdir()
        raise


def _check_group_folder(out: Path, kind: str, should_resume: bool) -> None:
    """Refuse a folder for a group of runs if it has a single run or another group."""
    folder = RunFolder(out)
    _check_not_finished(folder, should_resume)
    if folder.is_run:
        contents = "an unfinished single run" if folder.is_unfinished else "a model without training files"
        raise SpanwiseError(f"{out}: contains {contents}; choose another folder")
    if folder.summary_file(kind).is_file() and not should_resume:
        raise SpanwiseError(
            f"{out}: contains finished runs ({kind}.json exists); pass --resume to add runs, or choose another folder"
        )
    for other, pattern in GROUPS.items():
        if other == kind:
            continue
        runs = [run.path.name for run in folder.runs() if re.fullmatch(pattern, run.path.name)]
        if folder.summary_file(other).is_file() or runs:
            evidence = runs[0] if runs else f"{other}.json"
            raise SpanwiseError(f"{out}: contains runs of --{other} ({evidence} exists); choose another folder")
    if folder.started_runs() and not should_resume:
        raise SpanwiseError(f"{out}: {_UNFINISHED}")


def _check_not_finished(run: RunFolder, should_resume: bool) -> None:
    if run.path.is_file():
        raise SpanwiseError(f"{run.path}: expected a run folder, found a file")
    if run.is_finished:
        advice = "there is nothing to resume" if should_resume else "choose another folder"
        raise SpanwiseError(f"{run.path}: contains a finished run ({run.report_file.name} exists); {advice}")


def _check_contents(run: RunFolder, should_resume: bool) -> None:
    """Accept a folder that is empty or is resumed, and remove temporary files left by killed processes."""
    files = (
        run.record_file, run.config_file, run.labels_file, run.weights_file, run.metrics_file, run.report_file,
        run.teacher_outputs_file,
    )  # fmt: skip
    prefixes = (*(f".{file.name}." for file in files), ".files.")  # see ``atomic_output`` and ``atomic_files``
    remove_leftovers(run.path)
    contents = [path for path in run.path.iterdir() if path != run.lock_file]
    leftovers = [path for path in contents if path.name.startswith(prefixes)]  # where there are no locks
    if len(leftovers) < len(contents):
        if not run.is_started:
            problem = "contains a model without training files" if run.is_run else "not empty and not a run folder"
            raise SpanwiseError(f"{run.path}: {problem}; choose another folder")
        if not should_resume:
            raise SpanwiseError(f"{run.path}: {_UNFINISHED}")
    for path in leftovers:
        shutil.rmtree(path, ignore_errors=True)
