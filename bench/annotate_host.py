"""CPU time of ``spanwise annotate`` around a GPU, with a network that costs nothing.

    python bench/annotate_host.py RUN --data GENIA [--rows 8000] [--json FILE]

A worker reads JSON lines, splits, tokenises, decodes and writes; another process receives its batches and
answers at once, with three entities per sentence. The result is the CPU time per row of both processes,
the best of some rounds, and with ``--profile`` the functions that take it in the worker.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import multiprocessing
import pstats
import tempfile
import threading
import time
from itertools import islice
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from typing import Any

import torch

from spanwise.annotation.annotator import Annotator
from spanwise.annotation.job import JobFolder
from spanwise.annotation.model_process import Encoded, ModelServer
from spanwise.annotation.remote import RemotePredictor
from spanwise.annotation.scoring import Request, to_arrays
from spanwise.annotation.shard_work import ShardWork
from spanwise.annotation.shards import plan_shards
from spanwise.annotation.sources import find_sources
from spanwise.corpora.splits import open_splits
from spanwise.encoders.base import TokenStates
from spanwise.heads.base import ScoredSpans
from spanwise.models.model import Model
from spanwise.prediction.load import load_torch

ENTITIES = 3  # per sentence
KEY = b"benchmark"


class FreeServer(ModelServer):
    """Answers without a network: entities of one word, as long as the sentence has words."""

    def _encode(self, request: Request) -> Encoded:
        batch = request.batch(self.device)
        mask = batch.inputs["mask"]
        return Encoded(TokenStates(torch.empty(0), torch.empty(0), mask), batch.targets, None)

    def _score(self, request: Request, encoded: Encoded) -> ScoredSpans:
        mask = encoded.states.mask
        last = (mask.sum(1) - 1).clamp(min=0).repeat_interleave(ENTITIES)
        number = torch.arange(ENTITIES).repeat(len(mask))
        start, log_odds = (2 * number).minimum(last), torch.rand(len(last))
        label = number % len(self.model.labels.entities)
        sentence = torch.arange(len(mask)).repeat_interleave(ENTITIES)
        return to_arrays(ScoredSpans(sentence, start, start + 1, label, log_odds.sigmoid(), log_odds=log_odds))


def serve(run: Path, address: str, pipe: Connection) -> None:
    """Answer batches, and send the CPU time for each message of the parent."""
    torch.set_num_threads(1)
    server = FreeServer(load_torch(run, "cpu", only_predicts=True))
    listener = Listener(address, authkey=KEY)
    threading.Thread(target=server.serve, args=(listener,), daemon=True).start()
    while True:
        pipe.send(time.process_time())
        pipe.recv()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=8000)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    context = multiprocessing.get_context("spawn")
    pipe, other_end = context.Pipe()
    worker_seconds, server_seconds = [], []
    with tempfile.TemporaryDirectory() as name:
        folder, source, address = Path(name), Path(name, "rows.jsonl"), str(Path(name, "model"))
        process = context.Process(target=serve, args=(arguments.run, address, other_end), daemon=True)
        process.start()
        sentences = islice(open_splits(arguments.data)["train"], arguments.rows)
        source.write_text("".join(json.dumps({"id": s.id, "text": s.text}) + "\n" for s in sentences), encoding="utf-8")
        (shard,) = plan_shards(find_sources(str(source)), 1 << 40)
        server_start = pipe.recv()
        model = Model.load(arguments.run, maps_weights=True, only_predicts=True)
        annotator = Annotator(RemotePredictor(model, address, KEY))
        for turn in range(arguments.rounds):
            work = ShardWork(JobFolder(folder / f"out-{turn}", ".jsonl"), "jsonl")
            start = time.process_time()
            rows = work.annotate(shard, annotator).rows
            worker_seconds.append(time.process_time() - start)
            pipe.send(None)
            server_end = pipe.recv()
            server_seconds.append(server_end - server_start)
            server_start = server_end
        if arguments.profile:
            profiler = cProfile.Profile()
            profiler.runcall(ShardWork(JobFolder(folder / "profile", ".jsonl"), "jsonl").annotate, shard, annotator)
            pstats.Stats(profiler).sort_stats("tottime").print_stats(30)
        process.kill()
    result: dict[str, Any] = {
        "rows": rows, "worker_microseconds_per_row": 1e6 * min(worker_seconds) / rows,
        "model_process_microseconds_per_row": 1e6 * min(server_seconds) / rows,
    }  # fmt: skip
    print(json.dumps(result, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
