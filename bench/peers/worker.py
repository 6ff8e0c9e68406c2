"""Worker process of a peer: reads commands as lines of JSON and writes one line of JSON for each.

    python bench/peers/worker.py hf_tokens

The first line is the ``Job``. The response, after loading, is ``ready``, or ``missing`` if a module is not
installed. The commands are:

    {"do": "train"}                        train one epoch of the peer's loop, which waits after each; returns seconds
    {"do": "predict", "from": 0, "to": 64} predict sentences of test; returns seconds and the number of entities
    {"do": "fit", "epochs": 10}            train a new model and predict test; returns the predictions, the seconds of
                                           training and prediction, and the peak memory of the process in MiB

Output of libraries goes to standard error.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, TextIO

from job import Job, Peer, read

CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}


def peak_memory() -> float:
    """Return the peak memory of this process in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class Worker:
    def __init__(self, name: str, commands: Iterator[dict[str, Any]], answers: TextIO) -> None:
        self.name, self.commands, self.answers = name, commands, answers
        self.pending: dict[str, Any] | None = None
        self.start_time = 0.0

    def answer(self, **values: Any) -> None:
        print(json.dumps(values), file=self.answers, flush=True)

    def run(self) -> None:
        self.job = Job(**next(self.commands))
        self.clock = CLOCKS[self.job.clock]
        try:
            make = import_module(self.name).Peer
        except ModuleNotFoundError as error:
            self.answer(missing=f"{error}")
            return
        train, test = read(self.job.train), [example.words for example in read(self.job.test)]
        peer: Peer = make(self.job, train)
        self.answer(ready=peer.version)
        self.pending = next(self.commands, None)
        while self.pending:
            command, self.pending = self.pending, None
            self.start_time = self.clock()
            if command["do"] == "train":
                peer.train(self.job.epochs, self._after_epoch)
                if self.pending and self.pending["do"] == "train":
                    raise RuntimeError("training ended too early")
                continue
            if command["do"] == "predict":
                predictions = peer.predict(test[command["from"] : command["to"]])
                self.answer(seconds=self.clock() - self.start_time, entities=sum(map(len, predictions)))
            else:
                peer = make(self.job, train)
                self.start_time = self.clock()
                peer.train(command["epochs"], lambda: True)
                trained = self.clock()
                predictions = peer.predict(test)
                seconds = {"training": trained - self.start_time, "prediction": self.clock() - trained}
                self.answer(predictions=predictions, memory=peak_memory(), **seconds)
            self.pending = next(self.commands, None)

    def _after_epoch(self) -> bool:
        self.answer(seconds=self.clock() - self.start_time)
        self.pending = next(self.commands, None)
        self.start_time = self.clock()
        return self.pending is not None and self.pending["do"] == "train"


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    worker = Worker(sys.argv[1], map(json.loads, sys.stdin), answers)
    try:
        worker.run()
    except Exception as error:
        worker.answer(error=f"{type(error).__name__}: {error}")
        raise


if __name__ == "__main__":
    main()
