"""Choose the engine, the number of processes and the precision for this machine."""

from __future__ import annotations

import os
from collections.abc import Sequence

from spanwise.annotation.engine import Engine, ModelSettings, SingleProcess
from spanwise.annotation.pool import ProcessPool
from spanwise.annotation.shard_work import ShardWork
from spanwise.annotation.shards import Shard
from spanwise.core.errors import SpanwiseError, unknown_name
from spanwise.runs.folder import RunFolder
from spanwise.runtime.threads import available_threads

PRECISIONS = ("float32", "half")


def choose_precision(requested: str | None, device: str) -> str:
    """Half precision on a GPU, unless another is requested."""
    if requested not in (None, *PRECISIONS):
        raise unknown_name("precision", str(requested), PRECISIONS)
    on_gpu = _uses_gpu(device)
    if requested == "half" and not on_gpu:
        raise SpanwiseError("precision half: needs a GPU; on a CPU use float32, or a model exported with --int8")
    return requested or ("half" if on_gpu else "float32")


def choose_engine(
    work: ShardWork,
    settings: ModelSettings,
    shards: Sequence[Shard],
    *,
    workers: int | None,
    threads: int | None,
    ray: str | None,
) -> Engine:
    """One process for little work; otherwise one per core, and on a GPU one model with a process per other core."""
    if ray is not None:
        from spanwise.annotation.ray_engine import RayEngine

        return RayEngine(work, settings, address=ray, workers=workers, on_gpu=_uses_gpu(settings.device))
    cores = threads or available_threads()
    if _uses_gpu(settings.device) and not RunFolder(settings.model).is_onnx:
        from spanwise.annotation.gpu_pool import GpuPool

        # Workers around a GPU run Python, which profits from both threads of a core.
        logical = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        count = min(workers or max(1, min(logical - 1, 2 * cores)), len(shards))
        return GpuPool(work, settings, workers=count, gpus=_count_gpus())
    count = min(workers or cores, len(shards))
    if count == 1:
        return SingleProcess(work, settings)
    return ProcessPool(work, settings, workers=count, threads=max(1, cores // count))


def _count_gpus() -> int:
    import torch

    return max(1, torch.cuda.device_count())


def _uses_gpu(device: str) -> bool:
    if device == "cpu":
        return False
    from spanwise.runtime.device import should_use_cuda

    return should_use_cuda(device)
