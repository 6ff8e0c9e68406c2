"""Fill the gaps of incomplete annotations: what a first model predicts there is learned by the second one.

In sentences marked ``"annotated": []``, it is unknown which spans are entities without a mark. Such
data is trained on in two rounds. The first model takes open spans for weak negatives. It finds most
of the entities without a mark, and the second model learns them as gold, from the beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from spanwise.config.settings import Config
from spanwise.core.types import Corpus, Relation, Sentence
from spanwise.corpora.splits import fingerprints
from spanwise.decoding.decode import Predictions
from spanwise.models.model import Model
from spanwise.prediction.predictor import predict
from spanwise.runs.folder import RunFolder
from spanwise.runs.records import TrainingRecord
from spanwise.runtime.device import is_main_process, should_use_cuda
from spanwise.training.data import all_sentences
from spanwise.training.teacher_outputs import TeacherOutputs
from spanwise.training.teachers import Opinion, to_spans

FIRST = "first"  # folder of the first model, next to the checkpoints of the second


def needs_two_rounds(config: Config, sentences: Iterable[Sentence]) -> bool:
    """Whether there are gaps to fill; ``training.rounds=1`` leaves them open."""
    is_typing = config.head.get("task") == "typing"
    return config.training.rounds != 1 and not is_typing and any(map(has_gaps, sentences))


def has_gaps(sentence: Sentence) -> bool:
    """Whether nothing of a sentence was annotated completely."""
    return sentence.annotated == ()


@dataclass(frozen=True)
class FilledGaps:
    """The predictions of the first model, one opinion for each training sentence with gaps."""

    teacher_outputs: TeacherOutputs

    @classmethod
    def predict(cls, model: Model, corpus: Corpus, log: Callable[[str], None]) -> FilledGaps:
        sentences = [sentence for sentence in corpus["train"] if has_gaps(sentence)]
        predicted = predict(model, sentences, context=all_sentences(corpus))
        opinions = [Opinion(to_spans(()), Predictions(s.entities, s.relations)) for s in predicted]
        filled = cls(TeacherOutputs(opinions, []))
        added = filled.count_added(sentences)
        log(f"second round: learning {added:,} more entities that the first model predicts in {len(sentences):,} sentences")
        return filled

    def complete(self, corpus: Corpus) -> Corpus:
        """The corpus with predicted entities and relations in the gaps of train."""
        opinions = iter(self.teacher_outputs.opinions)
        train = tuple(_fill(s, next(opinions).predictions) if has_gaps(s) else s for s in corpus["train"])
        return Corpus({**corpus.splits, "train": train}, corpus.name)

    def count_added(self, sentences: Sequence[Sentence]) -> int:
        """The number of predicted entities that are not gold."""
        pairs = zip(sentences, self.teacher_outputs.opinions, strict=True)
        return sum(len(set(opinion.predictions.entities) - set(sentence.entities)) for sentence, opinion in pairs)

    def to_report(self, corpus: Corpus) -> dict[str, int]:
        sentences = [sentence for sentence in corpus["train"] if has_gaps(sentence)]
        return {"sentences": len(sentences), "added_entities": self.count_added(sentences)}


class Options(Protocol):
    """The options of a run that the first round needs."""

    @property
    def device(self) -> str: ...
    @property
    def init(self) -> str | Path | None: ...
    @property
    def log(self) -> Callable[[str], None]: ...


def fill_gaps(
    corpus: Corpus, folder: RunFolder, config: Config, options: Options, *, is_resumed: bool,
    train_first: Callable[[RunFolder, Config], Model],
) -> FilledGaps:  # fmt: skip
    """Train a first model, or resume its training, and let it predict what is missing in the gaps.

    ``train_first`` trains a configuration in a folder. If the second round has started (``is_resumed``),
    the predictions are read from the run folder.
    """
    count = sum(map(has_gaps, corpus["train"]))
    if is_resumed and (stored := TeacherOutputs.read(folder.teacher_outputs_file, count)) is not None:
        return FilledGaps(stored)
    first = RunFolder(folder.checkpoints / FIRST)
    if is_main_process():  # from here on, the run can be resumed
        if not folder.record_file.is_file():
            init = None if options.init is None else str(Path(options.init).absolute())
            TrainingRecord(config, fingerprints(corpus), init).write(folder.record_file)
        first.path.mkdir(parents=True, exist_ok=True)
    if first.is_finished:
        model = Model.load(first.path).to("cuda" if should_use_cuda(options.device) else "cpu")
    else:
        options.log(f"first round: {count:,} training sentences have gaps; this model predicts what is missing there")
        once = config.model_copy(update={"training": config.training.model_copy(update={"rounds": 1})})
        try:
            model = train_first(first, once)
        except BaseException:
            if is_main_process() and not first.is_started:  # an error in data or settings: leave nothing behind
                folder.remove_training_state()
            raise
    return FilledGaps.predict(model, corpus, options.log)


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
