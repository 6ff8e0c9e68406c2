"""Annotate shards in worker processes of this machine; a worker that dies is replaced.

Each worker has its own pipe. Queues that processes share have locks, and a killed process would leave
them locked.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from spanwise.annotation.annotator import Annotator, describe
from spanwise.annotation.engine import (
    Emit,
    Engine,
    ModelSettings,
    Note,
    Progress,
    ShardDone,
    ShardFailed,
    annotate_shard,
    load_predictor,
)
from spanwise.annotation.shard_work import ShardWork
from spanwise.annotation.shards import Shard
from spanwise.core.errors import SpanwiseError

MAX_DEATHS = 12  # of workers at one shard, before the shard counts as failed
STOP_SECONDS = 10.0  # for a worker to remove its temporary files


@dataclass(frozen=True, slots=True)
class Ready:
    """A worker has loaded its model."""


@dataclass(frozen=True, slots=True)
class Fatal:
    """An error that ends the job, such as a full disk."""

    message: str


@dataclass
class Worker:
    process: Any
    connection: Connection
    shard: Shard | None = None
    is_ready: bool = False


def process_context(model: str) -> Any:
    """The way processes are started: forked from a server that has imported everything, where possible.

    A fork of this process itself could inherit locked locks of its threads.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    from multiprocessing import forkserver, resource_tracker

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["spanwise.annotation.preload", *transformer_modules(Path(model))])
    # Files of the current folder must not replace modules of the server, such as a user's random.py.
    is_safe = "PYTHONSAFEPATH" in os.environ
    os.environ.setdefault("PYTHONSAFEPATH", "1")
    # Interrupts are for this process: the server inherits the mask. It would print a traceback while it imports.
    resource_tracker.ensure_running()  # first, because its start unblocks the signal
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if not is_safe:
            del os.environ["PYTHONSAFEPATH"]
    return context


def transformer_modules(model: Path) -> list[str]:
    """The modules of the transformers library that a model needs; importing them takes seconds."""
    try:
        kind = str(json.loads((model / "config.json").read_bytes())["model_type"]).replace("-", "_")
    except (OSError, ValueError, KeyError, TypeError):
        return []
    from spanwise.encoders.prediction_bert import read_bert_config

    if read_bert_config(model):  # loaded without the library
        return []
    return ["transformers.models.auto.modeling_auto", f"transformers.models.{kind}.modeling_{kind}"]


class ProcessPool(Engine):
    """``workers`` processes, each with its own model and ``threads`` threads."""

    def __init__(self, work: ShardWork, settings: ModelSettings, *, workers: int, threads: int = 1) -> None:
        super().__init__(work, settings)
        self.workers, self.threads = workers, threads
        self._context = process_context(settings.model)

    def run(self, shards: Sequence[Shard], emit: Emit) -> None:
        waiting, deaths = deque(shards), dict.fromkeys((shard.name for shard in shards), 0)
        pool = [self._start() for _ in range(min(self.workers, len(shards)))]
        try:
            while waiting or any(worker.shard for worker in pool):
                for worker in self._next_workers(pool):
                    try:
                        message = worker.connection.recv()
                    except (EOFError, OSError):
                        self._replace(worker, pool, waiting, deaths, emit)
                        continue
                    if isinstance(message, Fatal):
                        raise SpanwiseError(message.message)
                    if isinstance(message, Ready | ShardDone | ShardFailed):
                        worker.is_ready, worker.shard = True, None
                        self._assign(worker, waiting)
                    if not isinstance(message, Ready):
                        emit(message)
        finally:
            self._stop(pool)

    def target(self) -> Any:
        """The function that a worker process runs."""
        return work_on_shards

    def arguments(self) -> tuple[Any, ...]:
        """More arguments of a worker process."""
        return ()

    def check(self) -> None:
        """Raise an error if the engine can no longer work."""

    def _next_workers(self, pool: Sequence[Worker]) -> list[Worker]:
        ready: list[Any] = []
        while not ready:
            self.check()
            ready = wait([worker.connection for worker in pool], timeout=5.0)
        return [worker for worker in pool if worker.connection in ready]

    def _start(self) -> Worker:
        here, there = self._context.Pipe()
        arguments = (there, self.work, self.settings, self.threads, *self.arguments())
        process = self._context.Process(target=self.target(), args=arguments, daemon=True)
        try:
            process.start()
        except (EOFError, OSError) as error:
            raise SpanwiseError(f"worker processes cannot be started: {describe(error)}; pass --workers 1") from None
        there.close()
        return Worker(process, here)

    def _assign(self, worker: Worker, waiting: deque[Shard]) -> None:
        if waiting:
            worker.shard = waiting.popleft()
            with suppress(OSError):  # it died; its end of the pipe reports it
                worker.connection.send(worker.shard)

    def _replace(
        self, worker: Worker, pool: list[Worker], waiting: deque[Shard], deaths: dict[str, int], emit: Emit
    ) -> None:  # fmt: skip
        """Start a new worker in place of a dead one; its shard is annotated again."""
        worker.process.join()
        worker.connection.close()
        pool.remove(worker)
        end, shard = describe_exit(worker.process.exitcode), worker.shard
        if not worker.is_ready:
            raise SpanwiseError(f"a worker {end} while it loaded the model; if memory is short, pass fewer --workers")
        if shard is not None:
            deaths[shard.name] += 1
            place = self._place(shard)
            if deaths[shard.name] < MAX_DEATHS:
                waiting.appendleft(shard)
                emit(Note(f"a worker {end} at {place}; the shard is annotated again"))
            else:
                emit(ShardFailed(shard, f"{shard.source.path}: a worker {end} {deaths[shard.name]} times, last at {place}"))
        if len(pool) < len(waiting) + sum(other.shard is not None for other in pool):
            pool.append(self._start())

    def _place(self, shard: Shard) -> str:
        """The input that a worker was reading."""
        from spanwise.annotation.crashes import read_rows_in_progress

        rows = read_rows_in_progress(self.work.folder.note_file(shard))
        unit = "rows" if shard.source.format == "parquet" else "bytes"
        return f"{shard.source.path}{f', {unit} {rows[0]} to {rows[1]}' if rows else ''}"

    def _stop(self, pool: Sequence[Worker]) -> None:
        for worker in pool:
            worker.connection.close()
            if worker.shard is not None or not worker.is_ready:
                worker.process.terminate()
        for worker in pool:
            worker.process.join(STOP_SECONDS)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()


def describe_exit(code: int | None) -> str:
    """Describe the exit code of a process.

    >>> describe_exit(-9), describe_exit(1)
    ('was ended by signal 9 (SIGKILL)', 'ended with exit code 1')
    """
    if code is not None and code < 0:
        with suppress(ValueError):
            return f"was ended by signal {-code} ({signal.Signals(-code).name})"
    return f"ended with exit code {code}"


def prepare_worker(threads: int) -> None:
    """Set signals and threads of a new process: interrupts are for the parent, and SIGTERM removes temporary files."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    from spanwise.runtime.threads import use_threads

    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    use_threads(threads)


def work_on_shards(connection: Connection, work: ShardWork, settings: ModelSettings, threads: int) -> None:
    """The life of a worker: load the model, then annotate shards until the pipe is closed."""
    prepare_worker(threads)
    serve_shards(connection, work, lambda: Annotator(load_predictor(settings), **settings.annotator))


def serve_shards(connection: Connection, work: ShardWork, make_annotator: Any) -> None:
    """Annotate the shards that arrive through a pipe, and report what happens."""
    try:
        annotator = make_annotator()
        _ = annotator.predictor  # load the model now
        connection.send(Ready())
        while True:
            shard = connection.recv()
            connection.send(annotate_shard(work, shard, annotator, lambda rows, words: connection.send(Progress(rows, words))))
    except SpanwiseError as error:
        with suppress(OSError):
            connection.send(Fatal(str(error)))
    except (EOFError, BrokenPipeError, ConnectionResetError):  # the parent has closed the pipe, or is dead
        pass
