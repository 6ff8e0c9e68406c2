"""Learn new types without forgetting old ones (``--keep-types``): the old model teaches its types on the new data.

The new data is annotated for some types only. Its text also has entities of the other types of the old
model. Without annotations, a model would learn that they are no entities. The old model predicts the
training sentences, and its probabilities of these types are learned together with the gold of the new ones.
On spans with a new type, only pointers that return overlapping entities learn an old type as well.
In dev and test, these types are not annotated, so predictions of them do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from spanwise.core.errors import SpanwiseError
from spanwise.core.partial import known_types
from spanwise.core.types import Corpus, Entity, Sentence
from spanwise.heads.abilities import LearnsProbabilities, find_ability
from spanwise.heads.base import Labels
from spanwise.losses.teaching import TaughtSentence
from spanwise.models.model import (
    NO_ENTITIES,
    Model,
    entity_types,
    predicts_relations,
    read_labels,
    relation_types,
    require_model,
)
from spanwise.prediction.load import model_folder
from spanwise.runs.folder import RunFolder
from spanwise.training.supervision import Supervision
from spanwise.training.teacher_outputs import TeacherOutputs, is_short, taught_sentences


def missing_types(folder: Path, corpus: Corpus) -> tuple[str, ...]:
    """The types of the old model that the new training data does not annotate."""
    run = require_model(model_folder(folder))
    if run.read_config().head.get("task") == "typing":
        raise SpanwiseError(f"{folder}: types given spans; --keep-types needs a model that predicts entities")
    annotated = annotated_types(corpus["train"])
    return tuple(type for type in read_labels(run).entities if type not in annotated)


def missing_relations(folder: Path, corpus: Corpus) -> tuple[str, ...]:
    """The relation types that the old model predicts and the new training data does not have."""
    run, known = RunFolder(model_folder(folder)), relation_types(corpus["train"])
    return tuple(type for type in read_labels(run).relations if type not in known) if predicts_relations(run) else ()


def annotated_types(sentences: Iterable[Sentence]) -> set[str]:
    """The types of the entities, and those that marks of partial annotation list."""
    return {
        type
        for sentence in sentences
        for type in (*(entity.type for entity in sentence.entities), *(known_types(sentence) or ()))
    }


class KeptTypes(Supervision):
    """Gold of the new types, and the opinions of the old model on its types that the data does not annotate.

    The corpus has the entities that the old model predicts in train, and marks in the other splits.
    """

    teacher_outputs: TeacherOutputs

    def __init__(self, corpus: Corpus, teacher_outputs: TeacherOutputs) -> None:
        self.more_types, self.teacher_outputs = teacher_outputs.types, teacher_outputs
        opinions, marked = iter(teacher_outputs.opinions), mark_new_types(corpus)
        train = tuple(
            self._add(gold, next(opinions).predictions.entities) if is_short(gold) else sentence
            for gold, sentence in zip(corpus["train"], marked["train"], strict=True)
        )
        super().__init__(Corpus({**marked.splits, "train": train}, corpus.name))
        self._gold = corpus["train"]

    def sentences(self, model: Model) -> list[Sentence]:
        """Gold with the old model's probabilities or, for heads that do not learn probabilities, with its predictions."""
        if find_ability(model.head, LearnsProbabilities) is None:
            return list(self.corpus["train"])
        index = np.array([model.labels.entities.index(type) for type in self.more_types], np.int64)
        opinions = iter(self.teacher_outputs.opinions)
        result = []
        for gold, completed in zip(self._gold, self.corpus["train"], strict=True):
            if not is_short(gold):
                result.append(completed)
                continue
            spans = next(opinions).spans
            # The probabilities are of contiguous entities, so the others stay.
            more = (entity for entity in completed.entities[len(gold.entities) :] if entity.is_discontinuous)
            marked = replace(completed, entities=(*gold.entities, *more))
            result.append(TaughtSentence.teach(marked, spans._replace(label=index[spans.label]), None))
        return result

    def to_report(self) -> dict[str, Any]:
        return {"kept_types": {"types": list(self.more_types), "teachers": self.teacher_outputs.teachers}}

    def _add(self, sentence: Sentence, entities: Iterable[Entity]) -> Sentence:
        """Add predicted entities on spans without gold; limited marks then include the kept types."""
        gold = {entity.fragments for entity in sentence.entities}
        more = (replace(entity, score=None) for entity in entities if entity.fragments not in gold)
        types = known_types(sentence)
        marks = sentence.annotated if types is None else (*types, *self.more_types)
        return replace(sentence, entities=(*sentence.entities, *more), annotated=marks)


def mark_new_types(corpus: Corpus) -> Corpus:
    """Mark complete sentences as annotated only for the types of train, so that other predictions are no errors."""
    types = tuple(sorted(annotated_types(corpus["train"])))

    def mark(sentence: Sentence) -> Sentence:
        return replace(sentence, annotated=types) if sentence.annotated is None else sentence

    return Corpus({split: tuple(map(mark, corpus[split])) for split in corpus}, corpus.name)


def keep_types(
    old_model: Path, corpus: Corpus, run: RunFolder, *, device: str, log: Callable[[str], None]
) -> Supervision:  # fmt: skip
    """Let the old model read the training sentences, if it has types to keep.

    A resumed run reads the opinions from its folder ``run`` and does not need the old model.
    """
    stored = TeacherOutputs.read(run.teacher_outputs_file, len(taught_sentences(corpus)))
    if stored is not None:
        return KeptTypes(corpus, stored)
    learned = entity_types(corpus["train"])
    if not learned:
        raise SpanwiseError(NO_ENTITIES)
    types = missing_types(old_model, corpus)
    if absent := sorted(annotated_types(corpus["train"]).difference(learned)):
        log(f'note: "annotated" lists {", ".join(absent)}, but train has no such entity: the model will not predict it')
    if relations := missing_relations(old_model, corpus):
        log(f"note: --keep-types keeps entity types only: the relations {', '.join(relations)} will not be predicted")
    if not types:
        log(f"the data annotates all types of {old_model}: there are no types to keep")
        return Supervision(corpus)
    log(f"keeping {', '.join(types)} of {old_model}, which the data does not annotate")
    decoding = Model.load(old_model).head.prediction_head.decoding
    return KeptTypes(corpus, TeacherOutputs.ask([old_model], Labels(types), corpus, decoding, device=device, log=log))
