"""Checkpoints: complete, atomic, and without pickle.

A checkpoint is a folder ``checkpoints/step-N``. It has the weights, the optimiser state and the random
states as safetensors, and position, schedule, best score and metrics as JSON. It is written under a
temporary name and then renamed, so that a killed process leaves the old checkpoint or the new one.
``checksums.json`` has the SHA-256 of each file. The newest two checkpoints are kept: if the newest is
damaged, the one before it is used.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from spanwise.core.errors import SpanwiseError
from spanwise.files.reading import read_json
from spanwise.files.writing import atomic_output
from spanwise.models.model import Model
from spanwise.runs.folder import RunFolder
from spanwise.runtime.tensors import load_weights, read_tensors, write_tensors

RandomStates = Mapping[str, Tensor]
_STATE, _CHECKSUMS = "state.json", "checksums.json"
_FILES = {_STATE, "model.safetensors", "optimizer.safetensors", "random.safetensors"}


def checkpoint_tensors(
    weights: Mapping[str, Tensor], optimizer: Optimizer, random: Sequence[RandomStates]
) -> dict[str, Mapping[str, Tensor]]:
    """The tensors of a checkpoint on the CPU, by file. ``random`` has the ``random_states`` of each process."""
    by_rank = {f"{rank}.{name}": value for rank, states in enumerate(random) for name, value in states.items()}
    files = {"model": weights, "optimizer": _optimizer_tensors(optimizer), "random": by_rank}
    return {f"{name}.safetensors": tensors for name, tensors in files.items()}


def save_checkpoint(run: RunFolder, state: Mapping[str, Any], files: Mapping[str, Mapping[str, Tensor]]) -> None:
    """Write the checkpoint of ``state["step"]``; keep the one before it."""
    run.checkpoints.mkdir(parents=True, exist_ok=True)
    for old in run.checkpoint_folders()[:-1]:  # before the new one is written, to save space
        _remove(old)
    with atomic_output(run.checkpoints / f"step-{state['step']}", is_folder=True) as temporary:
        for name, tensors in files.items():
            write_tensors(tensors, temporary / name)
        (temporary / _STATE).write_text(json.dumps(state), encoding="utf-8")
        checksums = {path.name: _checksum(path) for path in sorted(temporary.iterdir())}
        (temporary / _CHECKSUMS).write_text(json.dumps(checksums), encoding="utf-8")


def find_checkpoint(run: RunFolder, log: Callable[[str], None], *, should_remove: bool = True) -> Path | None:
    """Return the newest intact checkpoint, or None if there is none at all; remove newer, damaged ones."""
    damaged: dict[Path, str] = {}
    for folder in reversed(run.checkpoint_folders()):
        problem = _find_damage(folder)
        if problem is None:
            for other, name in damaged.items():
                log(f"note: {other} is damaged ({name}); using the checkpoint before it")
                if should_remove:
                    _remove(other)
            return folder
        damaged[folder] = problem
    if damaged:
        listed = ", ".join(f"{folder.name} ({name})" for folder, name in damaged.items())
        advice = "delete this folder to train from the beginning"
        raise SpanwiseError(f"{run.checkpoints}: all checkpoints are damaged: {listed}; {advice}")
    return None


def read_state(folder: Path) -> dict[str, Any]:
    """Read a checkpoint without its tensors."""
    return read_json(folder / _STATE)


def load_checkpoint(folder: Path, model: Model, optimizer: Optimizer, schedule: LambdaLR, rank: int = 0) -> None:
    """Restore model, optimiser, schedule and random states from a checkpoint."""
    state = read_state(folder)
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
        if value.ndim:
            # In the memory layout of the weights, which a fused step requires: convolutions may be stored by channel.
            value = torch.empty_like(parameter, dtype=value.dtype).copy_(value)
        elif optimizer.defaults.get("fused"):
            value = value.to(parameter.device)
        optimizer.state[parameter][name] = value


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _find_damage(folder: Path) -> str | None:
    """Return the name of the first damaged or missing file of a checkpoint; None if it is intact."""
    try:
        checksums = read_json(folder / _CHECKSUMS)
    except SpanwiseError:
        return _CHECKSUMS
    if not checksums.keys() >= _FILES:
        return _CHECKSUMS
    # A damaged entry of the checksums makes an intact file look damaged; the list itself has no checksum.
    for name in sorted(_FILES):
        try:
            if _checksum(folder / name) != checksums[name]:
                return name
        except OSError:
            return name
    return None


def _remove(folder: Path) -> None:
    """Remove a checkpoint. Its name goes first, so that a kill leaves no checkpoint with missing files."""
    hidden = folder.with_name(f".{folder.name}")
    shutil.rmtree(hidden, ignore_errors=True)  # of a killed removal
    folder.rename(hidden)
    shutil.rmtree(hidden, ignore_errors=True)
