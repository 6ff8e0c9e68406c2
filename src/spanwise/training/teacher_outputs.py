"""The outputs of teachers for the training sentences of a run, stored in its folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from spanwise.core.types import Corpus, Entity, Relation, Sentence, Span
from spanwise.decoding.decode import Policy, Predictions, overlap_policy
from spanwise.files.writing import atomic_output
from spanwise.heads.base import Labels
from spanwise.prediction.windows import MAX_WORDS
from spanwise.runs.folder import RunFolder
from spanwise.training.data import all_sentences, unlabelled_sentences
from spanwise.training.teachers import Opinion, ask_teachers, to_spans


class TeacherOutputs:
    """The opinions of teachers on the training and unlabelled sentences of a corpus.

    They are computed once and stored in the run folder until training is finished, so that a resumed
    run learns exactly the same and does not need the teachers. ``types`` are the entity types to which
    the labels of the opinions refer.
    """

    def __init__(
        self, opinions: Sequence[Opinion], teachers: Sequence[dict[str, Any]] = (), types: Sequence[str] = ()
    ) -> None:  # fmt: skip
        self.opinions, self.teachers, self.types = opinions, list(teachers), tuple(types)

    @classmethod
    def ask(
        cls, teachers: Sequence[Path], labels: Labels, corpus: Corpus, decoding: Policy, *, device: str,
        log: Callable[[str], None],
    ) -> TeacherOutputs:  # fmt: skip
        """Ask trained models about ``labels``; ``decoding`` decides between overlapping predictions."""
        with torch.random.fork_rng(devices=[]):  # the student's random numbers do not depend on its teachers
            opinions = ask_teachers(
                teachers, labels, taught_sentences(corpus), context=all_sentences(corpus), device=device, log=log,
                policy=overlap_policy(decoding),
            )  # fmt: skip
        return cls(opinions, [describe_teacher(folder) for folder in teachers], labels.entities)

    def write(self, path: Path) -> None:
        with atomic_output(path) as temporary, temporary.open("w", encoding="utf-8") as file:
            header = {"teachers": self.teachers, "sentences": len(self.opinions), "types": self.types}
            file.write(json.dumps(header) + "\n")
            for opinion in self.opinions:
                file.write(json.dumps(_to_record(opinion)) + "\n")

    @classmethod
    def read(cls, path: Path, count: int) -> TeacherOutputs | None:
        """Read stored opinions; None if they are missing, damaged or of another number of sentences than ``count``."""
        try:
            with path.open(encoding="utf-8") as file:
                header = json.loads(next(file))
                outputs = cls([_from_record(json.loads(line)) for line in file], header["teachers"], header["types"])
        except (OSError, StopIteration, ValueError, KeyError, TypeError):
            return None
        return outputs if len(outputs.opinions) == count else None


def describe_teacher(folder: Path) -> dict[str, Any]:
    """The record of a teacher in a report; the digest identifies its weights."""
    config = RunFolder(folder).read_config()
    with RunFolder(folder).weights_file.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()[:16]
    return {"path": str(folder), "recipe": config.recipe, "encoder": config.encoder, "weights": digest}


def taught_sentences(corpus: Corpus) -> list[Sentence]:
    """The sentences on which teachers are asked: training sentences that fit a window, and unlabelled ones."""
    return [*filter(is_short, corpus["train"]), *unlabelled_sentences(corpus)]


def is_short(sentence: Sentence) -> bool:
    """Whether teachers are asked about a sentence: it fits their window."""
    return len(sentence.words) <= MAX_WORDS


def _to_record(opinion: Opinion) -> dict[str, Any]:
    entities, relations = opinion.predictions
    return {
        "spans": list(zip(*(column.tolist() for column in opinion.spans), strict=True)),
        "entities": [(entity.type, entity.fragments, entity.score) for entity in entities],
        "relations": [(relation.type, relation.head, relation.tail) for relation in relations],
    }


def _from_record(record: dict[str, Any]) -> Opinion:
    entities = (
        Entity(type, tuple(Span(*fragment) for fragment in fragments), score) for type, fragments, score in record["entities"]
    )
    relations = (Relation(*values) for values in record["relations"])
    return Opinion(to_spans([tuple(row) for row in record["spans"]]), Predictions(tuple(entities), tuple(relations)))
