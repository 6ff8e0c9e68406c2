"""Collect annotations, train on them in another process, and serve the new model if it is better on dev."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spanwise.core.counting import counted_phrase
from spanwise.core.percentages import percent
from spanwise.label_studio.collection import Change, Collection
from spanwise.label_studio.rounds import LearningFolder, Round, RoundRequest, RoundResult
from spanwise.prediction.base import BasePredictor
from spanwise.prediction.load import load
from spanwise.runtime.processes import describe_exit
from spanwise.serve.errors import RequestError
from spanwise.serve.errors import log as error_log
from spanwise.serve.extension import ServedModel, Service

COMMAND = (sys.executable, "-P", "-m", "spanwise.label_studio.train_round")
STOP_SECONDS = 10.0  # that a training gets to end


@dataclass(frozen=True)
class LearningOptions:
    """``after``: start a training when this many annotations were changed; None: only on request."""

    data: Path | None = None
    after: int | None = None
    device: str = "auto"


class Learner:
    """Starts at most one training at a time. Its methods are called in the event loop of the service.

    A training that was interrupted by the end of the service continues when the service is started again.
    """

    def __init__(
        self, folder: LearningFolder, options: LearningOptions, log: Callable[[str], None], command: tuple[str, ...] = COMMAND
    ) -> None:
        self.folder, self.options, self.log, self.command = folder, options, log, command
        self.collection = Collection(folder.path)
        self._task: asyncio.Task[None] | None = None
        self._should_train_again = False
        self._is_stopping = False

    @property
    def version(self) -> str:
        """The name of the served model: that of the run folder, and the round."""
        served = self.folder.served_round
        name = self.folder.base_model.name
        return name if served is None else f"{name}-{served.number}"

    @property
    def is_training(self) -> bool:
        return self._task is not None and not self._task.done()

    @property
    def new_annotations(self) -> int:
        """The number of annotations that were changed since the last training was started."""
        rounds = self.folder.rounds
        return self.collection.changed_since(rounds[-1].read_request().changes if rounds else 0)

    @property
    def status(self) -> dict[str, Any]:
        results = [(round.number, round.read_result()) for round in self.folder.rounds if round.is_finished]
        return {
            "model_version": self.version,
            "annotations": self.collection.annotations,
            "new_annotations": self.new_annotations,
            "is_training": self.is_training,
            "rounds": [
                {"round": number, "metric": result.metric, "old": result.old, "new": result.new, "error": result.error,
                 "is_better": result.is_better}
                for number, result in results
            ],
        }  # fmt: skip

    async def add(self, change: Change, service: Service) -> bool:
        """Store a change; start a training if there are enough. Returns whether the change was new."""
        if not await asyncio.to_thread(self.collection.add, change):
            return False
        self._train_if_due(service)
        return True

    def train(self, service: Service) -> str:
        """Start a training, or another one after the current one if there are new annotations; describe what happens."""
        if not self.collection.annotations:
            raise RequestError(409, "no annotations were collected yet")
        if not self.is_training:
            self._start(self._new_round(), service)
            return "training started"
        self._should_train_again = self.new_annotations > 0
        return "training is already running" + ("; another one follows" if self._should_train_again else "")

    @asynccontextmanager
    async def running(self, service: Service) -> AsyncIterator[None]:
        """Continue an interrupted training; on exit, stop a running one, which can be continued."""
        rounds = self.folder.rounds
        if rounds and not rounds[-1].is_finished:
            self._start(rounds[-1], service)
        else:
            self._train_if_due(service)
        try:
            yield
        finally:
            self._is_stopping = True
            if self._task is not None:
                self._task.cancel()
                with suppress(asyncio.CancelledError):
                    await self._task

    def _train_if_due(self, service: Service) -> None:
        after = self.options.after
        is_due = self._should_train_again or (after is not None and self.new_annotations >= after)
        if is_due and not self.is_training and not self._is_stopping and self.collection.annotations:
            self._start(self._new_round(), service)

    def _new_round(self) -> Round:
        options, data = self.options, self.options.data
        return self.folder.add_round(
            RoundRequest(
                str(self.folder.model), self.collection.count, str(self.collection.path.absolute()),
                None if data is None else str(data.absolute()), options.device,
            )
        )  # fmt: skip

    def _start(self, round: Round, service: Service) -> None:
        self._should_train_again = False
        self.log(f"training round {round.number} on {counted_phrase(round.read_request().changes, 'changes of annotations')}")
        self._task = asyncio.create_task(self._train(round, service))
        self._task.add_done_callback(lambda task: None if task.cancelled() else self._train_if_due(service))

    async def _train(self, round: Round, service: Service) -> None:
        try:
            result = await self._run_process(round)
            if result.is_better:
                service.replace_model(ServedModel(await asyncio.to_thread(self._load, round.run), self.version))
            self.log(f"round {round.number}: {describe(result)}")
        except Exception as error:  # the service continues with its model
            error_log.error("round %d: %s", round.number, type(error).__name__)

    async def _run_process(self, round: Round) -> RoundResult:
        with round.log_file.open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                *self.command, str(round.path), stdin=asyncio.subprocess.PIPE, stdout=output, stderr=output,
                start_new_session=True,
            )  # fmt: skip
        try:
            code = await process.wait()
        except asyncio.CancelledError:
            process.terminate()
            try:
                await asyncio.wait_for(process.wait(), STOP_SECONDS)
            except TimeoutError:
                process.kill()
                await process.wait()
            raise
        if not round.is_finished:
            round.finish(RoundResult(error=f"the training {describe_exit(code)}; see {round.log_file}"))
        return round.read_result()

    def _load(self, folder: Path) -> BasePredictor:
        predictor = load(folder, self.options.device)
        predictor.predict("A warm-up sentence, so that the first request is not slow.")
        return predictor


def describe(result: RoundResult) -> str:
    """Describe the result of a round in one line.

    >>> describe(RoundResult(0.8, 0.81234))
    'F1 on dev 81.23, before 80.00: the new model is served'
    """
    if result.old is None or result.new is None:
        return f"no new model: {result.error}"
    decision = "the new model is served" if result.is_better else "the old model stays"
    return f"{result.metric} on dev {percent(result.new)}, before {percent(result.old)}: {decision}"
