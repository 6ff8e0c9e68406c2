"""Annotate shards on Ray: the same plan, one task per shard, in a pool of actors."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from spanwise.annotation.annotator import Annotator
from spanwise.annotation.engine import (
    Emit,
    Engine,
    ModelSettings,
    Progress,
    ShardDone,
    ShardFailed,
    annotate_shard,
    load_predictor,
)
from spanwise.annotation.job import ShardResult
from spanwise.annotation.shard_work import ShardWork
from spanwise.annotation.shards import Shard
from spanwise.core.errors import SpanwiseError
from spanwise.runtime.threads import available_threads

ACTORS_PER_GPU = 8  # they share a GPU, because one process cannot keep it busy


def import_ray() -> Any:
    """Import Ray with its Data module, or explain how to install it."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
        import ray.data
    except ImportError:
        raise SpanwiseError("--ray needs Ray; run pip install 'spanwise[ray]'") from None
    return ray


class RayEngine(Engine):
    """Actors of Ray Data that annotate whole shards.

    A shard is a row of a dataset. Ray assigns rows to actors, starts new actors in place of dead ones
    and repeats their rows; a shard that was already finished is then skipped. Input and output must
    be on a file system that all nodes share.
    """

    def __init__(
        self, work: ShardWork, settings: ModelSettings, *, address: str, workers: int | None, on_gpu: bool = False
    ) -> None:  # fmt: skip
        super().__init__(work, settings)
        self.address, self.workers, self.on_gpu = address, workers, on_gpu

    def run(self, shards: Sequence[Shard], emit: Emit) -> None:
        ray = import_ray()
        with connect(ray, self.address, self.workers):
            logging.getLogger("ray.data").setLevel(logging.ERROR)
            ray.data.DataContext.get_current().enable_progress_bars = False
            rows = ray.data.from_items([{"index": index} for index in range(len(shards))], override_num_blocks=len(shards))
            results = rows.map_batches(
                ShardActor,
                fn_constructor_args=(self.work, self.settings, list(shards)),
                batch_size=1,
                compute=ray.data.ActorPoolStrategy(**self.pool_sizes(ray.cluster_resources(), len(shards))),
                **({"num_gpus": 1 / ACTORS_PER_GPU} if self.on_gpu else {"num_cpus": 1}),
            )
            for row in results.iter_rows():
                self._emit(row, shards, emit)

    def pool_sizes(self, resources: Mapping[str, float], shards: int) -> dict[str, int]:
        """The sizes of the actor pool: that of ``workers``, or at first one actor per CPU or eight per GPU.

        Without ``workers``, the pool of a cluster grows with it: Ray starts actors on nodes that join, and its
        autoscaler adds nodes for them. At the start one CPU stays free for Ray itself.
        """
        if self.workers is not None:
            return {"size": min(self.workers, shards)}
        count = ACTORS_PER_GPU * resources.get("GPU", 0) if self.on_gpu else resources.get("CPU", 2) - 1
        size = min(max(1, int(count)), shards)
        return {"size": size} if self.address == "local" else {"min_size": size, "max_size": shards}

    def _emit(self, row: Mapping[str, Any], shards: Sequence[Shard], emit: Emit) -> None:
        shard, result = shards[row["index"]], ShardResult(**json.loads(row["result"]))
        if row["outcome"] == "fatal":
            raise SpanwiseError(row["reason"])
        if row["outcome"] == "failed":
            emit(ShardFailed(shard, row["reason"]))
        else:
            emit(Progress(result.rows + result.errors, result.words))
            emit(ShardDone(shard, result))


class ShardActor:
    """Actor that annotates the shards whose indices Ray passes.

    Errors are results, because Ray would end the job at an exception.
    """

    def __init__(self, work: ShardWork, settings: ModelSettings, shards: Sequence[Shard]) -> None:
        from spanwise.runtime.threads import use_threads

        use_threads(1)
        self.work, self.settings, self.shards = work, settings, shards
        self._annotator: Annotator | None = None

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, list[Any]]:
        rows = [{"index": int(index), **self._annotate(self.shards[index])} for index in batch["index"]]
        return {name: [row[name] for row in rows] for name in ("index", "outcome", "reason", "result")}

    def _annotate(self, shard: Shard) -> dict[str, str]:
        result = ShardResult()
        try:
            if self._annotator is None:
                self._annotator = Annotator(load_predictor(self.settings), **self.settings.annotator)
            event = annotate_shard(self.work, shard, self._annotator, lambda rows, words: None)
        except SpanwiseError as error:
            outcome, reason = "fatal", str(error)
        else:
            if isinstance(event, ShardDone):
                outcome, reason, result = "done", "", event.result
            else:
                outcome, reason = "failed", event.reason
        return {"outcome": outcome, "reason": reason, "result": json.dumps(asdict(result))}


@contextmanager
def connect(ray: Any, address: str, workers: int | None) -> Iterator[None]:
    """Connect to a cluster, or start Ray on this machine (``local``) and stop it at the end."""
    if ray.is_initialized():
        yield
        return
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
    if address == "local":
        # The address makes Ray start on machines without a network.
        count = (workers or max(1, available_threads() - 1)) + 1
        options |= {"num_cpus": count, "include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    else:
        options["address"] = address
    try:
        ray.init(**options)
    except Exception as error:  # Ray raises many kinds of errors
        problem = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise SpanwiseError(f"--ray {address}: cannot connect: {problem}") from None
    try:
        yield
    finally:
        ray.shutdown()
