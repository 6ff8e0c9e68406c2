"""Checkpoints: complete, atomic, and without pickle.

A checkpoint is a folder ``checkpoints/step-N``. It has the weights, the optimiser state and the random
states as safetensors, and position, schedule, best score and metrics as JSON. It is written under a
temporary name and then renamed, so that a killed process leaves the old checkpoint or the new one.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from spanwise.core.errors import SpanwiseError
from spanwise.files.reading import read_json
from spanwise.models.model import Model
from spanwise.runs.folder import RunFolder
from spanwise.runtime.tensors import load_weights, read_tensors, state_tensors, write_tensors

RandomStates = Mapping[str, Tensor]


def save_checkpoint(
    run: RunFolder,
    step: int,
    model: Model,
    optimizer: Optimizer,
    schedule: LambdaLR,
    state: dict[str, Any],
    random: Sequence[RandomStates],
) -> None:
    """Write the checkpoint of a step, then remove older ones. ``random`` has the ``random_states`` of each process."""
    run.checkpoints.mkdir(parents=True, exist_ok=True)
    for leftover in run.checkpoints.glob(".step-*"):  # left by a killed process
        shutil.rmtree(leftover, ignore_errors=True)
    temporary = run.checkpoints / f".step-{step}"
    temporary.mkdir()
    write_tensors(state_tensors(model), temporary / "model.safetensors")
    write_tensors(_optimizer_tensors(optimizer), temporary / "optimizer.safetensors")
    by_rank = {f"{rank}.{name}": value for rank, states in enumerate(random) for name, value in states.items()}
    write_tensors(by_rank, temporary / "random.safetensors")
    position = {"step": step, "schedule": schedule.last_epoch, **state}
    (temporary / "state.json").write_text(json.dumps(position), encoding="utf-8")
    for path in (*temporary.iterdir(), temporary):
        _flush(path)
    temporary.rename(run.checkpoints / f"step-{step}")
    _flush(run.checkpoints)
    for old in run.checkpoint_folders()[:-1]:
        shutil.rmtree(old, ignore_errors=True)


def read_state(run: RunFolder) -> dict[str, Any] | None:
    """Read the newest checkpoint without its tensors; None if there is none."""
    folders = run.checkpoint_folders()
    return read_json(folders[-1] / "state.json") if folders else None


def load_checkpoint(run: RunFolder, model: Model, optimizer: Optimizer, schedule: LambdaLR, rank: int = 0) -> None:
    """Restore model, optimiser, schedule and random states from the newest checkpoint."""
    folder = run.checkpoint_folders()[-1]
    state = read_state(run) or {}
    load_weights(model, folder / "model.safetensors")
    random = read_tensors(folder / "random.safetensors")
    try:
        _fill_optimizer(optimizer, read_tensors(folder / "optimizer.safetensors"))
        schedule.last_epoch = state["schedule"]
        # A process that did not exist when the checkpoint was written uses the states of the first one.
        prefix = f"{rank}." if f"{rank}.cpu" in random else "0."
        set_random_states({name.removeprefix(prefix): value for name, value in random.items() if name.startswith(prefix)})
    except (ValueError, KeyError, IndexError) as error:
        raise SpanwiseError(f"{folder}: the checkpoint is incomplete: {error!r}") from None
    for group, base, factor in zip(optimizer.param_groups, schedule.base_lrs, schedule.lr_lambdas, strict=True):
        group["lr"] = base * factor(schedule.last_epoch)
    schedule._last_lr = [group["lr"] for group in optimizer.param_groups]


def random_states() -> dict[str, Tensor]:
    """The states of this process's random generators."""
    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state()
    return states


def set_random_states(states: RandomStates) -> None:
    torch.set_rng_state(states["cpu"])
    if "cuda" in states and torch.cuda.is_available():
        torch.cuda.set_rng_state(states["cuda"])


def _parameters(optimizer: Optimizer) -> list[Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _optimizer_tensors(optimizer: Optimizer) -> dict[str, Tensor]:
    return {
        f"{index}.{name}": value.detach().cpu().contiguous()
        for index, parameter in enumerate(_parameters(optimizer))
        for name, value in optimizer.state.get(parameter, {}).items()
    }


def _fill_optimizer(optimizer: Optimizer, tensors: dict[str, Tensor]) -> None:
    parameters = _parameters(optimizer)
    for key, value in tensors.items():
        index, _, name = key.partition(".")
        parameter = parameters[int(index)]
        is_on_device = value.ndim or optimizer.defaults.get("fused")
        optimizer.state[parameter][name] = value.to(parameter.device) if is_on_device else value


def _flush(path: Path) -> None:
    """Make sure that a file is on disk before it is renamed."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
