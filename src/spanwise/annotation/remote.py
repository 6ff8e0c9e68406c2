"""A predictor whose network runs in another process; words, subwords and entities are its own work."""

from __future__ import annotations

import pickle
import queue
import threading
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Client, Connection
from typing import Any

import numpy as np

from spanwise.annotation.scoring import Failure, Request, dump, to_tensors
from spanwise.annotation.unavailable import ModelUnavailableError
from spanwise.batching.batches import make_batch
from spanwise.batching.plan import Ints, plan
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.decoding.decode import Predictions
from spanwise.decoding.thresholds import Thresholds
from spanwise.heads.abilities import CachesSentences, heads_with
from spanwise.models.model import Model
from spanwise.prediction.predictor import Predictor, temporary_thresholds, with_predictions

MAX_SENTENCES, SUBWORDS, PADDING = 1024, 1 << 15, 1 << 13  # of a batch


class RemotePredictor(Predictor):
    """Predictor that uses the network of a ``ModelProcess``.

    All batches of a chunk are sent before the first result is read, so that the model always has
    work. Batches are limited by their number of subwords.
    """

    def __init__(self, model: Model, address: str, key: bytes) -> None:
        super().__init__(model, "cpu")
        self._connection: Connection = Client(address, authkey=key)
        self._results: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._number = 0  # of the last request
        # A thread reads results at once: otherwise both processes could wait for each other to read.
        threading.Thread(target=self._read_results, daemon=True).start()

    def predict_chunk(
        self, sentences: Sequence[Sentence], context: Sequence[Sentence], *, threshold: Thresholds, batch_size: int
    ) -> list[Sentence]:  # fmt: skip
        model, sent = self.model, dict[int, Ints]()
        prepared = model.encoder.prepare(sentences, context)
        costs = np.array([model.encoder.cost(item) for item in prepared], np.int64)
        for indices in plan(costs, MAX_SENTENCES, SUBWORDS, None, padding=PADDING):
            self._number += 1
            batch = make_batch(model.encoder, model.head, sentences, prepared, indices)
            self._send(Request.of(self._number, batch, threshold))
            sent[self._number] = indices
        predictions = [Predictions(())] * len(sentences)
        with temporary_thresholds(model.head, threshold):
            while sent:
                number, scored = self._receive()
                if number not in sent:  # of a chunk that failed
                    continue
                if isinstance(scored, Failure):
                    raise SpanwiseError(scored.reason)
                indices = sent.pop(number)
                decoded = model.head.decode(to_tensors(scored), len(indices))
                for index, prediction in zip(indices.tolist(), decoded, strict=True):
                    predictions[index] = prediction
        for head in heads_with(model.head, CachesSentences):
            head.clear_cache()
        return with_predictions(model.head, sentences, predictions, threshold)

    def _send(self, request: Request) -> None:
        try:
            self._connection.send_bytes(dump(request))
        except OSError:
            raise ModelUnavailableError("the model process is gone; run the command again to resume") from None

    def _receive(self) -> tuple[int, Any]:
        result = self._results.get()
        if result is None:
            self._results.put(None)
            raise ModelUnavailableError("the model process is gone; run the command again to resume")
        number, scored = result
        return number, scored

    def _read_results(self) -> None:
        with suppress(EOFError, OSError):
            while True:
                self._results.put(pickle.loads(self._connection.recv_bytes()))
        self._results.put(None)
