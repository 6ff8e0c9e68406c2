"""Kill commands at file operations and at random moments, and check that no output is damaged.

    python bench/kill.py [--kills 500] [--seed 0] [--only train,convert] [--verbose]

Each kill is a SIGKILL to a command that replaces an old output or writes a new one. Afterwards the
output must be the old one or the new one, whole. Then the command is repeated (a training with
``--resume``): the result must be equal to that of an uninterrupted command, bit for bit, and nothing
else may remain. Half of the kills are placed on file operations: a hook counts every open for writing,
rename, fsync, lock, mkdir and removal of the command, and kills it before the n-th, for n from the first
to the last. The other half comes at random moments.

The commands run in processes forked from one that has imported everything, so that 500 kills take minutes.
"""

from __future__ import annotations

import argparse
import gc
import io
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

from kill_scenarios import SCENARIOS, Scenario, contents, prepare  # noqa: E402

from spanwise.cli import _build_command  # noqa: E402
from spanwise.cli import main as run_command  # noqa: E402

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
OPERATIONS = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.chmod", "os.truncate", "fcntl.flock", "shutil.rmtree"}
TIME_LIMIT = 600.0  # seconds for one command, which may run on a busy machine
SHARES = {
    "train": 4, "seeds": 2, "convert": 3, "convert-folder": 3, "predict": 3, "suggest": 1, "analyze": 2, "analyze-figures": 1,
    "export": 3, "export-onnx": 1, "package": 2, "vectors": 2,
}  # fmt: skip


@dataclass
class Command:
    """A running command: a forked process."""

    process: int
    log: Path

    def wait(self, limit: float | None = None) -> int | None:
        """Return the exit status, negative for a signal; None if the command still runs after ``limit`` seconds."""
        end = time.monotonic() + (TIME_LIMIT if limit is None else limit)
        while True:
            done, status = os.waitpid(self.process, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() > end:
                if limit is None:
                    os.kill(self.process, signal.SIGKILL)
                    os.waitpid(self.process, 0)
                    sys.exit(f"a command did not end in {TIME_LIMIT:.0f} s: {self.log.read_text()[-2000:]}")
                return None
            time.sleep(0.002)


def start(arguments: Sequence[str], folder: Path, *, kill_at: int | None = None, count: Path | None = None) -> Command:
    """Run a command in a forked process that kills itself at file operation ``kill_at``, or counts them."""
    log = folder / "log.txt"
    process = os.fork()
    if process:
        return Command(process, log)
    code = 1
    try:
        with log.open("a", encoding="utf-8") as file, redirect_stdout(file), redirect_stderr(file):
            number = _hook(folder, kill_at)
            try:
                run_command(list(arguments))
            except SystemExit as ended:
                code = int(ended.code or 0)
            if count is not None:
                count.write_text(str(number()))
    except BaseException as error:  # a traceback is a failure of the command
        with log.open("a", encoding="utf-8") as file:
            file.write(f"{error!r}\n")
    finally:
        os._exit(code)


def _hook(folder: Path, kill_at: int | None) -> Callable[[], int]:
    """Count the file operations of this process in ``folder``; kill it before number ``kill_at``."""
    done, prefix, fsync = [0], str(folder), os.fsync

    def operation() -> None:
        done[0] += 1
        if done[0] == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if isinstance(path, str | bytes) and flags & WRITES and os.fsdecode(path).startswith(prefix):
                operation()
        elif event in OPERATIONS:
            path = arguments[0]
            if (
                not isinstance(path, str | bytes)
                or not os.fsdecode(path).startswith(os.sep)
                or os.fsdecode(path).startswith(prefix)
            ):
                operation()

    def counted_fsync(handle: int) -> None:
        operation()
        fsync(handle)

    sys.addaudithook(audit)
    os.fsync = counted_fsync
    return lambda: done[0]


@dataclass
class Trial:
    """One scenario: its old and new output, the number of its file operations, and its duration."""

    scenario: Scenario
    work: Path
    operations: int = 0
    seconds: float = 0.0
    old: Any = None
    new: Any = None
    listing: frozenset[str] = frozenset()

    def measure(self) -> None:
        """Run the command twice without a kill: the second run must give the same result."""
        self.reset()
        self.old = self.scenario.result(self.out) if self.out.exists() else None
        for again in (False, True):
            self.reset()
            started = time.monotonic()
            command = start(self.scenario.arguments(self.work), self.work, count=self.work / "count.txt")
            if command.wait() != 0:
                sys.exit(f"{self.scenario.name} failed: {command.log.read_text()[-2000:]}")
            self.seconds = min(self.seconds or TIME_LIMIT, time.monotonic() - started)
            result = self.scenario.result(self.out)
            if again and result != self.new:
                sys.exit(f"{self.scenario.name}: two runs without a kill differ")
            self.new = result
        self.operations = int((self.work / "count.txt").read_text())
        self.listing = self.names()

    @property
    def out(self) -> Path:
        return self.work / "place" / self.scenario.output

    def names(self) -> frozenset[str]:
        return frozenset(contents(self.work / "place"))

    def reset(self) -> None:
        """Restore the folder of the output as it is before the command."""
        shutil.rmtree(self.work / "place", ignore_errors=True)
        (self.work / "log.txt").unlink(missing_ok=True)
        (self.work / "place").mkdir(parents=True)
        self.scenario.set_up(self.work, self.out)

    def kill(self, operation: int | None, moment: float) -> tuple[bool, str | None]:
        """Kill the command, check its output, repeat it and check again; return whether it was killed, and the problem."""
        self.reset()
        command = start(self.scenario.arguments(self.work), self.work, kill_at=operation)
        started = time.monotonic()
        status = command.wait(None if operation is not None else moment)
        if status is not None and operation is None:  # it ended early, because the machine is less busy now
            self.seconds = min(self.seconds, time.monotonic() - started)
        if status is None:
            os.kill(command.process, signal.SIGKILL)
            status = command.wait()
        killed = status == -signal.SIGKILL
        if not killed and status != 0:
            return killed, f"exit code {status}"
        if problem := self.scenario.check_killed(self):
            return killed, problem
        if not self.scenario.is_complete(self.out):
            repeated = start(self.scenario.arguments(self.work, again=True), self.work)
            if (code := repeated.wait()) != 0:
                return killed, f"the repeated command failed with exit code {code}: {repeated.log.read_text()[-500:]}"
        self.scenario.clean(self)
        if self.scenario.result(self.out) != self.new:
            return killed, "another result after the repeated command"
        if (names := self.names()) != self.listing:
            return killed, f"other files: {sorted(names ^ self.listing)}"
        return killed, None


def kills(trial: Trial, count: int, choose: random.Random) -> Iterator[tuple[int | None, float]]:
    """Half of the kills at file operations, spread over all of them, and half at random moments."""
    placed = min((count + 1) // 2, trial.operations)
    for index in range(placed):
        yield 1 + int((index + choose.random()) * trial.operations / placed), 0.0
    for _ in range(count - placed):  # the duration may have been corrected meanwhile
        yield None, choose.uniform(0, 0.9 * trial.seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default=",".join(SCENARIOS))
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    choose, started = random.Random(arguments.seed), time.monotonic()
    names = arguments.only.split(",")
    total = sum(SHARES[name] for name in names)
    counts, problems = Counter[str](), list[str]()
    with tempfile.TemporaryDirectory(prefix="spanwise-kill-") as folder:
        work = Path(folder)
        os.environ["TMPDIR"] = str(work / "temporary")
        (work / "temporary").mkdir()
        tempfile.tempdir = None
        with redirect_stdout(io.StringIO()):
            prepare(work, names)
        for name in names:  # in this process, so that the forked ones need not
            _build_command(SCENARIOS[name].arguments(work / name)[0])
        gc.freeze()
        remaining = arguments.kills
        for position, name in enumerate(names):
            trial = Trial(SCENARIOS[name], work / name)
            (work / name).mkdir()
            trial.measure()
            share = remaining if position == len(names) - 1 else round(arguments.kills * SHARES[name] / total)
            remaining -= share
            tally = Counter[str]()
            for operation, moment in kills(trial, share, choose):
                killed, problem = trial.kill(operation, moment)
                while not killed and not problem:  # it ended before the kill
                    tally["more that ended before their kill"] += 1
                    moment = choose.uniform(0, 0.9 * trial.seconds)
                    killed, problem = trial.kill(None, moment)
                tally["kills"] += 1
                tally["placed on an operation" if operation is not None else "at a random moment"] += 1
                where = f"operation {operation}" if operation is not None else f"{moment:.3f} s"
                if problem:
                    problems.append(f"{name}, {where}: {problem}")
                if problem or arguments.verbose:
                    print(f"  {name}, {where}: {problem or 'whole, then equal'}", flush=True)
            counts += tally
            parts = ", ".join(f"{count} {kind}" for kind, count in tally.items())
            print(f"{name} ({trial.operations} file operations, {trial.seconds:.2f} s): {parts}", flush=True)
    took = time.monotonic() - started
    print(f"total: {', '.join(f'{count} {kind}' for kind, count in counts.items())}; {len(problems)} problems; {took:.0f} s")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
