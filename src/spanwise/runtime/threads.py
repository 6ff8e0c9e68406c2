"""CPU threads: how many to use, how they wait, and a hint for a busy machine. Imports no torch."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Set
from math import ceil
from pathlib import Path

_COUNT, _WAITING = "OMP_NUM_THREADS", {"OMP_WAIT_POLICY": "PASSIVE", "KMP_BLOCKTIME": "0"}
_CGROUPS = Path("/sys/fs/cgroup")


def use_passive_waiting() -> None:
    """Let idle threads release their core, unless the user has chosen how they wait.

    By default they spin for a while after each parallel operation. On a machine with other work this
    takes the cores from the threads that everyone is waiting for. Call this before torch is imported.
    """
    if not any(name in os.environ for name in (*_WAITING, "GOMP_SPINCOUNT")):
        os.environ.update(_WAITING)


def use_threads(count: int | None) -> None:
    """Use this many threads; None means OMP_NUM_THREADS or, if it is not set, ``available_threads``."""
    torch = sys.modules.get("torch")
    if count is not None:
        os.environ[_COUNT] = str(count)
        if torch is not None:
            torch.set_num_threads(count)
    elif torch is None and not os.environ.get(_COUNT):
        os.environ[_COUNT] = str(available_threads())


def available_threads() -> int:
    """The number of physical cores that this process may use, at most the CPU limit of its cgroup."""
    cpus = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
    try:
        limit = cgroup_cores(Path("/proc/self/cgroup").read_text(encoding="utf-8"), _CGROUPS)
    except (OSError, ValueError):  # no Linux, or no cgroups
        limit = None
    return choose_threads(cpus, _siblings(cpus), limit)


def choose_threads(cpus: Set[int], siblings: Mapping[int, str], limit: int | None) -> int:
    """Count the physical cores of some CPUs; ``siblings`` names the CPUs that share a core.

    >>> choose_threads({0, 1, 2, 3}, {0: "0,2", 1: "1,3", 2: "0,2", 3: "1,3"}, None)
    2
    """
    cores = len({siblings.get(cpu, str(cpu)) for cpu in cpus})
    return max(1, cores if limit is None else min(cores, limit))


def cgroup_cores(membership: str, root: Path) -> int | None:
    """The lowest CPU limit of a cgroup and its parents in cores, rounded up; None if there is no limit.

    ``membership`` is the content of ``/proc/self/cgroup``. Versions 1 and 2 of cgroups are supported.
    """
    limits = []
    for line in membership.splitlines():
        _, controllers, name = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        base = root / "cpu" if controllers else root
        group = base / name.strip("/")
        if ".." in group.parts:
            continue
        for folder in (group, *group.parents):
            if not folder.is_relative_to(base):
                break
            quota, period = _quota(folder, is_unified=not controllers)
            if quota > 0 and period > 0:
                limits.append(ceil(quota / period))
    return min(limits, default=None)


def _quota(folder: Path, *, is_unified: bool) -> tuple[int, int]:
    """CPU time per period of a cgroup in microseconds; 0 or less if it has no limit."""
    names = ("cpu.max",) if is_unified else ("cpu.cfs_quota_us", "cpu.cfs_period_us")
    try:
        values = " ".join((folder / name).read_text(encoding="ascii") for name in names).split()
    except OSError:
        return 0, 0
    return (0, 0) if len(values) < 2 or values[0] == "max" else (int(values[0]), int(values[1]))


def _siblings(cpus: Set[int]) -> dict[int, str]:
    """The CPUs that share a physical core with each CPU, if the system reports them."""
    siblings = {}
    for cpu in cpus:
        try:
            path = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
            siblings[cpu] = path.read_text(encoding="ascii").strip()
        except OSError:
            continue
    return siblings


class SlowStepCheck:
    """Detects steps that take much longer than the CPU time they need, because other processes use the cores.

    The thread that trains takes part in every operation. If it is idle most of the time, it waits for
    threads that do not get a core.
    """

    MIN_STEPS, MIN_SECONDS, MAX_RATIO = 20, 10.0, 2.5

    def __init__(
        self, threads: int, *, clock: Callable[[], float] = time.perf_counter, cpu_clock: Callable[[], float] = time.thread_time
    ) -> None:
        self._threads, self._clock, self._cpu_clock = threads, clock, cpu_clock
        self._is_done = False
        self.restart()

    def restart(self) -> None:
        """Measure from now on; called when something other than steps has used the time."""
        self._steps, self._started, self._cpu_started = 0, self._clock(), self._cpu_clock()

    def step(self) -> str | None:
        """Count a step; return a hint once, if steps are slow."""
        self._steps += 1
        if self._is_done or self._steps < self.MIN_STEPS:
            return None
        seconds, cpu_seconds = self._clock() - self._started, self._cpu_clock() - self._cpu_started
        if seconds < self.MIN_SECONDS:
            return None
        ratio = seconds / max(cpu_seconds, 1e-3)
        if ratio < self.MAX_RATIO:
            self.restart()
            return None
        self._is_done = True
        advice = f"; fewer threads may be faster (--threads 1, now {self._threads})" if self._threads > 1 else ""
        return f"steps take {ratio:.1f} times as long as the CPU time they need: other processes use the cores{advice}"
