"""A model that finds what it is told to find, and a service of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import product

import uvicorn
from fastapi import FastAPI

from spanwise.core.types import Entity, Relation, Sentence
from spanwise.decoding.thresholds import Threshold, apply_threshold
from spanwise.prediction.base import BasePredictor
from spanwise.serve.server import address, listening

# Words of an entity, its type and score; "_" stands for a word that does not belong to it.
KNOWN = (
    ("New York University Hospital", "Organization", 0.95),
    ("New York University", "Organization", 0.8),
    ("New York", "Place", 0.6),
    ("breast _ _ cancer", "Disease", 0.7),
    ("ovarian cancer", "Disease", 0.9),
    ("cancer", "Disease", 0.3),
)
TEXT = "The New York University Hospital treats breast and ovarian cancer. Nobody came to New York."


class Fake(BasePredictor):
    """Finds the known entities, and a relation between every hospital and every disease. ``gate`` lets a test hold it up."""

    types = ("Disease", "Organization", "Place")
    relation_types = ("treats",)
    finds_relations = True
    own_threshold = 0.5

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.gate.set()
        self.batches: list[list[str]] = []  # the texts of the sentences that were predicted together

    def find(
        self, sentences: Sequence[Sentence], around: Sequence[Sentence], *, threshold: Threshold, batch_size: int
    ) -> list[Sentence]:  # fmt: skip
        self.batches.append([sentence.text for sentence in sentences])
        assert self.gate.wait(30)
        if any("poison" in sentence.words for sentence in sentences):
            raise ZeroDivisionError("the secret text")
        return list(apply_threshold(map(annotated, sentences), threshold or dict.fromkeys(self.types, 0.5)))


def annotated(sentence: Sentence) -> Sentence:
    entities = []
    for said, type, score in KNOWN:
        pattern = said.split()
        for start in range(len(sentence.words) - len(pattern) + 1):
            if all(want in ("_", word) for want, word in zip(pattern, sentence.words[start:], strict=False)):
                spans = [(start + at, start + at + 1) for at, want in enumerate(pattern) if want != "_"]
                entities.append(Entity(type, tuple(spans), score))
    kinds = [entity.type for entity in entities]
    pairs = [(x, y) for x, y in product(range(len(kinds)), repeat=2) if (kinds[x], kinds[y]) == ("Organization", "Disease")]
    return replace(sentence, entities=tuple(entities), relations=tuple(Relation("treats", x, y, 0.4) for x, y in pairs))


def until(holds: Callable[[], object]) -> None:
    """Wait for something that another thread brings about, and not forever."""
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


@contextmanager
def at_address(app: FastAPI) -> Iterator[str]:
    """The service on a free port of this machine."""
    with listening("127.0.0.1", 0) as listener:
        server = uvicorn.Server(uvicorn.Config(app, lifespan="on", log_level="warning", access_log=False))
        listener.listen(100)  # who comes before the server has begun waits a moment
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield address(listener)
        finally:
            server.should_exit = True
            thread.join()
