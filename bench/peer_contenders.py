"""The contenders of bench/peers.py: worker processes that take turns."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

WORKER = Path(__file__).parent / "peers" / "worker.py"
Times = dict[str, list[float]]


class ContenderError(Exception):
    """The reason why a contender cannot take part."""


@dataclass(frozen=True)
class Library:
    module: str  # module in bench/peers
    nests: bool
    options: Mapping[str, Any] | None = None
    environment: str | None = None  # in peer_environments.py; None: this one


class Contender:
    """A worker process and its responses."""

    def __init__(self, library: Library, python: str, job: Mapping[str, Any], threads: int, log: Path) -> None:
        names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        quiet = {"TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
        environment = os.environ | dict.fromkeys(names, str(threads)) | quiet
        self.log = log
        with log.open("w") as errors:
            try:
                self.process = subprocess.Popen(
                    [python, str(WORKER), library.module], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                    text=True, encoding="utf-8", env=environment,
                )  # fmt: skip
            except OSError as error:
                raise ContenderError(f"no such Python: {error}") from None
        try:
            answer = self.ask(job)
            if "missing" in answer:
                raise ContenderError(f"not installed: {answer['missing']}")
        except ContenderError:
            self.close()
            raise
        self.version = answer["ready"]

    def ask(self, command: Mapping[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            print(json.dumps(command), file=self.process.stdin, flush=True)
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise ContenderError(f"the worker died: {(self.log.read_text().strip().splitlines() or ['no output'])[-1]}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise ContenderError(f"does not run: {answer['error']}")
        return answer

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


class Field:
    """The contenders. One that fails is reported and removed, unless it is the reference."""

    def __init__(self, reference: str) -> None:
        self.reference = reference
        self.contenders: dict[str, Contender] = {}
        self.lost: dict[str, str] = {}

    def leave(self, name: str, why: ContenderError) -> None:
        self.lost[name] = str(why)
        print(f"{name:24} {why}", flush=True)
        if contender := self.contenders.pop(name, None):
            contender.close()
        if name == self.reference:
            raise SystemExit(f"the reference {name} failed")

    def ask(self, name: str, command: Mapping[str, Any]) -> dict[str, Any] | None:
        try:
            return self.contenders[name].ask(command)
        except ContenderError as why:
            self.leave(name, why)
            return None

    def in_turns(self, commands: Sequence[Mapping[str, Any]]) -> Times:
        """Return the seconds of each contender for every command except the first, which fills caches."""
        times: Times = {name: [] for name in self.contenders}
        for turn, command in enumerate(commands):
            for name in Random(turn).sample(list(self.contenders), len(self.contenders)):
                answer = self.ask(name, command)
                if answer is not None and turn:
                    times[name].append(answer["seconds"])
        return {name: times[name] for name in self.contenders}
