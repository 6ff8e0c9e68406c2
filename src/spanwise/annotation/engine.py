"""The interface of engines, which annotate shards in some number of processes and report events."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from spanwise.annotation.annotator import Annotator, describe
from spanwise.annotation.job import ShardResult
from spanwise.annotation.shard_work import Report, ShardWork
from spanwise.annotation.shards import Shard
from spanwise.core.errors import FormatError, SpanwiseError
from spanwise.prediction.base import BasePredictor
from spanwise.prediction.load import load


@dataclass(frozen=True, slots=True)
class Progress:
    """Rows and words that were annotated since the last report."""

    rows: int
    words: int


@dataclass(frozen=True, slots=True)
class ShardDone:
    shard: Shard
    result: ShardResult


@dataclass(frozen=True, slots=True)
class ShardFailed:
    """A shard that cannot be annotated, such as a damaged file. The next command tries it again."""

    shard: Shard
    reason: str


@dataclass(frozen=True, slots=True)
class Note:
    """A message to the user, such as the death of a worker."""

    text: str


Event: TypeAlias = Progress | ShardDone | ShardFailed | Note
Emit: TypeAlias = Callable[[Event], None]


@dataclass(frozen=True)
class ModelSettings:
    """How workers load the model. ``precision`` is float32 or half."""

    model: str
    device: str = "cpu"
    precision: str = "float32"
    annotator: dict[str, Any] = field(default_factory=dict)  # options of ``Annotator``


def load_predictor(settings: ModelSettings) -> BasePredictor:
    """Load the model of a worker that runs the network itself; processes on a CPU share its weights."""
    predictor = load(settings.model, settings.device, maps_weights=settings.device == "cpu")
    if settings.precision == "half":
        from spanwise.annotation.precision import use_half_precision

        use_half_precision(predictor)
    return predictor


class Engine(ABC):
    """Annotates shards in any order; each gives one ``ShardDone`` or ``ShardFailed``."""

    def __init__(self, work: ShardWork, settings: ModelSettings) -> None:
        self.work, self.settings = work, settings

    @abstractmethod
    def run(self, shards: Sequence[Shard], emit: Emit) -> None:
        """Annotate the shards, and call ``emit`` with everything that happens."""


def annotate_shard(work: ShardWork, shard: Shard, annotator: Annotator, report: Report) -> ShardDone | ShardFailed:
    """Annotate a shard; a damaged input fails alone, and a full disk or unusable model ends the job."""
    try:
        return ShardDone(shard, work.annotate(shard, annotator, report))
    except FormatError as error:
        return ShardFailed(shard, str(error))
    except (SpanwiseError, BrokenPipeError):
        raise
    except Exception as error:
        return ShardFailed(shard, f"{shard.source.path}: {describe(error)}")


class SingleProcess(Engine):
    """Engine that annotates in this process."""

    def run(self, shards: Sequence[Shard], emit: Emit) -> None:
        annotator = Annotator(load_predictor(self.settings), **self.settings.annotator)
        for shard in shards:
            emit(annotate_shard(self.work, shard, annotator, lambda rows, words: emit(Progress(rows, words))))
