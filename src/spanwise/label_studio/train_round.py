"""Train one round in its own process: ``python -m spanwise.label_studio.train_round FOLDER``.

The process ends when the service closes its standard input, also if the service is killed. A round that
was interrupted continues from its last checkpoint.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Corpus
from spanwise.corpora.splits import read_corpus
from spanwise.files.writing import atomic_output
from spanwise.formats import write
from spanwise.label_studio.round_data import round_corpus
from spanwise.label_studio.rounds import Round, RoundResult
from spanwise.label_studio.service_end import end_with_service
from spanwise.models.model import Model
from spanwise.runs.folder import RunFolder
from spanwise.runs.records import TrainingRecord
from spanwise.training.run import RunOptions, train_config
from spanwise.training.scoring import score_splits


def train_round(round: Round) -> RoundResult:
    """Train a model on the data of a round and compare it with the served one on dev."""
    request = round.read_request()
    if not round.data.is_dir():
        corpus = round_corpus(request, print)
        with atomic_output(round.data, is_folder=True) as folder:
            for split in corpus:
                write(corpus[split], folder / f"{split}.jsonl", "jsonl")
    corpus = read_corpus(round.data)
    served, new = RunFolder(request.model), RunFolder(round.run)
    if not new.is_finished:
        is_run = served.report_file.is_file()
        config = TrainingRecord.read_report(served.report_file).config if is_run else served.read_config()
        options = RunOptions(
            device=request.device, resume=new.is_started, init=served.path, test=False, log=print,
            # Without base data, some types may not be annotated; the served model teaches them.
            keep_types=request.data is None,
        )  # fmt: skip
        train_config(corpus, round.run, config, options)
    return compare(Model.load(served.path), Model.load(new.path), corpus)


def compare(old: Model, new: Model, corpus: Corpus) -> RoundResult:
    """Score both models on dev: by entities and relations if both models find relations, otherwise by entities."""
    scores: list[dict[str, Any]] = [score_splits(model, corpus, ("dev",))["dev"] for model in (old, new)]
    if all(model.head.finds_relations for model in (old, new)):
        (metric, old_score), (_, new_score) = (new.task.selection_metric(row) for row in scores)
        return RoundResult(old_score, new_score, metric)
    old_score, new_score = (new.task.metric_value(row) for row in scores)
    return RoundResult(old_score, new_score, new.task.metric)


def run_round(round: Round) -> None:
    """Train a round and write its result, also if it fails."""
    try:
        result = train_round(round)
    except SpanwiseError as error:
        print(error)
        result = RoundResult(error=str(error))
    round.finish(result)


if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(10)  # predictions come first
    end_with_service()
    run_round(Round(Path(sys.argv[1])))
