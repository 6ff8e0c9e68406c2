"""Requests that wait are predicted together by the one thread that owns the model.

It works in turns: whoever waits gets a share of each, the rest of a long text has its next share in the next turn. So a lone
request never waits for others, many cost little more than one, a long text does not hold up short ones, and one that is given
up is soon forgotten. What a request gets does not depend on what it is batched with.
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
from spanwise.decoding.thresholds import LOWEST, Threshold
from spanwise.inputs.texts import to_sentences
from spanwise.prediction.base import BasePredictor
from spanwise.prediction.streaming import REACH
from spanwise.serve.limits import Limits
from spanwise.serve.metrics import Metrics
from spanwise.serve.refusals import RefusedError, as_refusal

TURN = 4096  # words that are predicted together
SHARE = 1024  # words that one request has of them

Predictions: TypeAlias = list[list[Sentence]]  # for each text of a request, its sentences


@dataclass(frozen=True)
class Question:
    """What one request asks."""

    texts: Sequence[str | Sequence[str]]  # each raw, or the words of a sentence
    threshold: Threshold = 0.0
    overlap: str | None = None

    @property
    def characters(self) -> int:
        return sum(len(text) if isinstance(text, str) else sum(map(len, text)) for text in self.texts)

    @property
    def bar(self) -> Threshold:
        """The threshold, but none so low that a model would propose all it can think of, which takes forever."""
        if isinstance(self.threshold, Mapping):
            return {type: _bar(bar) for type, bar in self.threshold.items()}
        return _bar(self.threshold)

    @property
    def manner(self) -> tuple[object, ...]:
        """Questions that agree in it can be predicted together."""
        return tuple(sorted(self.bar.items())) if isinstance(self.bar, Mapping) else self.bar, self.overlap


def _bar(threshold: float) -> float:
    return max(threshold, LOWEST) if threshold > 0 else 0.0


@dataclass(eq=False)
class _Job:
    """A question on its way. ``begin`` and what follows run in the model's thread."""

    number: int
    question: Question
    answer: asyncio.Future[Predictions]
    sentences: list[Sentence] = field(default_factory=list)  # of all texts
    lengths: list[int] = field(default_factory=list)  # how many of each text
    found: list[Sentence] = field(default_factory=list)
    share: list[Sentence] = field(default_factory=list)  # of the present turn

    def begin(self, longest: int) -> None:
        """Split the texts. They have names of their own, lest one be taken for another's context."""
        for place, text in enumerate(self.question.texts):
            own = [sentence for sentence in to_sentences(text, f"{self.number}-{place}") if sentence.words]
            words = max((len(sentence.words) for sentence in own), default=0)
            if words > longest:
                raise RefusedError(
                    422, f"a sentence has {words:,} words, at most {longest:,} are allowed (a line end ends one)"
                )
            self.sentences += own
            self.lengths.append(len(own))

    def take(self) -> int:
        """Choose the next sentences, of some words together; how many words."""
        words, self.share = 0, []
        for sentence in self.sentences[len(self.found) :]:
            words += len(sentence.words)
            if self.share and words > SHARE:
                break
            self.share.append(sentence)
        return words

    @property
    def around(self) -> list[Sentence]:
        """Sentences before and behind those of the turn, for a model that reads these too."""
        first = len(self.found)
        last = first + len(self.share)
        return [*self.sentences[max(0, first - REACH) : first], *self.sentences[last : last + REACH]]

    @property
    def is_over(self) -> bool:
        return len(self.found) == len(self.sentences)

    @property
    def result(self) -> Predictions:
        found = iter(self.found)
        return [[next(found) for _ in range(length)] for length in self.lengths]


class Batcher:
    """Answers questions while it is ``running``."""

    def __init__(self, predictor: BasePredictor, limits: Limits, metrics: Metrics) -> None:
        self.predictor, self.limits, self.metrics = predictor, limits, metrics
        self._arriving: asyncio.Queue[_Job] = asyncio.Queue()
        self._waiting: deque[_Job] = deque()  # the thread's, while it works
        self._numbers = count()

    async def answer(self, question: Question) -> Predictions:
        """What is found in each text, or ``RefusedError``."""
        job = _Job(next(self._numbers), question, asyncio.get_running_loop().create_future())
        self._arriving.put_nowait(job)
        try:
            return await asyncio.wait_for(job.answer, self.limits.seconds)
        except TimeoutError:  # the job is cancelled by now
            raise RefusedError(504, f"not answered within {self.limits.seconds:g} s") from None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """While it lasts, questions are answered; a turn that has begun is ended."""
        with ThreadPoolExecutor(1, "model") as thread:
            work = asyncio.create_task(self._work(thread))
            try:
                yield
            finally:
                work.cancel()

    async def _work(self, thread: ThreadPoolExecutor) -> None:
        loop = asyncio.get_running_loop()
        while True:
            if not self._waiting:
                self._waiting.append(await self._arriving.get())
            while not self._arriving.empty():
                self._waiting.append(self._arriving.get_nowait())
            for job, outcome in (await loop.run_in_executor(thread, self._turn)).items():
                if job.answer.done():
                    continue
                if isinstance(outcome, RefusedError):
                    job.answer.set_exception(outcome)
                else:
                    job.answer.set_result(outcome)

    def _turn(self) -> dict[_Job, Predictions | RefusedError]:
        """Predict for those who wait and are first; what became of those who need wait no longer. It never raises."""
        outcomes: dict[_Job, Predictions | RefusedError] = {}
        alike: dict[tuple[object, ...], list[_Job]] = {}
        words = 0
        while self._waiting and words < TURN:
            job = self._waiting.popleft()
            if job.answer.done():  # it ran out of time, or the client left
                continue
            try:
                if not job.sentences:
                    job.begin(self.limits.words)
                words += job.take()
                alike.setdefault(job.question.manner, []).append(job)
            except Exception as error:
                outcomes[job] = as_refusal(error)
        jobs = [job for several in alike.values() for job in several]
        self.metrics.batch.observe(len(jobs))
        for several in alike.values():
            outcomes |= self._predict(several)
        for job in jobs:
            if job.is_over and job not in outcomes:
                outcomes[job] = job.result
        self._waiting.extend(job for job in jobs if job not in outcomes)
        return outcomes

    def _predict(self, jobs: Sequence[_Job]) -> dict[_Job, RefusedError]:
        """Add to what the jobs have found; those that failed."""
        first = jobs[0].question
        sentences = [sentence for job in jobs for sentence in job.share]
        around = [sentence for job in jobs for sentence in job.around]
        try:
            found = list(self.predictor.stream(sentences, threshold=first.bar, overlap=first.overlap, context=around))
        except Exception as error:
            if len(jobs) == 1:
                return {jobs[0]: as_refusal(error)}
            return {job: refusal for one in jobs for job, refusal in self._predict([one]).items()}  # each has its own fate
        self.metrics.sentences.inc(len(sentences))
        self.metrics.words.inc(sum(len(sentence.words) for sentence in sentences))
        for job in jobs:
            job.found += found[: len(job.share)]
            del found[: len(job.share)]
        return {}
