"""Checkpoints: complete, written whole or not at all, and without pickle.

A checkpoint is a folder ``checkpoints/step-N`` with the weights, the optimiser's state and the random states as safetensors,
and the rest (position, schedule, best score, metrics) as JSON. It is written under another name and renamed, so a killed
process leaves either the old one or the new one. What was asked for, and on which data, is written before the first step
(``began.json``).
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from spanwise.config.settings import Config
from spanwise.config.validation import validate_settings
from spanwise.core.errors import SpanwiseError
from spanwise.files.reading import read_json
from spanwise.files.writing import atomic_output
from spanwise.models.model import Model
from spanwise.runs.files import BEGAN
from spanwise.runtime.tensors import fill, read_tensors, weights, write_tensors

CHECKPOINTS = "checkpoints"
States = Mapping[str, Tensor]


@dataclass(frozen=True)
class Began:
    """What a training began with: its settings as they were asked for, a fingerprint of each split, what it started from."""

    config: Config
    data: Mapping[str, str]
    init: str | None = None

    def write(self, run: Path) -> None:
        values = {"config": self.config.model_dump(mode="json"), "data": self.data, "init": self.init}
        with atomic_output(run / BEGAN) as temporary:
            temporary.write_text(json.dumps(values), encoding="utf-8")

    @classmethod
    def read(cls, run: Path) -> Began | None:
        """What a run folder says of it; None where no training has begun, or it has ended."""
        path = run / BEGAN
        if not path.is_file():
            return None
        return cls.of(read_json(path), path)

    @classmethod
    def of(cls, values: Mapping[str, Any], path: Path, config: str = "config") -> Began:
        """From what a file says, the settings under the key ``config``."""
        try:
            data = {split: own if isinstance(own, str) else str(own["fingerprint"]) for split, own in values["data"].items()}
            return cls(validate_settings(Config, values[config], str(path)), data, values.get("init"))
        except (KeyError, TypeError, AttributeError) as error:
            raise SpanwiseError(f"{path}: cannot be read: does not say what the training began with ({error!r})") from None

    def check(self, run: Path, config: Config, data: Mapping[str, str]) -> None:
        """Refuse to go on with other data or other settings."""
        began = {"config": self.config.model_dump(mode="json"), "data": self.data}
        check_same(run, began, {"config": config.model_dump(mode="json"), "data": data})


def check_same_start(run: Path, began: str | Path | None, given: str | Path | None) -> None:
    """Refuse to go on from other weights (``--init``) than a training, or several, began with."""
    if given is not None and (began is None or Path(given).absolute() != Path(began)):
        raise SpanwiseError(f"{run}: cannot resume with --init {given}, for it began with {began or 'none'}")


def save_checkpoint(
    run: Path,
    step: int,
    model: Model,
    optimizer: Optimizer,
    schedule: LambdaLR,
    state: dict[str, Any],
    random: Sequence[States],
) -> None:
    """Write the checkpoint of a step, then remove the ones before it. ``random`` holds each process's ``random_states``."""
    folder = run / CHECKPOINTS
    folder.mkdir(parents=True, exist_ok=True)
    for leftover in folder.glob(".step-*"):  # of a write that was killed
        shutil.rmtree(leftover, ignore_errors=True)
    temporary = folder / f".step-{step}"
    temporary.mkdir()
    write_tensors(weights(model), temporary / "model.safetensors")
    write_tensors(_optimizer_tensors(optimizer), temporary / "optimizer.safetensors")
    every = {f"{rank}.{name}": value for rank, states in enumerate(random) for name, value in states.items()}
    write_tensors(every, temporary / "random.safetensors")
    position = {"step": step, "schedule": schedule.last_epoch, **state}
    (temporary / "state.json").write_text(json.dumps(position), encoding="utf-8")
    for path in (*temporary.iterdir(), temporary):
        _flush(path)
    temporary.rename(folder / f"step-{step}")
    _flush(folder)
    for old in _steps(run)[:-1]:
        shutil.rmtree(old, ignore_errors=True)


def read_state(run: Path) -> dict[str, Any] | None:
    """What the newest checkpoint says besides its tensors; None when there is none."""
    folders = _steps(run)
    if not folders:
        return None
    return read_json(folders[-1] / "state.json")


def check_same(run: Path, state: Mapping[str, Any], identity: Mapping[str, Any]) -> None:
    """Refuse to go on with other data or other settings than a training began with. Settings may follow from the data."""
    for split in ("train", "dev"):
        if state["data"].get(split) != identity["data"].get(split):
            raise SpanwiseError(f"{run}: cannot resume, for the {split} data is not what it began with")
    changed = sorted(_difference(state["config"], identity["config"]))
    if changed:
        raise SpanwiseError(f"{run}: cannot resume with other settings than it began with: {', '.join(changed)}")


def _difference(one: Any, other: Any, name: str = "") -> set[str]:
    """The dotted names under which two nested settings differ."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return set() if one == other else {name}
    keys = one.keys() | other.keys()
    return {found for key in keys for found in _difference(one.get(key), other.get(key), f"{name}.{key}".lstrip("."))}


def load_checkpoint(run: Path, model: Model, optimizer: Optimizer, schedule: LambdaLR, rank: int = 0) -> None:
    """Put everything back as it was at the newest checkpoint."""
    folder = _steps(run)[-1]
    state = read_state(run) or {}
    fill(model, folder / "model.safetensors")
    random = read_tensors(folder / "random.safetensors")
    try:
        _fill_optimizer(optimizer, read_tensors(folder / "optimizer.safetensors"))
        schedule.last_epoch = state["schedule"]
        # A process that was not there when the checkpoint was written takes the first one's.
        own = rank if f"{rank}.cpu" in random else 0
        set_random_states({name.partition(".")[2]: value for name, value in random.items() if name.startswith(f"{own}.")})
    except (ValueError, KeyError, IndexError) as error:
        raise SpanwiseError(f"{folder}: the checkpoint is not complete: {error!r}") from None
    for group, base, factor in zip(optimizer.param_groups, schedule.base_lrs, schedule.lr_lambdas, strict=True):
        group["lr"] = base * factor(schedule.last_epoch)
    schedule._last_lr = [group["lr"] for group in optimizer.param_groups]


def random_states() -> dict[str, Tensor]:
    """The states of the random generators of this process."""
    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state()
    return states


def set_random_states(states: States) -> None:
    torch.set_rng_state(states["cpu"])
    if "cuda" in states and torch.cuda.is_available():
        torch.cuda.set_rng_state(states["cuda"])


def _steps(run: Path) -> list[Path]:
    folder = run / CHECKPOINTS
    found = [path for path in folder.glob("step-*") if path.name[5:].isdigit()] if folder.is_dir() else []
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


def _flush(path: Path) -> None:
    """Make sure that what was written is on the disk before it is renamed into place."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
