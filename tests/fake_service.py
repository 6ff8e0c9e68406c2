"""A fake predictor with known predictions, and a server for tests."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import product

from fastapi import FastAPI

from spanwise.core.types import Entity, Relation, Sentence
from spanwise.decoding.thresholds import Thresholds, apply_threshold
from spanwise.prediction.base import BasePredictor
from spanwise.serve.limits import Limits
from spanwise.serve.server import make_server, open_listener, url

# Words of an entity, its type and score; "_" is a word between two fragments.
KNOWN = (
    ("New York University Hospital", "Organization", 0.95),
    ("New York University", "Organization", 0.8),
    ("New York", "Place", 0.6),
    ("breast _ _ cancer", "Disease", 0.7),
    ("ovarian cancer", "Disease", 0.9),
    ("cancer", "Disease", 0.3),
)
TEXT = "The New York University Hospital treats breast and ovarian cancer. Nobody came to New York."


class FakePredictor(BasePredictor):
    """Predicts the known entities and relations from organizations to diseases; ``gate`` blocks it."""

    types = ("Disease", "Organization", "Place")
    relation_types = ("treats",)
    finds_relations = True
    default_threshold = 0.5

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.gate.set()
        self.batches: list[list[str]] = []  # sentence texts of each batch
        self.requested_threshold: Thresholds | None = None  # of the last batch

    def predict_chunk(
        self, sentences: Sequence[Sentence], context: Sequence[Sentence], *, threshold: Thresholds, batch_size: int
    ) -> list[Sentence]:  # fmt: skip
        self.batches.append([sentence.text for sentence in sentences])
        self.requested_threshold = threshold
        assert self.gate.wait(120)
        if any("poison" in sentence.words for sentence in sentences):
            raise ZeroDivisionError("the secret text")
        return list(apply_threshold(map(annotate, sentences), threshold or Thresholds(0.5)))


def annotate(sentence: Sentence) -> Sentence:
    entities = []
    for words, type, score in KNOWN:
        pattern = words.split()
        for start in range(len(sentence.words) - len(pattern) + 1):
            if all(expected in ("_", word) for expected, word in zip(pattern, sentence.words[start:], strict=False)):
                spans = [(start + offset, start + offset + 1) for offset, word in enumerate(pattern) if word != "_"]
                entities.append(Entity(type, tuple(spans), score))
    types = [entity.type for entity in entities]
    pairs = [(x, y) for x, y in product(range(len(types)), repeat=2) if (types[x], types[y]) == ("Organization", "Disease")]
    return replace(sentence, entities=tuple(entities), relations=tuple(Relation("treats", x, y, 0.4) for x, y in pairs))


def wait_until(condition: Callable[[], object]) -> None:
    """Wait for a condition that another thread fulfils, at most a minute."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


@contextmanager
def serve_app(app: FastAPI, limits: Limits | None = None) -> Iterator[str]:
    """Serve the app on a free local port; yield its URL."""
    with open_listener("127.0.0.1", 0) as listener:
        server = make_server(app, limits or Limits())
        listener.listen(100)  # connections that arrive before the server starts have to wait
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield url(listener)
        finally:
            server.should_exit = True
            thread.join()
