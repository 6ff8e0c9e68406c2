"""Checkpoints: complete, written whole or not at all, and without pickle.

A checkpoint is a folder ``checkpoints/step-N`` with the weights, the optimiser's state and the random states as safetensors,
and the rest (position, schedule, best score, metrics) as JSON. It is written under another name and renamed, so a killed
process leaves either the old one or the new one.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from spanwise.errors import SpanwiseError
from spanwise.model import Model, fill, weights

FOLDER = "checkpoints"


def save_checkpoint(
    run: Path, step: int, model: Model, optimizer: Optimizer, schedule: LambdaLR, state: dict[str, Any]
) -> None:
    """Write the checkpoint of a step, then remove the ones before it."""
    folder = run / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    temporary, final = folder / f".step-{step}", folder / f"step-{step}"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    save_file(weights(model), temporary / "model.safetensors")
    save_file(_optimizer_tensors(optimizer), temporary / "optimizer.safetensors")
    save_file(_random_states(), temporary / "random.safetensors")
    position = {"step": step, "schedule": schedule.last_epoch, **state}
    (temporary / "state.json").write_text(json.dumps(position), encoding="utf-8")
    for path in temporary.iterdir():
        _flush(path)
    if final.exists():
        shutil.rmtree(final)
    temporary.rename(final)
    _flush(folder)
    for old in _steps(run)[:-1]:
        shutil.rmtree(old, ignore_errors=True)


def load_checkpoint(run: Path, model: Model, optimizer: Optimizer, schedule: LambdaLR) -> dict[str, Any] | None:
    """Put everything back as it was at the newest checkpoint; None when there is none."""
    folders = _steps(run)
    if not folders:
        return None
    folder = folders[-1]
    try:
        state: dict[str, Any] = json.loads((folder / "state.json").read_text(encoding="utf-8"))
        fill(model, folder / "model.safetensors")
        _fill_optimizer(optimizer, load_file(folder / "optimizer.safetensors"))
        _set_random_states(load_file(folder / "random.safetensors"))
    except (OSError, ValueError, KeyError) as error:
        raise SpanwiseError(f"{folder}: the checkpoint cannot be read: {error}") from None
    schedule.last_epoch = state["schedule"]
    for group, base, factor in zip(optimizer.param_groups, schedule.base_lrs, schedule.lr_lambdas, strict=True):
        group["lr"] = base * factor(schedule.last_epoch)
    schedule._last_lr = [group["lr"] for group in optimizer.param_groups]
    return state


def _steps(run: Path) -> list[Path]:
    found = [path for path in (run / FOLDER).glob("step-*") if path.name[5:].isdigit()] if (run / FOLDER).is_dir() else []
    return sorted(found, key=lambda path: int(path.name[5:]))


def _parameters(optimizer: Optimizer) -> list[Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _optimizer_tensors(optimizer: Optimizer) -> dict[str, Tensor]:
    return {
        f"{number}.{name}": value.detach().cpu().contiguous()
        for number, parameter in enumerate(_parameters(optimizer))
        for name, value in optimizer.state.get(parameter, {}).items()
    }


def _fill_optimizer(optimizer: Optimizer, tensors: dict[str, Tensor]) -> None:
    parameters = _parameters(optimizer)
    for key, value in tensors.items():
        number, _, name = key.partition(".")
        parameter = parameters[int(number)]
        optimizer.state[parameter][name] = (
            value.to(parameter.device) if value.ndim or optimizer.defaults.get("fused") else value
        )


def _random_states() -> dict[str, Tensor]:
    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state()
    return states


def _set_random_states(states: dict[str, Tensor]) -> None:
    torch.set_rng_state(states["cpu"])
    if "cuda" in states and torch.cuda.is_available():
        torch.cuda.set_rng_state(states["cuda"])


def _flush(path: Path) -> None:
    """Make sure that what was written is on the disk before it is renamed into place."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
