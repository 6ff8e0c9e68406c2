"""The folder of a learning service: collected annotations, and one folder for each training (a round).

- ``learning.json``: the model that the service was started with.
- ``annotations.jsonl``: the collected annotations (``collection.py``).
- ``rounds/0001/``: ``request.json``, ``data/`` (train and dev), ``run/`` (the run folder), ``train.log``,
  and when the round is finished ``result.json``.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from spanwise.core.errors import SpanwiseError
from spanwise.files.locks import LOCK_NAME, hold_lock
from spanwise.files.reading import read_json
from spanwise.files.writing import write_json

T = TypeVar("T")


@dataclass(frozen=True)
class RoundRequest:
    """The data of a training: base data and the first ``changes`` changes of the collection, from the weights of ``model``."""

    model: str
    changes: int
    annotations: str
    data: str | None = None
    device: str = "auto"


@dataclass(frozen=True)
class RoundResult:
    """The dev scores of the served and the new model, or why there is no new model."""

    old: float | None = None
    new: float | None = None
    metric: str = "F1"
    error: str | None = None

    @property
    def is_better(self) -> bool:
        return self.old is not None and self.new is not None and self.new > self.old


@dataclass(frozen=True)
class Round:
    """One training, in its own folder."""

    path: Path

    @property
    def number(self) -> int:
        return int(self.path.name)

    @property
    def data(self) -> Path:
        return self.path / "data"

    @property
    def run(self) -> Path:
        return self.path / "run"

    @property
    def log_file(self) -> Path:
        return self.path / "train.log"

    @property
    def _request_file(self) -> Path:
        return self.path / "request.json"

    @property
    def _result_file(self) -> Path:
        return self.path / "result.json"

    @property
    def is_finished(self) -> bool:
        return self._result_file.is_file()

    @property
    def has_request(self) -> bool:
        return self._request_file.is_file()

    def write_request(self, request: RoundRequest) -> None:
        write_json(self._request_file, asdict(request))

    def read_request(self) -> RoundRequest:
        return _read(RoundRequest, self._request_file)

    def read_result(self) -> RoundResult:
        return _read(RoundResult, self._result_file)

    def finish(self, result: RoundResult) -> None:
        """Write the result; remove a model that is not served."""
        write_json(self._result_file, asdict(result))
        if not result.is_better:
            shutil.rmtree(self.run, ignore_errors=True)


class LearningFolder:
    """The folder of one service and the model that it was started with."""

    def __init__(self, path: Path, model: Path) -> None:
        self.path, self.base_model = path.absolute(), model.absolute()
        self._state_file = self.path / "learning.json"

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Create the folder, or check that it belongs to this model; hold its lock."""
        if self.path.is_dir() and not self._state_file.is_file() and {file.name for file in self.path.iterdir()} - {LOCK_NAME}:
            raise SpanwiseError(f"{self.path}: has other files and no collected annotations; choose another --learn-folder")
        self.path.mkdir(parents=True, exist_ok=True)
        with hold_lock(self.path, "already collects annotations in this folder"):
            self._check_model()
            yield

    def _check_model(self) -> None:
        if not self._state_file.is_file():
            write_json(self._state_file, {"model": str(self.base_model)})
        model = read_json(self._state_file).get("model")
        if model != str(self.base_model):
            raise SpanwiseError(f"{self.path}: collects annotations for {model}; choose another --learn-folder")

    @property
    def rounds(self) -> list[Round]:
        """All rounds with a request, in order."""
        folders = [path for path in (self.path / "rounds").glob("*") if path.name.isdigit()]
        rounds = [Round(path) for path in sorted(folders, key=lambda path: int(path.name))]
        return [round for round in rounds if round.has_request]

    @property
    def served_round(self) -> Round | None:
        """The last round with a better model, which is served; None for the model that the service was started with."""
        better = [round for round in self.rounds if round.is_finished and round.read_result().is_better]
        return better[-1] if better else None

    @property
    def model(self) -> Path:
        """The run folder of the model to serve."""
        served = self.served_round
        return self.base_model if served is None else served.run

    def add_round(self, request: RoundRequest) -> Round:
        number = max((round.number for round in self.rounds), default=0) + 1
        round = Round(self.path / "rounds" / f"{number:04d}")
        round.path.mkdir(parents=True, exist_ok=True)
        round.write_request(request)
        return round


def _read(kind: type[T], path: Path) -> T:
    try:
        return kind(**read_json(path))
    except TypeError:
        raise SpanwiseError(f"{path}: not a valid record of a round") from None
