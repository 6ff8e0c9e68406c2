"""A predictor without a network, and worker processes that use it, for tests of annotation."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from spanwise.annotation.annotator import Annotator
from spanwise.annotation.engine import ModelSettings
from spanwise.annotation.pool import serve_shards
from spanwise.annotation.shard_work import ShardWork
from spanwise.core.types import Entity, Relation, Sentence
from spanwise.decoding.thresholds import Thresholds
from spanwise.prediction.base import BasePredictor
from spanwise.runtime.processes import prepare_process

PLACES, FAILING, DEADLY = ("Oslo", "Quito"), "boom", "poison"


class KeywordPredictor(BasePredictor):
    """Predicts place names, fails on one word and ends the process at another."""

    def __init__(self, *, finds_relations: bool = False) -> None:
        super().__init__()
        self.types, self.finds_relations = ("Place",), finds_relations
        self.relation_types = ("Near",) if finds_relations else ()
        self.sentences = 0

    def predict_chunk(
        self, sentences: Sequence[Sentence], context: Sequence[Sentence], *, threshold: Thresholds, batch_size: int
    ) -> list[Sentence]:  # fmt: skip
        self.sentences += len(sentences)
        return [self.predict_sentence(sentence) for sentence in sentences]

    def predict_sentence(self, sentence: Sentence) -> Sentence:
        if FAILING in sentence.words:
            raise RuntimeError("out of memory\nmore lines")
        if DEADLY in sentence.words:
            os.kill(os.getpid(), signal.SIGKILL)
        places = tuple(Entity("Place", ((n, n + 1),), 0.5) for n, word in enumerate(sentence.words) if word in PLACES)
        is_pair = self.finds_relations and len(places) == 2
        return replace(sentence, entities=places, relations=(Relation("Near", 0, 1, 0.4),) if is_pair else ())


def model_folder(folder: Path, name: str = "keyword") -> Path:
    """A folder that stands for a model; tests replace the function that loads it."""
    folder.mkdir()
    (folder / "config.yaml").touch()
    (folder / "labels.json").write_text(f'{{"entities": ["{name}"]}}', encoding="utf-8")
    return folder


def work_with_keywords(connection: Connection, work: ShardWork, settings: ModelSettings, threads: int) -> None:
    """A worker process with a ``KeywordPredictor``."""
    prepare_process(threads)
    serve_shards(connection, work, lambda: Annotator(KeywordPredictor(), **settings.annotator))


def rows_of(folder: Path) -> list[dict[str, Any]]:
    """All rows of the shards of an output folder, in the order of their names."""
    import json

    files = sorted(path for path in folder.rglob("*.jsonl") if "_errors" not in path.relative_to(folder).parts)
    return [json.loads(line) for path in files for line in path.read_text(encoding="utf-8").splitlines()]


def errors_of(folder: Path) -> list[dict[str, Any]]:
    return rows_of(folder / "_errors") if (folder / "_errors").is_dir() else []
