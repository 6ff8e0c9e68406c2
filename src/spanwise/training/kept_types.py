"""Learn new types without forgetting old ones (``--keep-types``): the old model teaches its types on the new data.

The new data is annotated for some types only. Entities of the other types of the old model are in
its text, but without marks, and would be learned as no entities. The old model reads the training
sentences, and its probabilities of these types are learned together with the gold of the new ones.
In dev and test, these types are not annotated, so predictions of them do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from spanwise.core.errors import SpanwiseError
from spanwise.core.partial import known_types
from spanwise.core.types import Corpus, Entity, Sentence
from spanwise.decoding.soft_nms import SoftNms
from spanwise.files.reading import read_json
from spanwise.heads.abilities import LearnsProbabilities, find_ability
from spanwise.heads.base import Labels
from spanwise.losses.teaching import TaughtSentence
from spanwise.models.model import Model
from spanwise.prediction.load import model_folder
from spanwise.runs.folder import RunFolder
from spanwise.training.data import all_sentences
from spanwise.training.teacher_outputs import TeacherOutputs, describe_teacher, is_short, taught_sentences
from spanwise.training.teachers import ask_teachers


def missing_types(folder: Path, corpus: Corpus) -> tuple[str, ...]:
    """The types of the old model that the new training data does not annotate."""
    run = RunFolder(model_folder(folder))
    if not run.labels_file.is_file():
        Model.load(run.path)  # raises an error that explains what is missing
    if run.read_config().head.get("task") == "typing":
        raise SpanwiseError(f"{folder}: types given spans; --keep-types needs a model that finds entities")
    labels = Labels.from_json(read_json(run.labels_file), str(run.labels_file))
    annotated = annotated_types(corpus["train"])
    return tuple(type for type in labels.entities if type not in annotated)


def annotated_types(sentences: Iterable[Sentence]) -> set[str]:
    """The types of the entities, and those that marks of partial annotation list."""
    return {
        type
        for sentence in sentences
        for type in (*(entity.type for entity in sentence.entities), *(known_types(sentence) or ()))
    }


@dataclass(frozen=True)
class KeptTypes:
    """The opinions of an old model on its types that the new data does not annotate."""

    teacher_outputs: TeacherOutputs

    @property
    def types(self) -> tuple[str, ...]:
        return self.teacher_outputs.types

    @classmethod
    def ask(
        cls, folder: Path, types: tuple[str, ...], corpus: Corpus, device: str, log: Callable[[str], None]
    ) -> KeptTypes:  # fmt: skip
        """Let the old model read the training sentences."""
        policy = Model.load(folder).head.prediction_head.decoding
        opinions = ask_teachers(
            [folder], Labels(types), taught_sentences(corpus), context=all_sentences(corpus), device=device, log=log,
            policy=policy.policy if isinstance(policy, SoftNms) else policy,
        )  # fmt: skip
        return cls(TeacherOutputs(opinions, [describe_teacher(folder)], types))

    def complete(self, corpus: Corpus) -> Corpus:
        """The corpus with the entities that the old model predicts in train, and with marks in the other splits."""
        opinions = iter(self.teacher_outputs.opinions)
        new_types = tuple(sorted(annotated_types(corpus["train"])))
        train = tuple(
            self._add(sentence, next(opinions).predictions.entities) if is_short(sentence) else limit(sentence, new_types)
            for sentence in corpus["train"]
        )
        others = {split: tuple(limit(s, new_types) for s in corpus[split]) for split in corpus if split != "train"}
        return Corpus({"train": train, **others}, corpus.name)

    def sentences(self, corpus: Corpus, completed: Corpus, model: Model) -> list[Sentence]:
        """What the new model learns from: gold with the old model's probabilities or, if it cannot, its predictions."""
        if find_ability(model.head, LearnsProbabilities) is None:
            return list(completed["train"])
        index = np.array([model.labels.entities.index(type) for type in self.types], np.int64)
        opinions = iter(self.teacher_outputs.opinions)
        result = []
        for sentence, filled in zip(corpus["train"], completed["train"], strict=True):
            if not is_short(sentence):
                result.append(filled)
                continue
            spans = next(opinions).spans
            marked = replace(filled, entities=sentence.entities)
            result.append(TaughtSentence.teach(marked, spans._replace(label=index[spans.label]), None))
        return result

    def _add(self, sentence: Sentence, entities: Iterable[Entity]) -> Sentence:
        """Add predicted entities on spans without gold; limited marks then include the kept types."""
        gold = {entity.fragments for entity in sentence.entities}
        more = (replace(entity, score=None) for entity in entities if entity.fragments not in gold)
        types = known_types(sentence)
        marks = sentence.annotated if types is None else (*types, *self.types)
        return replace(sentence, entities=(*sentence.entities, *more), annotated=marks)


def limit(sentence: Sentence, types: tuple[str, ...]) -> Sentence:
    """Mark a sentence as annotated for some types only, unless it has marks."""
    return replace(sentence, annotated=types) if sentence.annotated is None else sentence


def keep_types(
    folder: Path, corpus: Corpus, run: RunFolder, device: str, log: Callable[[str], None], *, is_resumed: bool
) -> KeptTypes | None:  # fmt: skip
    """The types that the new model keeps, with the opinions of the old model; None if there are none to keep.

    A resumed run reads the opinions from its folder ``run`` and does not need the old model.
    """
    if is_resumed:
        stored = TeacherOutputs.read(run.teacher_outputs_file, len(taught_sentences(corpus)))
        if stored is not None:
            return KeptTypes(stored)
    types = missing_types(folder, corpus)
    if not types:
        log(f"the data annotates all types of {folder}: there are no types to keep")
        return None
    log(f"keeping {', '.join(types)} of {folder}, which the data does not annotate")
    return KeptTypes.ask(folder, types, corpus, device, log)
