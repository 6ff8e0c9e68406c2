"""The number of threads, how they wait, and the hint for a busy machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from spanwise.runtime.threads import SlowStepCheck, cgroup_cores, choose_threads

COMMANDS = ("train", "predict", "evaluate", "compare", "analyze", "serve", "export", "demo")
SHOW = (
    "import os, sys; from spanwise.cli import main\n"
    "try: main({arguments!r})\n"
    "except SystemExit: pass\n"
    "print(*(os.environ.get(name) for name in ('OMP_NUM_THREADS', 'OMP_WAIT_POLICY', 'KMP_BLOCKTIME')), 'torch' in sys.modules)"
)


def environment(*arguments: str, **given: str) -> list[str]:
    """The settings of threads in a new process after a command that fails early."""
    names = ("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "KMP_BLOCKTIME")
    clean = {name: value for name, value in os.environ.items() if name not in names} | given
    code = SHOW.format(arguments=list(arguments))
    done = subprocess.run([sys.executable, "-c", code], env=clean, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_threads_option_and_passive_waiting_are_set_before_torch_is_imported() -> None:
    assert environment("predict", "missing", "missing", "--threads", "3") == ["3", "PASSIVE", "0", "False"]
    given = {"OMP_NUM_THREADS": "5", "OMP_WAIT_POLICY": "ACTIVE"}
    assert environment("predict", "missing", "missing", **given) == ["5", "ACTIVE", "None", "False"]


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_that_compute_take_threads(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    from spanwise.cli import main

    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert "--threads N" in capsys.readouterr().out


def group(root: Path, limits: dict[str, str]) -> Path:
    for name, limit in limits.items():
        (root / name).mkdir(parents=True, exist_ok=True)
        (root / name / "cpu.max").write_text(limit)
    return root


def test_the_default_respects_the_cpu_limits_of_cgroups(tmp_path: Path) -> None:
    root = group(tmp_path, {"": "max 100000", "a": "250000 100000", "a/b": "max 100000", "c": "50000 100000"})
    assert cgroup_cores("0::/a/b\n", root) == 3  # of the parent, rounded up
    assert cgroup_cores("0::/c\n", root) == 1
    assert cgroup_cores("0::/\n", root) is None
    assert cgroup_cores("0::/../elsewhere\n", root) is None
    old = tmp_path / "old" / "cpu" / "x"
    old.mkdir(parents=True)
    (old / "cpu.cfs_quota_us").write_text("400000")
    (old / "cpu.cfs_period_us").write_text("100000")
    assert cgroup_cores("4:cpu,cpuacct:/x\n", tmp_path / "old") == 4
    (old / "cpu.cfs_quota_us").write_text("-1")
    assert cgroup_cores("4:cpu,cpuacct:/x\n", tmp_path / "old") is None


def test_the_default_counts_physical_cores_of_the_affinity() -> None:
    siblings = {0: "0,4", 1: "1,5", 2: "2,6", 3: "3,7", 4: "0,4", 5: "1,5", 6: "2,6", 7: "3,7"}
    assert choose_threads(set(range(8)), siblings, None) == 4
    assert choose_threads({0, 4}, siblings, None) == 1
    assert choose_threads(set(range(8)), siblings, 2) == 2
    assert choose_threads({0, 1}, {}, None) == 2
    assert choose_threads(set(), {}, None) == 1


def test_a_hint_is_printed_once_when_steps_are_much_slower_than_the_cpu_time_they_need() -> None:
    def hints(cpu_share: float, *, threads: int = 8, steps: int = 100) -> list[str]:
        now = [0.0]
        check = SlowStepCheck(threads, clock=lambda: now[0], cpu_clock=lambda: now[0] * cpu_share)
        lines = []
        for _ in range(steps):
            now[0] += 0.5
            lines.append(check.step())
        return [line for line in lines if line]

    (hint,) = hints(0.2)
    assert "5.0 times as long as the CPU time" in hint
    assert "--threads" in hint
    assert hints(0.9) == []
    assert hints(0.2, steps=5) == []  # too early to tell
    (alone,) = hints(0.2, threads=1)
    assert "--threads" not in alone
