"""Train several runs at the same time, each in its own process, which returns all its memory when it ends."""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from typing import Any

import torch

from spanwise.config.settings import Config
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Corpus
from spanwise.runs.folder import RunFolder
from spanwise.runtime.device import should_use_cuda, visible_gpus
from spanwise.runtime.processes import describe_exit, join_or_kill, prepare_process, process_context
from spanwise.runtime.progress import hide_progress_bars
from spanwise.training.run import RunOptions, train_config


@dataclass(frozen=True)
class PlannedRun:
    """A run to train."""

    folder: RunFolder
    corpus: Corpus
    config: Config
    options: RunOptions

    @property
    def name(self) -> str:
        return self.folder.path.name


@dataclass(frozen=True, slots=True)
class End:
    """The end of a run, with the message of its error if it failed."""

    error: str | None = None


@dataclass(frozen=True, slots=True)
class _Job:
    """A run that is being trained; ``place`` is the number of its process among those that train at the same time."""

    run: PlannedRun
    place: int
    process: Any
    connection: Connection


class RunPool:
    """Trains runs, at most ``jobs`` at a time. They share the CPU threads, and each uses one of the GPUs.

    If a run fails, those that are being trained are finished, and no other is started.
    """

    def __init__(self, jobs: int, device: str, log: Callable[[str], None]) -> None:
        self.jobs, self.log = jobs, log
        self.gpus = visible_gpus() if should_use_cuda(device) else []
        self._context = process_context(["spanwise.training.run_pool", "spanwise.encoders.transformer"])

    def train(self, runs: Sequence[PlannedRun]) -> None:
        """Train all runs."""
        waiting, errors = deque(runs), list[str]()
        places = list(range(min(self.jobs, len(runs))))
        threads = max(1, torch.get_num_threads() // max(1, len(places)))
        active: dict[Connection, _Job] = {}
        try:
            while active or (waiting and not errors):
                # start runs in free places
                while waiting and places and not errors:
                    job = self._start(waiting.popleft(), places.pop(0), threads)
                    active[job.connection] = job
                # handle lines of progress, and runs that have ended
                for connection in wait(list(active)):
                    job = active[connection]  # type: ignore[index]
                    message = _receive(job)
                    if isinstance(message, str):
                        self.log(f"{job.run.name}: {message}")
                        continue
                    del active[job.connection]
                    join_or_kill(job.process)
                    places.append(job.place)
                    if message.error is not None:
                        errors.append(f"{job.run.name}: {message.error}")
                        self._report_failure(errors[-1], list(active.values()))
        finally:
            for job in active.values():
                job.process.terminate()
            for job in active.values():
                join_or_kill(job.process)
        if errors:
            raise SpanwiseError("; ".join(errors))

    def _start(self, run: PlannedRun, place: int, threads: int) -> _Job:
        here, there = self._context.Pipe()
        gpu = self.gpus[place % len(self.gpus)] if self.gpus else None
        sent = replace(run, options=replace(run.options, log=print))  # functions of this process cannot be sent
        process = self._context.Process(target=train_in_process, args=(there, sent, threads, gpu))
        try:
            process.start()
        except (EOFError, OSError) as error:
            raise SpanwiseError(f"processes cannot be started ({error}); omit --jobs") from None
        there.close()
        self.log(f"{run.name}: started" + f" on GPU {gpu}" * (len(self.gpus) > 1))
        return _Job(run, place, process, here)

    def _report_failure(self, error: str, active: Sequence[_Job]) -> None:
        if active:
            names = ", ".join(sorted(job.run.name for job in active))
            self.log(f"{error}; no other run is started, and {names} will be finished")


def _receive(job: _Job) -> str | End:
    """The next line of a run, or its end, also if its process has died."""
    try:
        message: str | End = job.connection.recv()
    except (EOFError, OSError):
        job.process.join()
        end = describe_exit(job.process.exitcode)
        return End(f"its process {end}; if memory is short, pass fewer --jobs; add --resume to the command to continue")
    return message


def train_in_process(connection: Connection, run: PlannedRun, threads: int, gpu: str | None) -> None:
    """Train a run in a new process and send its lines of progress and its end."""
    prepare_process(threads)
    threading.Thread(target=_end_with_parent, args=(connection,), daemon=True).start()
    hide_progress_bars()
    if gpu is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu

    try:
        train_config(run.corpus, run.folder.path, run.config, replace(run.options, log=connection.send))
        end = End()
    except SpanwiseError as error:
        end = End(str(error))
    connection.send(end)


def _end_with_parent(connection: Connection) -> None:
    """End this process when the one that started it closes its end of the pipe, also because it was killed."""
    with suppress(OSError):
        connection.poll(None)  # nothing is ever sent in this direction
    os.kill(os.getpid(), signal.SIGTERM)
