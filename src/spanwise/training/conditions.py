"""The conditions, other than settings and data, on which the weights of a training depend.

The same settings, data and conditions give the same weights, bit for bit, with or without
interruptions. Other threads, versions or processors sum in another order and round differently.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version

import torch

Conditions = Mapping[str, str | int]
_PACKAGES = ("torch", "numpy", "tokenizers", "transformers")


def current_conditions(device: str, processes: int) -> dict[str, str | int]:
    """The conditions of a training in this process; ``device`` is the name of the GPU, or ``cpu``."""
    capability = torch.backends.cpu.get_cpu_capability()
    return {
        "threads": torch.get_num_threads(), "processes": processes, "device": device, "cpu": capability,
        **{package: package_version(package) for package in _PACKAGES},
    }  # fmt: skip


def describe_changes(before: Conditions, now: Conditions) -> str | None:
    """A note about the conditions that differ from those a training was started under; None if none do.

    >>> describe_changes({"threads": 1}, {"threads": 4})
    'resumed under other conditions (threads: 1, now 4); the weights may differ from those of an uninterrupted run'
    """
    changes = [f"{name}: {before[name]}, now {value}" for name, value in now.items() if before.get(name, value) != value]
    if not changes:
        return None
    return (
        f"resumed under other conditions ({'; '.join(changes)}); "
        "the weights may differ from those of an uninterrupted run"
    )  # fmt: skip


@cache  # reading it takes milliseconds
def package_version(package: str) -> str:
    """The version of an installed package."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
