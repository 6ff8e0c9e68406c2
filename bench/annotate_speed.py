"""Speed of ``spanwise annotate`` in steady state, end to end, and how busy the GPU is.

    python bench/annotate_speed.py RUN --data GENIA [--repeat 20] [--workers N] [--device auto] [--json FILE]
    python bench/annotate_speed.py RUN --data GENIA --device cpu --workers N --block 64 --seconds 8

The sentences of a corpus, repeated, are written as JSON lines and annotated into JSON lines. The rate is
that of the rows between 20 and 90 % of the input: loading is at the start, and workers run out of shards
at the end. On a GPU, the time of all kernels for a batch is measured with the profiler, and the busy
share is kernel seconds per row times rows per second.

With ``--block``, every shard has the same rows, spread over the corpus, so that a few seconds with one
worker and with many compare; each worker has one thread. The rate then counts from the moment when as
many shards are finished as there are workers. ``--seconds`` ends the annotation early.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from spanwise.annotation.run import Listener, annotate
from spanwise.corpora.splits import open_splits


class Stop(BaseException):
    """Ends an annotation. Not an ``Exception``, which would be the failure of a shard."""


class Recorder(Listener):
    """Records the time at which rows were finished; stops the annotation after ``seconds``."""

    def __init__(self, seconds: float | None = None) -> None:
        self.rows = self.words = 0
        self.times: list[tuple[float, int, int]] = []
        self.seconds = seconds

    def advance(self, rows: int, words: int) -> None:
        self.rows += rows
        self.words += words
        self.times.append((time.perf_counter(), self.rows, self.words))
        if self.seconds is not None and self.times[-1][0] - self.times[0][0] > self.seconds:
            raise Stop

    def note(self, text: str) -> None:
        print(text, file=sys.stderr)

    def steady(self) -> dict[str, float]:
        """Rows and words per second between 20 and 90 % of the rows."""
        middle = [item for item in self.times if 0.2 * self.rows <= item[1] <= 0.9 * self.rows]
        return self._rate(middle[0], middle[-1])

    def after(self, reports: int) -> dict[str, float]:
        """Rows and words per second after this many reports."""
        return self._rate(self.times[reports - 1], self.times[-1])

    @staticmethod
    def _rate(first: tuple[float, int, int], last: tuple[float, int, int]) -> dict[str, float]:
        seconds = max(last[0] - first[0], 1e-9)
        return {"rows_per_second": (last[1] - first[1]) / seconds, "words_per_second": (last[2] - first[2]) / seconds}


def write_input(data: Path, folder: Path, repeat: int, files: int, block: int | None) -> tuple[int, int]:
    """Write the sentences of all splits, or ``block`` of them, as JSON lines; return the numbers of rows and of their bytes."""
    lines = [
        json.dumps({"id": sentence.id, "text": sentence.text}) + "\n"
        for split in open_splits(data).values()
        for sentence in split
    ]
    if block is not None:
        lines = lines[:: max(1, len(lines) // block)][:block]
    for number in range(files):
        with (folder / f"rows-{number:03}.jsonl").open("w", encoding="utf-8") as file:
            for _ in range(repeat // files + (number < repeat % files)):
                file.writelines(lines)
    return len(lines) * repeat, len("".join(lines).encode())


def kernel_seconds(run: Path, data: Path, precision: str, count: int = 4096) -> dict[str, float]:
    """Seconds of GPU kernels per sentence, in the batches that workers send, and seconds of the host to launch them."""
    import numpy as np
    import torch
    from torch.profiler import ProfilerActivity, profile

    from spanwise.annotation.model_process import ModelServer
    from spanwise.annotation.remote import MAX_SENTENCES, PADDING, SUBWORDS
    from spanwise.annotation.scoring import Request
    from spanwise.batching.batches import make_batch
    from spanwise.batching.plan import plan
    from spanwise.prediction.load import load_torch

    predictor = load_torch(run, "cuda")
    model, server = predictor.model, ModelServer(predictor, precision)
    sentences = list(islice((sentence for split in open_splits(data).values() for sentence in split), count))
    prepared = model.encoder.prepare(sentences)
    costs = np.array([model.encoder.cost(item) for item in prepared], np.int64)
    batches = plan(costs, MAX_SENTENCES, SUBWORDS, None, padding=PADDING)
    requests = [
        Request.of(number, make_batch(model.encoder, model.head, sentences, prepared, indices), 0.0)
        for number, indices in enumerate(batches)
    ]

    def score_all() -> float:
        start = time.perf_counter()
        for request in requests:
            server.score(request)
        torch.cuda.synchronize()
        return time.perf_counter() - start

    score_all()
    seconds = min(score_all() for _ in range(3))
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        score_all()
    kernels = sum(event.self_device_time_total for event in profiler.key_averages()) / 1e6
    return {
        "batches": len(batches), "kernel_seconds_per_row": kernels / len(sentences),
        "model_process_rows_per_second": len(sentences) / seconds,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--repeat", type=int, default=20, help="how many times each sentence is annotated")
    parser.add_argument("--files", type=int, default=4)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision")
    parser.add_argument("--block", type=int, help="rows of every shard, the same in all")
    parser.add_argument("--seconds", type=float, help="stop after this time")
    parser.add_argument("--shard-size", type=int, help="bytes; smaller shards keep all workers busy until the end")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    result: dict[str, Any] = {"workers": arguments.workers, "precision": arguments.precision}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "input")
        folder.mkdir()
        rows, size = write_input(arguments.data, folder, arguments.repeat, arguments.files, arguments.block)
        result["rows"], recorder = rows, Recorder(arguments.seconds)
        with suppress(Stop):
            summary = annotate(
                arguments.run, folder, Path(name, "output"), workers=arguments.workers, device=arguments.device,
                precision=arguments.precision, shard_size=size if arguments.block else arguments.shard_size, listener=recorder,
                threads=arguments.workers if arguments.block else None,
            )  # fmt: skip
            result["summary"] = summary.to_json()
        result |= recorder.after(arguments.workers or 1) if arguments.block else recorder.steady()
    save(result, arguments.json)
    if arguments.device != "cpu":
        import torch

        if torch.cuda.is_available():
            result["gpu"] = torch.cuda.get_device_name()
            result |= kernel_seconds(arguments.run, arguments.data, arguments.precision or "half")
            result["busy_share"] = result["kernel_seconds_per_row"] * result["rows_per_second"]
            save(result, arguments.json)
    print(json.dumps(result, indent=1))


def save(result: dict[str, Any], path: Path | None) -> None:
    if path is not None:
        path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
