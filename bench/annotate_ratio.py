"""Throughput of ``spanwise annotate`` on one core relative to the bare encoder, interleaved.

    python bench/annotate_ratio.py RUN --data GENIA [--rows 256] [--rounds 10] [--json FILE]

RUN is a run folder or a model exported to ONNX (also with --int8). Annotating is everything that a worker
process does with a shard: reading JSON lines, splitting, subwords, encoder, head, decoding, writing and
recording. The bare encoder gets the same batches, prepared in advance. Both use one thread and take turns
on the same rows; a ratio is the median of the quotients of CPU times, with quartiles. A worker has one
core, so the ratio of a machine is that of a worker as long as memory bandwidth suffices.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import torch

from spanwise.annotation.annotator import Annotator
from spanwise.annotation.job import JobFolder
from spanwise.annotation.shard_work import ShardWork
from spanwise.annotation.shards import plan_shards
from spanwise.annotation.sources import find_sources
from spanwise.batching.plan import plan
from spanwise.corpora.splits import open_splits
from spanwise.prediction.base import BasePredictor
from spanwise.prediction.load import load
from spanwise.prediction.onnx.predictor import OnnxPredictor
from spanwise.text.reading import sentences_from_text


def bare_encoder(predictor: BasePredictor, texts: list[str]) -> Callable[[], None]:
    """A function that runs only the encoder, on the batches in which the texts are annotated."""
    sentences = [sentence for text in texts for sentence in sentences_from_text(text, "t")]
    run: Callable[[Any], Any]
    if isinstance(predictor, OnnxPredictor):
        indexer: Any = predictor.encoder
        run = predictor.encoder.encode
    else:
        indexer = predictor.model.encoder  # type: ignore[attr-defined]
        run = lambda inputs: indexer.subwords(inputs["ids"], inputs["seen"])  # noqa: E731
    prepared = indexer.prepare(sentences)
    costs = np.array([indexer.cost(item) for item in prepared], np.int64)
    batches = [indexer.collate([prepared[index] for index in indices]) for indices in plan(costs, 64, None, None)]

    @torch.inference_mode()
    def encode() -> None:
        for batch in batches:
            run(batch)

    return encode


def cpu_seconds(function: Callable[[], object]) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    texts = [sentence.text for sentence in islice(open_splits(arguments.data)["dev"], arguments.rows)]
    predictor = load(arguments.run, "cpu")
    annotator, encode = Annotator(predictor), bare_encoder(predictor, texts)
    quotients, annotating, encoding, entities = [], [], [], 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "rows.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
        (shard,) = plan_shards(find_sources(str(folder / "rows.jsonl")), 1 << 30)
        for turn in range(arguments.rounds + 1):
            work = ShardWork(JobFolder(folder / f"out-{turn}", ".jsonl"), "jsonl")
            turns = {"annotate": lambda work=work: work.annotate(shard, annotator), "encode": encode}
            order = sorted(turns, reverse=bool(turn % 2))
            seconds = {part: cpu_seconds(turns[part]) for part in order}
            entities = work.annotate(shard, annotator).entities  # from its marker
            if turn:  # the first turn is a warm-up
                annotating.append(seconds["annotate"])
                encoding.append(seconds["encode"])
                quotients.append(seconds["encode"] / seconds["annotate"])
    low, middle, high = statistics.quantiles(quotients, n=4)
    result = {
        "rows": len(texts), "entities": entities, "ratio": middle, "quartiles": [low, high],
        "annotated_rows_per_core_second": len(texts) / statistics.median(annotating),
        "bare_rows_per_core_second": len(texts) / statistics.median(encoding),
    }  # fmt: skip
    print(json.dumps(result, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
