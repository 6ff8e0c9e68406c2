"""Shared code of all workers: the job, and sentences as plain lists. Uses only the standard library."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Protocol

EntityTuple = tuple[str, int, int]  # type, first word, word after the last
ShouldContinue = Callable[[], bool]  # called after every epoch: whether to continue training


@dataclass(frozen=True)
class Example:
    words: list[str]
    entities: list[EntityTuple]


@dataclass(frozen=True)
class Job:
    """Corpus and encoder, the same for all peers; batch size and rate too, if given."""

    encoder: str  # folder with a transformers model
    train: str  # file in the interchange format
    test: str
    types: list[str]
    width: int  # maximum width of candidate spans, for peers that need it
    batch_size: int | None  # None: as in the peer's documentation
    predict_batch: int
    rate: float | None  # of all weights; None: as the peer's documentation has it
    seed: int
    clock: str
    epochs: int  # of a training whose epochs are timed separately; a few more than needed
    options: dict[str, Any]  # of this peer


class Peer(Protocol):
    """The class ``Peer`` of a worker's module; one instance per training."""

    version: str

    def __init__(self, job: Job, train: list[Example]) -> None: ...
    def train(self, epochs: int, should_continue: ShouldContinue) -> None: ...
    def predict(self, sentences: list[list[str]]) -> list[list[dict[str, Any]]]:
        """Return the entities of each sentence in the interchange format."""
        ...


def read(path: str) -> list[Example]:
    """Read a file in the interchange format without discontinuous entities."""
    with Path(path).open(encoding="utf-8") as file:
        records = [json.loads(line) for line in file if line.strip()]
    return [Example(r["tokens"], [(e["type"], *e["spans"][0]) for e in r.get("entities", ())]) for r in records]


def to_records(entities: Iterable[EntityTuple]) -> list[dict[str, Any]]:
    return [{"type": type, "spans": [[start, end]]} for type, start, end in entities]


def overlaps(example: Example) -> bool:
    """Return True if two entities share a word.

    >>> overlaps(Example(["a", "b", "c"], [("A", 1, 3), ("B", 0, 1)]))
    False
    >>> overlaps(Example(["a", "b", "c"], [("A", 1, 3), ("B", 0, 2)]))
    True
    """
    spans = sorted((start, end) for _, start, end in example.entities)
    return any(after[0] < before[1] for before, after in pairwise(spans))


def tag_names(types: Sequence[str]) -> list[str]:
    """Return all BIO tags of some types.

    >>> tag_names(["A"])
    ['O', 'B-A', 'I-A']
    """
    return ["O", *(f"{kind}-{type}" for type in types for kind in "BI")]


def tags(example: Example) -> list[str]:
    """Return a BIO tag for each word; entities must not overlap."""
    result = ["O"] * len(example.words)
    for type, start, end in example.entities:
        result[start:end] = [f"B-{type}", *[f"I-{type}"] * (end - start - 1)]
    return result


def entities(tags: Sequence[str]) -> list[EntityTuple]:
    """Return the entities of BIO tags; an entity may start with I, as in seqeval.

    >>> entities(["B-A", "I-A", "I-B", "O", "B-A", "B-A"])
    [('A', 0, 2), ('B', 2, 3), ('A', 4, 5), ('A', 5, 6)]
    """
    result: list[EntityTuple] = []
    for place, tag in enumerate(tags):
        kind, _, type = tag.partition("-")
        if kind == "I" and result and result[-1][0] == type and result[-1][2] == place:
            result[-1] = (type, result[-1][1], place + 1)
        elif kind != "O":
            result.append((type, place, place + 1))
    return result


def starts(words: Sequence[str]) -> list[int]:
    """Return the start of each word in the words joined by spaces."""
    return [0, *accumulate(len(word) + 1 for word in words[:-1])]
