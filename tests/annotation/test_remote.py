"""The network in another process (here: a thread), the rest of the prediction in a worker."""

from __future__ import annotations

import pickle
import queue
import secrets
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from multiprocessing.connection import Listener
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tiny
import torch

from spanwise.annotation.annotator import Annotator
from spanwise.annotation.model_process import Encoded, ModelServer
from spanwise.annotation.precision import use_half_precision
from spanwise.annotation.remote import RemotePredictor
from spanwise.annotation.scoring import Request
from spanwise.batching.batches import make_batch
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.models.model import Model
from spanwise.prediction.predictor import Predictor


@pytest.fixture
def connect() -> Iterator[Callable[[Model], RemotePredictor]]:
    """Serve a model and connect a predictor to it."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as listeners:

        def serve(model: Model) -> RemotePredictor:
            key = secrets.token_bytes(16)
            listener = listeners.enter_context(Listener(str(Path(folder, "model")), authkey=key))
            threading.Thread(target=ModelServer(Predictor(model, "cpu")).serve, args=(listener,), daemon=True).start()
            return RemotePredictor(model, str(Path(folder, "model")), key)

        yield serve


@pytest.mark.parametrize("recipe", ["global-pointer", "span-relations"])
def test_predictions_equal_those_of_one_process(
    recipe: str, connect: Callable[[Model], RemotePredictor], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tiny.with_relations(tiny.corpus()) if recipe == "span-relations" else tiny.corpus()
    model = tiny.model("static", recipe, data=data)
    monkeypatch.setattr("spanwise.annotation.remote.MAX_SENTENCES", 4)  # several batches per chunk
    sentences = [*data["dev"], Sentence("empty", ())]
    threshold = 0.3
    expected = Predictor(model, "cpu").predict(sentences, threshold=threshold)
    actual = connect(model).predict(sentences, threshold=threshold)
    assert sum(len(sentence.entities) for sentence in expected) > 5
    for one, other in zip(expected, actual, strict=True):
        assert (one.entities, one.relations) == (other.entities, other.relations)
        assert [e.score for e in one.entities] == pytest.approx([e.score for e in other.entities], abs=3e-6)


def test_a_batch_that_fails_is_an_error_of_its_rows(
    connect: Callable[[Model], RemotePredictor], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny.model("static", "global-pointer")
    score = ModelServer._score

    def fail(self: ModelServer, request: Request, encoded: Encoded) -> object:
        if int(encoded.states.mask.sum()) == 3:
            raise RuntimeError("CUDA out of memory")
        return score(self, request, encoded)

    monkeypatch.setattr(ModelServer, "_score", fail)
    monkeypatch.setattr("spanwise.annotation.remote.MAX_SENTENCES", 1)
    model.head.set_threshold(0.01)  # type: ignore[operator]
    texts = ["paris is near york", "in paris now", "york"]
    annotations = Annotator(connect(model)).annotate(texts)
    assert [annotation.error for annotation in annotations] == [None, "CUDA out of memory", None]
    assert annotations[0].entities


def test_the_next_batch_is_encoded_before_the_spans_of_a_batch_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: queue.SimpleQueue[str] = queue.SimpleQueue()
    for name in ("_encode", "_score"):
        method = getattr(ModelServer, name)

        def record(self: ModelServer, request: Request, *more: object, name: str = name, method: Any = method) -> object:
            calls.put(f"{name} {request.number}")
            return method(self, request, *more)

        monkeypatch.setattr(ModelServer, name, record)
    model = tiny.model("static", "global-pointer")
    server, sentences = ModelServer(Predictor(model, "cpu")), tiny.corpus()["dev"]
    answers = SimpleNamespace(send_bytes=lambda message: calls.put(f"answer {pickle.loads(message)[0]}"))
    for number in (1, 2):
        batch = make_batch(model.encoder, model.head, sentences, model.encoder.prepare(sentences), np.arange(3))
        server._requests.put((answers, Request.of(number, batch, 0.0)))  # type: ignore[arg-type]
    threading.Thread(target=server._score_requests, daemon=True).start()
    order = [calls.get(timeout=20) for _ in range(6)]
    assert order == ["_encode 1", "_encode 2", "_score 1", "answer 1", "_score 2", "answer 2"]


def test_a_model_that_is_gone_ends_the_job(connect: Callable[[Model], RemotePredictor]) -> None:
    predictor = connect(tiny.model("static", "global-pointer"))
    predictor._connection.close()
    with pytest.raises(SpanwiseError, match="the model process is gone"):
        Annotator(predictor).annotate(["in paris"])


@pytest.mark.parametrize("recipe", ["global-pointer", "deep-span"])
def test_half_precision_changes_the_encoder_and_not_the_head(tiny_bert: Path, recipe: str) -> None:
    """The head of deep-span uses layers of the encoder, which then stays in full precision."""
    predictor = Predictor(tiny.model(tiny_bert, recipe), "cpu")
    sentences = tiny.corpus()["dev"]
    before = predictor.predict(sentences, threshold=0.4)
    use_half_precision(predictor)
    expected = torch.float16 if recipe == "global-pointer" else torch.float32
    assert predictor.model.encoder.model.dtype == expected  # type: ignore[union-attr]
    assert {weight.dtype for weight in predictor.model.head.parameters()} == {torch.float32}
    after = predictor.predict(sentences, threshold=0.4)
    entities = [{(s.id, e) for s in predicted for e in s.entities} for predicted in (before, after)]
    assert len(entities[0]) > 5
    assert len(entities[0] ^ entities[1]) <= 0.05 * len(entities[0])
