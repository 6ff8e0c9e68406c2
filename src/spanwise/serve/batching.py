"""Batch concurrent requests on the one thread that owns the model.

The thread works in turns. Each waiting request gets a share of a turn; the rest of a long text
waits for the next turn. A single request therefore never waits for others, many requests cost
little more than one, a long text does not delay short ones, and a cancelled request is soon
dropped. The result of a request does not depend on its batch.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import TypeAlias

from spanwise.core.types import Sentence
from spanwise.decoding.thresholds import MIN_THRESHOLD, MinScore, Thresholds
from spanwise.inputs.texts import to_sentences
from spanwise.prediction.base import BasePredictor
from spanwise.prediction.streaming import CONTEXT
from spanwise.serve.errors import RequestError, to_internal_error, to_request_error
from spanwise.serve.extension import ServedModel
from spanwise.serve.limits import Limits
from spanwise.serve.metrics import Metrics
from spanwise.serve.workers import SMALL, Workers

WORDS_PER_TURN = 4096
WORDS_PER_SHARE = 1024  # of one request in a turn

Results: TypeAlias = list[list[Sentence]]  # the predicted sentences of each text


@dataclass(frozen=True)
class Query:
    """Texts to predict and the options of the prediction."""

    texts: Sequence[str | Sequence[str]]  # raw texts, or the words of a sentence
    threshold: MinScore = 0.0
    overlap: str | None = None

    @property
    def characters(self) -> int:
        return sum(len(text) if isinstance(text, str) else sum(map(len, text)) for text in self.texts)

    def bounded_threshold(self, predictor: BasePredictor) -> Thresholds:
        """The thresholds of a model, at least its lowest: below it, models propose almost all spans and relations."""
        given = predictor.split_threshold(self.threshold)
        return Thresholds(_bounded(given.entities, predictor.min_threshold), _bounded(given.relations, MIN_THRESHOLD))

    @property
    def options(self) -> tuple[object, ...]:
        """Queries with equal options can share a batch."""
        threshold = self.threshold
        return tuple(sorted(threshold.items())) if isinstance(threshold, Mapping) else threshold, self.overlap


def _bounded(threshold: MinScore, lowest: float) -> MinScore:
    """Thresholds of at least ``lowest``; 0, the default, stays."""
    if isinstance(threshold, Mapping):
        return {type: max(value, lowest) for type, value in threshold.items()}
    return max(threshold, lowest) if threshold else 0.0


@dataclass(eq=False)
class _Job:
    """A query in progress. Methods run in the model's thread; long texts are split in another one before."""

    id: int
    query: Query
    model: ServedModel
    future: asyncio.Future[Results]
    sentences: list[Sentence] = field(default_factory=list)  # of all texts
    counts: list[int] = field(default_factory=list)  # sentences per text
    predicted: list[Sentence] = field(default_factory=list)
    share: list[Sentence] = field(default_factory=list)  # of the current turn
    is_split: bool = False

    def split_texts(self, limits: Limits) -> None:
        """Split the texts. Document names are unique, so that no text serves as context of another."""
        for index, text in enumerate(self.query.texts):
            sentences = [sentence for sentence in to_sentences(text, f"{self.id}-{index}") if sentence.words]
            words = max((len(sentence.words) for sentence in sentences), default=0)
            if words > limits.max_words:
                raise RequestError(
                    422, f"a sentence has {words:,} words; the limit is {limits.max_words:,} (a line end ends a sentence)"
                )
            self.sentences += sentences
            if len(self.sentences) > limits.max_sentences:
                message = f"the text has {len(self.sentences):,} sentences; the limit is {limits.max_sentences:,}"
                raise RequestError(413, message)
            self.counts.append(len(sentences))
        self.is_split = True

    def take_share(self) -> int:
        """Select the next sentences; return their number of words."""
        words, self.share = 0, []
        for sentence in self.sentences[len(self.predicted) :]:
            words += len(sentence.words)
            if self.share and words > WORDS_PER_SHARE:
                break
            self.share.append(sentence)
        return words

    @property
    def context(self) -> list[Sentence]:
        """Sentences before and after the share."""
        start = len(self.predicted)
        end = start + len(self.share)
        return [*self.sentences[max(0, start - CONTEXT) : start], *self.sentences[end : end + CONTEXT]]

    @property
    def is_finished(self) -> bool:
        return len(self.predicted) == len(self.sentences)

    @property
    def results(self) -> Results:
        predicted = iter(self.predicted)
        return [[next(predicted) for _ in range(count)] for count in self.counts]


class Batcher:
    """Predicts queries in batches within ``running()``."""

    def __init__(self, limits: Limits, metrics: Metrics, workers: Workers) -> None:
        self.limits, self.metrics, self.workers = limits, metrics, workers
        self._arriving: asyncio.Queue[_Job] = asyncio.Queue()
        self._waiting: deque[_Job] = deque()  # used by the model's thread during a turn
        self._ids = count()

    async def predict(self, query: Query, model: ServedModel) -> Results:
        """Predict the texts of a query; raise ``RequestError`` if this fails."""
        job = _Job(next(self._ids), query, model, asyncio.get_running_loop().create_future())
        if query.characters > SMALL:
            await self.workers.call(query.characters, job.split_texts, self.limits)
        self._arriving.put_nowait(job)
        return await job.future  # a caller that stops waiting cancels it

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the model's thread; on exit, finish the current turn."""
        with ThreadPoolExecutor(1, "model") as thread:
            task = asyncio.create_task(self._run(thread))
            try:
                yield
            finally:
                task.cancel()

    async def _run(self, thread: ThreadPoolExecutor) -> None:
        loop = asyncio.get_running_loop()
        while True:
            if not self._waiting:
                self._waiting.append(await self._arriving.get())
            while not self._arriving.empty():
                self._waiting.append(self._arriving.get_nowait())
            for job, outcome in (await loop.run_in_executor(thread, self._turn)).items():
                if job.future.done():
                    continue
                if isinstance(outcome, RequestError):
                    job.future.set_exception(outcome)
                else:
                    job.future.set_result(outcome)

    def _turn(self) -> dict[_Job, Results | RequestError]:
        """Predict a share of the waiting jobs; return the outcomes of those that end. Never raises."""
        outcomes: dict[_Job, Results | RequestError] = {}
        by_options: dict[tuple[object, ...], list[_Job]] = {}
        words = 0
        while self._waiting and words < WORDS_PER_TURN:
            job = self._waiting.popleft()
            if job.future.done():  # timed out, or the client disconnected
                continue
            try:
                if not job.is_split:
                    job.split_texts(self.limits)
                words += job.take_share()
                by_options.setdefault((job.model, *job.query.options), []).append(job)
            except Exception as error:
                outcomes[job] = to_request_error(error)
        jobs = [job for batch in by_options.values() for job in batch]
        self.metrics.batch.observe(len(jobs))
        for batch in by_options.values():
            outcomes |= self._predict(batch)
        for job in jobs:
            if job.is_finished and job not in outcomes:
                outcomes[job] = job.results
        self._waiting.extend(job for job in jobs if job not in outcomes)
        return outcomes

    def _predict(self, jobs: Sequence[_Job]) -> dict[_Job, RequestError]:
        """Predict the shares of jobs with equal models and options; return the errors of failed jobs."""
        query, predictor = jobs[0].query, jobs[0].model.predictor
        sentences = [sentence for job in jobs for sentence in job.share]
        context = [sentence for job in jobs for sentence in job.context]
        try:
            threshold = query.bounded_threshold(predictor)
            stream = predictor.stream(sentences, threshold=threshold, overlap=query.overlap, context=context)
        except Exception as error:  # caused by the options, which all jobs share
            return dict.fromkeys(jobs, to_request_error(error))
        try:
            predicted = list(stream)
        except Exception as error:
            if len(jobs) == 1:
                return {jobs[0]: to_internal_error(error)}
            # One job made the batch fail; predict each separately to find it.
            return {failed: problem for job in jobs for failed, problem in self._predict([job]).items()}
        self.metrics.sentences.inc(len(sentences))
        self.metrics.words.inc(sum(len(sentence.words) for sentence in sentences))
        for job in jobs:
            job.predicted += predicted[: len(job.share)]
            del predicted[: len(job.share)]
        return {}
