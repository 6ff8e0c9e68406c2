"""The process that runs the network on a GPU for the workers around it."""

from __future__ import annotations

import pickle
import queue
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, Listener
from typing import Any

import torch
from torch import Tensor

from spanwise.annotation.annotator import describe
from spanwise.annotation.engine import ModelSettings
from spanwise.annotation.pool import Fatal, Ready
from spanwise.annotation.precision import use_half_precision
from spanwise.annotation.scoring import Failure, Request, dump, to_arrays
from spanwise.annotation.streams import Streams
from spanwise.core.errors import SpanwiseError
from spanwise.decoding.thresholds import Thresholds
from spanwise.encoders.base import TokenStates
from spanwise.encoders.transformer import TransformerEncoder
from spanwise.heads.base import ScoredSpans
from spanwise.prediction.load import load_torch
from spanwise.prediction.predictor import Predictor, temporary_thresholds
from spanwise.runtime.device import should_use_cuda
from spanwise.runtime.processes import prepare_process

QUEUED = 16  # batches that wait for the model; workers wait until there is room


@dataclass(frozen=True, slots=True)
class Encoded:
    """A batch whose encoder was started."""

    states: TokenStates
    targets: dict[str, Tensor]
    mark: Any  # the end of the encoder on the device


def serve_model(connection: Connection, settings: ModelSettings, gpu: int, address: str, key: bytes) -> None:
    """The life of the model process: load, report, and score batches until the parent closes its pipe."""
    prepare_process(1)
    try:
        if should_use_cuda(settings.device):
            torch.cuda.set_device(gpu)
        server = ModelServer(load_torch(settings.model, settings.device, only_predicts=True), settings.precision)
        listener = Listener(address, backlog=128, authkey=key)
    except SpanwiseError as error:
        connection.send(Fatal(str(error)))
        return
    threading.Thread(target=server.serve, args=(listener,), daemon=True).start()
    connection.send(Ready())
    with suppress(EOFError, OSError):
        connection.recv()  # until the parent closes the pipe or dies


class ModelServer:
    """Scores the batches that workers send through connections, in any order."""

    def __init__(self, predictor: Predictor, precision: str = "float32") -> None:
        self.model = predictor.model
        self.device = next(self.model.parameters()).device
        if precision == "half":
            use_half_precision(predictor)
        self._streams = Streams(self.device)
        if self.device.type == "cuda":
            # The attention of cuDNN is planned for every new shape, and batches have many shapes.
            torch.backends.cuda.enable_cudnn_sdp(False)
            for encoder in self.model.encoder.modules():
                if isinstance(encoder, TransformerEncoder):
                    encoder.avoid_waiting()
        self._requests: queue.Queue[tuple[Connection, Request]] = queue.Queue(QUEUED)
        self._threshold: Thresholds | None = None
        self._threshold_stack = ExitStack()

    def serve(self, listener: Listener) -> None:
        """Accept workers, also those that replace dead ones, and score their batches.

        One thread runs the network, because heads keep tables that grow with the longest sentence.
        """
        threading.Thread(target=self._score_requests, daemon=True).start()
        while True:
            try:
                connection = listener.accept()
            except (EOFError, ConnectionError, AuthenticationError):  # the worker died while it connected
                continue
            except OSError:  # the listener is closed
                return
            threading.Thread(target=self._read_requests, args=(connection,), daemon=True).start()

    def _read_requests(self, connection: Connection) -> None:
        with suppress(EOFError, OSError):
            while True:
                self._requests.put((connection, pickle.loads(connection.recv_bytes())))

    def _score_requests(self) -> None:
        """Score requests in order; the encoder of the next batch is started before the spans of a batch are read.

        Reading spans waits for the device, which would otherwise have nothing to do until the host has
        started the next batch.
        """
        previous: tuple[Connection, Request, Encoded] | None = None
        while True:
            current = None
            with suppress(queue.Empty):
                connection, request = self._requests.get(block=previous is None)
                with self._answer_errors(connection, request):
                    current = connection, request, self._encode(request)
            if previous is not None:
                connection, request, encoded = previous
                with self._answer_errors(connection, request):
                    _answer(connection, request, self._score(request, encoded))
            previous = current

    def score(self, request: Request) -> ScoredSpans:
        """Score a batch; return NumPy arrays."""
        return self._score(request, self._encode(request))

    @torch.inference_mode()
    def _encode(self, request: Request) -> Encoded:
        """Start the encoder; the host does not wait for it."""
        with self._streams.encoding():
            batch = request.batch(self.device)
            return Encoded(self.model.encoder(batch.inputs), batch.targets, self._streams.mark())

    @torch.inference_mode()
    def _score(self, request: Request, encoded: Encoded) -> ScoredSpans:
        """Score the spans of a batch, and wait for them."""
        self._use_threshold(request.threshold)
        with self._streams.scoring(encoded.mark):
            return to_arrays(self.model.head.score(encoded.states, encoded.targets))

    @contextmanager
    def _answer_errors(self, connection: Connection, request: Request) -> Iterator[None]:
        """Answer a request with the reason if it cannot be scored."""
        try:
            yield
        except Exception as error:  # too little memory for this batch, for example
            if self.device.type == "cuda":
                with suppress(RuntimeError):  # the GPU has failed; further batches fail, too
                    torch.cuda.empty_cache()
            _answer(connection, request, Failure(describe(error)))

    def _use_threshold(self, threshold: Thresholds) -> None:
        """Set the threshold of the head. All requests of a job have the same."""
        if threshold != self._threshold:
            self._threshold_stack.close()
            self._threshold_stack.enter_context(temporary_thresholds(self.model.head, threshold))
            self._threshold = threshold


def _answer(connection: Connection, request: Request, result: Any) -> None:
    with suppress(OSError):  # the worker is dead
        connection.send_bytes(dump((request.number, result)))
