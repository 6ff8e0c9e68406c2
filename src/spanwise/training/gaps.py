"""Fill the gaps of incomplete annotations with the predictions of a first model.

In sentences marked ``"annotated": []``, some entities are annotated and others are not. Such data is
trained on in two rounds. The first model learns open spans as weak negatives. It predicts most of the
entities that are not annotated, and a second, new model learns these predictions as gold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from spanwise.config.settings import Config
from spanwise.core.counting import counted
from spanwise.core.types import Corpus, Relation, Sentence
from spanwise.decoding.decode import Predictions
from spanwise.models.model import Model
from spanwise.prediction.predictor import predict
from spanwise.runs.folder import RunFolder
from spanwise.runs.records import TrainingRecord
from spanwise.runtime.device import is_main_process, should_use_cuda
from spanwise.training.data import all_sentences
from spanwise.training.supervision import Supervision
from spanwise.training.teacher_outputs import TeacherOutputs
from spanwise.training.teachers import Opinion, to_spans


def needs_two_rounds(config: Config, sentences: Iterable[Sentence]) -> bool:
    """Whether there are gaps to fill; ``training.rounds=1`` leaves them open."""
    is_typing = config.head.get("task") == "typing"
    return config.training.rounds != 1 and not is_typing and any(map(has_gaps, sentences))


def has_gaps(sentence: Sentence) -> bool:
    """Whether no part of a sentence was annotated completely."""
    return sentence.annotated == ()


class FilledGaps(Supervision):
    """Gold, and the predictions of a first model in the gaps of train: one opinion for each sentence with gaps."""

    teacher_outputs: TeacherOutputs

    def __init__(self, corpus: Corpus, teacher_outputs: TeacherOutputs) -> None:
        opinions = iter(teacher_outputs.opinions)
        train = tuple(_fill(s, next(opinions).predictions) if has_gaps(s) else s for s in corpus["train"])
        super().__init__(Corpus({**corpus.splits, "train": train}, corpus.name))
        self.teacher_outputs = teacher_outputs
        self.added_entities = sum(
            len(filled.entities) - len(gold.entities) for gold, filled in zip(corpus["train"], train, strict=True)
        )

    def to_report(self) -> dict[str, Any]:
        return {"gaps": {"sentences": len(self.teacher_outputs.opinions), "added_entities": self.added_entities}}


def first_round(folder: RunFolder) -> RunFolder:
    """The folder of the first model, next to the checkpoints of the second."""
    return RunFolder(folder.checkpoints / "first")


def fill_gaps(
    corpus: Corpus, folder: RunFolder, record: TrainingRecord, train_first: Callable[[RunFolder, Config], Model], *,
    device: str, log: Callable[[str], None],
) -> FilledGaps:  # fmt: skip
    """Train a first model, or resume its training, and let it predict what is missing in the gaps.

    ``train_first`` trains a configuration in a folder. If the second round has started, the predictions
    are read from the run folder.
    """
    sentences = [sentence for sentence in corpus["train"] if has_gaps(sentence)]
    stored = TeacherOutputs.read(folder.teacher_outputs_file, len(sentences))
    if stored is not None:
        return FilledGaps(corpus, stored)
    first = first_round(folder)
    if first.is_finished:
        model = Model.load(first.path).to("cuda" if should_use_cuda(device) else "cpu")
    else:
        log(f"first round: {counted(len(sentences), 'training sentence')} with gaps; this model predicts what is missing there")
        model = _train_first(folder, record, train_first)
    predicted = predict(model, sentences, context=all_sentences(corpus))
    opinions = [Opinion(to_spans(()), Predictions(s.entities, s.relations)) for s in predicted]
    filled = FilledGaps(corpus, TeacherOutputs(opinions))
    added, count = counted(filled.added_entities, "more entity"), counted(len(sentences), "sentence")
    log(f"second round: learning {added} that the first model predicts in {count}")
    return filled


def _train_first(folder: RunFolder, record: TrainingRecord, train: Callable[[RunFolder, Config], Model]) -> Model:
    """Train the first model. The record of the run is written before, so that the run can be resumed in this round."""
    first, config = first_round(folder), record.config
    if is_main_process():
        if not folder.record_file.is_file():
            record.write(folder.record_file)
        first.path.mkdir(parents=True, exist_ok=True)
    try:
        return train(first, config.model_copy(update={"training": config.training.model_copy(update={"rounds": 1})}))
    except BaseException:
        if is_main_process() and not first.is_started:  # an error in data or settings, before anything was trained
            folder.remove_training_state()
        raise


def _fill(sentence: Sentence, predictions: Predictions) -> Sentence:
    """Add predicted entities, and predicted relations between all entities, to those of a sentence."""
    new = [replace(entity, score=None) for entity in predictions.entities if entity not in sentence.entities]
    entities = (*sentence.entities, *new)
    index = {entity: position for position, entity in enumerate(entities)}
    known = {(relation.type, relation.head, relation.tail) for relation in sentence.relations}
    rows = [
        (relation.type, index[predictions.entities[relation.head]], index[predictions.entities[relation.tail]])
        for relation in predictions.relations
    ]
    more = (Relation(*row) for row in dict.fromkeys(rows) if row not in known)
    return replace(sentence, entities=entities, relations=(*sentence.relations, *more), annotated=None)
