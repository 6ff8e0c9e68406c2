"""Annotate shards in worker processes of this machine; a worker that dies is replaced.

Each worker has its own pipe. Queues that processes share have locks, and a killed process would leave
them locked.
"""

from __future__ import annotations

import json
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
from spanwise.runtime.processes import describe_exit, join_or_kill, prepare_process, process_context

MAX_DEATHS = 12  # of workers at one shard, before the shard counts as failed


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


def worker_context(model: str) -> Any:
    """The way workers are started: where possible, with the modules that a model needs imported once for all of them."""
    return process_context(["spanwise.annotation.preload", *transformer_modules(Path(model))])


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
        self._context = worker_context(settings.model)

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
            ready = wait([worker.connection for worker in pool], timeout=5.0)
            self.check()  # before workers are replaced that ended for the same reason
        return [worker for worker in pool if worker.connection in ready]

    def _start(self) -> Worker:
        return Worker(*self.start_process(self.target(), self.work, self.settings, self.threads, *self.arguments()))

    def start_process(self, target: Any, *arguments: Any) -> tuple[Any, Connection]:
        """Start a process that gets its end of a pipe and the arguments; return it and the other end."""
        here, there = self._context.Pipe()
        process = self._context.Process(target=target, args=(there, *arguments), daemon=True)
        try:
            process.start()
        except (EOFError, OSError) as error:
            raise SpanwiseError(f"worker processes cannot be started: {describe(error)}; pass --workers 1") from None
        there.close()
        return process, here

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
            join_or_kill(worker.process)


def work_on_shards(connection: Connection, work: ShardWork, settings: ModelSettings, threads: int) -> None:
    """The life of a worker: load the model, then annotate shards until the pipe is closed."""
    prepare_process(threads)
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
