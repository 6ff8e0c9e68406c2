"""What all workers share: the task they are given, and sentences as plain lists. No library but the standard one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Protocol

Predictions = tuple[str, int, int]  # type, first word, word behind the last
GoesOn = Callable[[], bool]  # called by a training loop behind every epoch: whether to go on


@dataclass(frozen=True)
class Example:
    words: list[str]
    entities: list[Predictions]


@dataclass(frozen=True)
class Job:
    """One corpus and one encoder for everybody; batches and rates too, where they are said."""

    encoder: str  # a folder with a transformers model
    train: str  # a file of the interchange format
    test: str
    types: list[str]
    width: int  # of the widest spans that are candidates, for peers that ask for it
    batch_size: int | None  # None: as the peer's documentation has it
    predict_batch: int
    rate: float | None  # of all weights; None: as the peer's documentation has it
    seed: int
    clock: str
    epochs: int  # of a training whose epochs are timed one by one, a few more than will be asked for
    options: dict[str, Any]  # of this peer alone


class Peer(Protocol):
    """What a worker's module gives under the name ``Peer``; made afresh for every training."""

    version: str

    def __init__(self, job: Job, train: list[Example]) -> None: ...
    def train(self, epochs: int, goes_on: GoesOn) -> None: ...
    def predict(self, sentences: list[list[str]]) -> list[list[dict[str, Any]]]:
        """For every sentence its entities as the interchange format writes them."""
        ...


def read(path: str) -> list[Example]:
    """The sentences of a file in the interchange format that has no discontinuous entities."""
    with Path(path).open(encoding="utf-8") as file:
        records = [json.loads(line) for line in file if line.strip()]
    return [Example(r["tokens"], [(e["type"], *e["spans"][0]) for e in r.get("entities", ())]) for r in records]


def written(entities: Iterable[Predictions]) -> list[dict[str, Any]]:
    return [{"type": type, "spans": [[start, end]]} for type, start, end in entities]


def overlaps(example: Example) -> bool:
    """Whether two entities share a word.

    >>> overlaps(Example(["a", "b", "c"], [("A", 1, 3), ("B", 0, 1)]))
    False
    >>> overlaps(Example(["a", "b", "c"], [("A", 1, 3), ("B", 0, 2)]))
    True
    """
    spans = sorted((start, end) for _, start, end in example.entities)
    return any(after[0] < before[1] for before, after in pairwise(spans))


def tag_names(types: Sequence[str]) -> list[str]:
    """All BIO tags of these types.

    >>> tag_names(["A"])
    ['O', 'B-A', 'I-A']
    """
    return ["O", *(f"{kind}-{type}" for type in types for kind in "BI")]


def tags(example: Example) -> list[str]:
    """A BIO tag for each word; entities may not overlap."""
    result = ["O"] * len(example.words)
    for type, start, end in example.entities:
        result[start:end] = [f"B-{type}", *[f"I-{type}"] * (end - start - 1)]
    return result


def entities(tags: Sequence[str]) -> list[Predictions]:
    """The entities of BIO tags; one that begins with I is one all the same, as for seqeval.

    >>> entities(["B-A", "I-A", "I-B", "O", "B-A", "B-A"])
    [('A', 0, 2), ('B', 2, 3), ('A', 4, 5), ('A', 5, 6)]
    """
    result: list[Predictions] = []
    for place, tag in enumerate(tags):
        kind, _, type = tag.partition("-")
        if kind == "I" and result and result[-1][0] == type and result[-1][2] == place:
            result[-1] = (type, result[-1][1], place + 1)
        elif kind != "O":
            result.append((type, place, place + 1))
    return result


def starts(words: Sequence[str]) -> list[int]:
    """Where each word begins in the words joined by spaces."""
    return [0, *accumulate(len(word) + 1 for word in words[:-1])]
