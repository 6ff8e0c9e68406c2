"""A peer at work: lines of JSON come in on standard input, and one line of JSON goes back for each.

    python bench/peers/worker.py hf_tokens

The first line is the ``Job``. The answer comes when everything is loaded: ``ready``, or ``missing`` where a module is not
there. Then

    {"do": "train"}                        one epoch, in the peer's own training loop, which waits behind each; the seconds
    {"do": "predict", "from": 0, "to": 64} these sentences of test; the seconds, and how many entities were found
    {"do": "fit", "epochs": 10}            a new model, trained so long and asked for all of test; what it found, and
                                           the seconds of the training and of the prediction

Whatever libraries print goes to standard error.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, TextIO

from job import Job, Peer, read

CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}


class Worker:
    def __init__(self, name: str, commands: Iterator[dict[str, Any]], answers: TextIO) -> None:
        self.name, self.commands, self.answers = name, commands, answers
        self.pending: dict[str, Any] | None = None
        self.began = 0.0

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
            self.began = self.clock()
            if command["do"] == "train":
                peer.train(self.job.epochs, self._behind_epoch)
                if self.pending and self.pending["do"] == "train":
                    raise RuntimeError("training ended before it was told to")
                continue
            if command["do"] == "predict":
                found = peer.predict(test[command["from"] : command["to"]])
                self.answer(seconds=self.clock() - self.began, entities=sum(map(len, found)))
            else:
                peer = make(self.job, train)
                self.began = self.clock()
                peer.train(command["epochs"], lambda: True)
                trained = self.clock()
                found = peer.predict(test)
                self.answer(found=found, training=trained - self.began, prediction=self.clock() - trained)
            self.pending = next(self.commands, None)

    def _behind_epoch(self) -> bool:
        self.answer(seconds=self.clock() - self.began)
        self.pending = next(self.commands, None)
        self.began = self.clock()
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
