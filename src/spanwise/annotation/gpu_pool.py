"""One model process on the GPU and workers around it, which read, split, decode and write."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from spanwise.annotation.annotator import Annotator
from spanwise.annotation.engine import Emit, ModelSettings
from spanwise.annotation.pool import Fatal, ProcessPool, describe_exit, prepare_worker, serve_shards
from spanwise.annotation.shard_work import ShardWork
from spanwise.annotation.shards import Shard
from spanwise.core.errors import SpanwiseError


class GpuPool(ProcessPool):
    """Workers without a network; the network is in a separate process, which serves them all."""

    def __init__(self, work: ShardWork, settings: ModelSettings, *, workers: int) -> None:
        super().__init__(work, settings, workers=workers)
        self._address, self._key = "", secrets.token_bytes(32)
        self._model: Any = None

    def run(self, shards: Sequence[Shard], emit: Emit) -> None:
        from spanwise.annotation.model_process import serve_model

        with tempfile.TemporaryDirectory(prefix="spanwise-") as folder:
            self._address = str(Path(folder, "model"))
            here, there = self._context.Pipe()
            arguments = (there, self.settings, self._address, self._key)
            self._model = self._context.Process(target=serve_model, args=arguments, daemon=True)
            self._model.start()
            there.close()
            try:
                self._wait_for_model(here)
                super().run(shards, emit)
            finally:
                here.close()
                self._model.join(1.0)
                if self._model.is_alive():
                    self._model.kill()
                    self._model.join()

    def target(self) -> Any:
        return work_with_remote_model

    def arguments(self) -> tuple[Any, ...]:
        return self._address, self._key

    def check(self) -> None:
        if not self._model.is_alive():
            raise SpanwiseError(f"the model process {describe_exit(self._model.exitcode)}; run the command again to resume")

    def _wait_for_model(self, connection: Connection) -> None:
        try:
            message = connection.recv()
        except (EOFError, OSError):
            self._model.join()
            end = describe_exit(self._model.exitcode)
            raise SpanwiseError(f"the model process {end} while it loaded the model") from None
        if isinstance(message, Fatal):
            raise SpanwiseError(message.message)


def work_with_remote_model(
    connection: Connection, work: ShardWork, settings: ModelSettings, threads: int, address: str, key: bytes
) -> None:
    """The life of a worker whose network is in the model process."""
    prepare_worker(threads)

    def make_annotator() -> Annotator:
        from spanwise.annotation.remote import RemotePredictor
        from spanwise.models.model import Model

        return Annotator(RemotePredictor(Model.load(settings.model, maps_weights=True), address, key), **settings.annotator)

    serve_shards(connection, work, make_annotator)
