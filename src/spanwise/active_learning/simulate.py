"""Simulate annotation on a labelled corpus: the learning curve of a strategy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from random import Random
from typing import Any

from spanwise.active_learning.choosing import Criteria, Pool, choose
from spanwise.active_learning.units import SeenTexts
from spanwise.config.settings import MIN_EPOCHS, Config
from spanwise.core.errors import SpanwiseError, unknown_name
from spanwise.core.types import Corpus, Sentence
from spanwise.models.model import Model
from spanwise.prediction.predictor import Predictor
from spanwise.training.fit import fit


@dataclass(frozen=True)
class Round:
    """A model trained on the sentences that are annotated so far, and its F1 by split."""

    sentences: int
    words: int
    entities: int
    f1: dict[str, float]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Simulation:
    """Pretends that the training sentences of a corpus are not annotated, and annotates them in rounds.

    The first ``start`` sentences are drawn at random. In each round a model is trained from the
    beginning and chooses ``criteria.count`` more sentences. With ``steps``, each training makes about
    that many optimiser steps, but at least ``MIN_EPOCHS`` epochs; by default as many as ``train``.
    """

    corpus: Corpus
    config: Config
    criteria: Criteria
    start: int = 100
    steps: int | None = None
    device: str = "auto"

    def __post_init__(self) -> None:
        if self.config.head.get("task") == "typing":
            raise SpanwiseError("a simulation needs models that predict entities; --task typing and head.task=typing do not")
        if self.start < 1:
            raise SpanwiseError(f"start: expected at least 1 sentence to train the first model, found {self.start}")

    def run(self, limit: int | None = None) -> Iterator[Round]:
        """Yield a round for each size of the training set, up to ``limit`` sentences or all of them."""
        pool = list(self.corpus["train"])
        limit = min(len(pool), limit or len(pool))
        annotated = self.draw_first(limit)
        while True:
            model = self.fit([pool[index] for index in annotated])
            yield self.score(model, [pool[index] for index in annotated])
            if len(annotated) >= limit:
                return
            annotated += self._choose(model, pool, annotated, min(self.criteria.count, limit - len(annotated)))

    def run_whole(self) -> Round:
        """Train on all sentences."""
        sentences = self.corpus["train"]
        return self.score(self.fit(sentences), sentences)

    def draw_first(self, limit: int | None = None) -> list[int]:
        """The indices of the first sentences, at most ``limit``, at least one of them with an entity."""
        sentences, random = self.corpus["train"], Random(self.criteria.seed)
        types = {entity.type for sentence in sentences for entity in sentence.entities}
        for type in self.criteria.preferred.keys() - types:
            raise unknown_name("type", type, types)
        if not types:
            raise SpanwiseError("a simulation needs annotated training sentences; there are no entities")
        count = min(self.start, len(sentences), limit or len(sentences))
        while True:
            indices = random.sample(range(len(sentences)), count)
            if any(sentences[index].entities for index in indices):
                return indices

    def fit(self, sentences: Sequence[Sentence]) -> Model:
        """Train a model from the beginning."""
        corpus, config = Corpus({"train": tuple(sentences)}, self.corpus.name), self.config
        if self.steps is not None:
            batch_size = config.training.batch_size or config.training.resolve(len(sentences)).batch_size or 1
            epochs = max(MIN_EPOCHS, round(self.steps * batch_size / len(sentences)))
            config = config.model_copy(update={"training": config.training.model_copy(update={"epochs": epochs})})
        return fit(corpus, config, device=self.device)

    def score(self, model: Model, sentences: Sequence[Sentence]) -> Round:
        """Score a model that was trained on these sentences, on dev and test."""
        predictor = Predictor(model, self.device)
        splits = [split for split in ("dev", "test") if split in self.corpus]
        f1 = {
            split: round(float(model.task.score_dev(self.corpus[split], predictor.stream(self.corpus[split]))["f1"]), 5)
            for split in splits
        }
        words, entities = (sum(map(len, parts)) for parts in zip(*((s.words, s.entities) for s in sentences), strict=True))
        return Round(len(sentences), words, entities, f1)

    def _choose(self, model: Model, pool: Sequence[Sentence], annotated: Sequence[int], count: int) -> list[int]:
        """The indices of the sentences that are annotated next."""
        done = set(annotated)
        remaining = [index for index in range(len(pool)) if index not in done]
        # The model of an early round may not know all types.
        preferred = {type: weight for type, weight in self.criteria.preferred.items() if type in model.labels.entities}
        criteria = replace(self.criteria, count=count, seed=self.criteria.seed + len(annotated), preferred=preferred)
        seen = Pool(SeenTexts(pool[index] for index in annotated))
        chosen = choose(Predictor(model, self.device), (pool[index] for index in remaining), criteria, seen)
        indices = [remaining[candidate.number] for candidate in chosen]
        # Repeated sentences, which are never chosen, come last.
        return indices or remaining[:count]
