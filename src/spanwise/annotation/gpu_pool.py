"""A model process for each GPU and workers around it, which read, split, decode and write."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from spanwise.annotation.annotator import Annotator
from spanwise.annotation.engine import Emit, ModelSettings
from spanwise.annotation.pool import Fatal, ProcessPool, serve_shards
from spanwise.annotation.shard_work import ShardWork
from spanwise.annotation.shards import Shard
from spanwise.core.errors import SpanwiseError
from spanwise.runtime.processes import describe_exit, prepare_process


@dataclass
class ModelProcess:
    """The process of the network on one GPU."""

    process: Any
    connection: Connection
    address: str

    def wait_until_ready(self) -> None:
        try:
            message = self.connection.recv()
        except (EOFError, OSError):
            self.process.join()
            end = describe_exit(self.process.exitcode)
            raise SpanwiseError(f"the model process {end} while it loaded the model") from None
        if isinstance(message, Fatal):
            raise SpanwiseError(message.message)

    def stop(self) -> None:
        self.connection.close()
        self.process.join(1.0)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


class GpuPool(ProcessPool):
    """Workers without a network; a process for each GPU runs the network for its share of the workers."""

    def __init__(self, work: ShardWork, settings: ModelSettings, *, workers: int, gpus: int = 1) -> None:
        super().__init__(work, settings, workers=workers)
        self.gpus, self._key = gpus, secrets.token_bytes(32)
        self._models: list[ModelProcess] = []
        self._next_address: Iterator[str] = iter(())

    def run(self, shards: Sequence[Shard], emit: Emit) -> None:
        with tempfile.TemporaryDirectory(prefix="spanwise-") as folder:
            try:
                for gpu in range(min(self.gpus, len(shards))):
                    self._models.append(self._start_model(gpu, str(Path(folder, f"model-{gpu}"))))
                for model in self._models:
                    model.wait_until_ready()
                self._next_address = cycle([model.address for model in self._models])
                super().run(shards, emit)
            finally:
                for model in self._models:
                    model.stop()

    def target(self) -> Any:
        return work_with_remote_model

    def arguments(self) -> tuple[Any, ...]:
        return next(self._next_address), self._key

    def check(self) -> None:
        for model in self._models:
            if not model.process.is_alive():
                end = describe_exit(model.process.exitcode)
                raise SpanwiseError(f"the model process {end}; run the command again to resume")

    def _start_model(self, gpu: int, address: str) -> ModelProcess:
        from spanwise.annotation.model_process import serve_model

        return ModelProcess(*self.start_process(serve_model, self.settings, gpu, address, self._key), address)


def work_with_remote_model(
    connection: Connection, work: ShardWork, settings: ModelSettings, threads: int, address: str, key: bytes
) -> None:
    """The life of a worker whose network is in the model process."""
    prepare_process(threads)

    def make_annotator() -> Annotator:
        from spanwise.annotation.remote import RemotePredictor
        from spanwise.models.model import Model

        model = Model.load(settings.model, maps_weights=True, only_predicts=True)
        return Annotator(RemotePredictor(model, address, key), **settings.annotator)

    serve_shards(connection, work, make_annotator)
