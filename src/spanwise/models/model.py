"""A model is an encoder and a head; it lives in a run folder."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from torch import Tensor, nn

from spanwise.batching.batches import Batch
from spanwise.config.settings import Config
from spanwise.core.errors import SpanwiseError, SpanwiseWarning
from spanwise.core.types import Corpus, Sentence
from spanwise.encoders import build_encoder, load_encoder
from spanwise.encoders.base import Encoder
from spanwise.evaluation.tasks import Entities, GivenSpans, Task
from spanwise.files.reading import read_json
from spanwise.files.writing import atomic_output
from spanwise.heads import head_values, make_head
from spanwise.heads.base import Head, Labels, Losses, ScoredSpans
from spanwise.runs.files import CONFIG, LABELS, WEIGHTS, is_exported, is_unfinished, read_config, runs_in
from spanwise.runtime.tensors import fill, weights, write_tensors


class Model(nn.Module):
    """Encoder and head together. Calling it gives the batch's mean loss, over how many instances, and its parts by name."""

    def __init__(self, encoder: Encoder, head: Head, config: Config) -> None:
        super().__init__()
        self.encoder, self.head, self.config = encoder, head, config

    @property
    def labels(self) -> Labels:
        return self.head.labels

    @property
    def task(self) -> Task:
        """What the head that predicts does, and how that is scored."""
        return GivenSpans() if self.needs_spans else Entities(self.head.prediction_head.finds_relations)

    @property
    def needs_spans(self) -> bool:
        """Whether it types the spans of the entities that sentences come with, and finds none by itself."""
        return self.head.prediction_head.task == "typing"

    def forward(self, inputs: Mapping[str, Tensor], targets: Mapping[str, Tensor]) -> dict[str, Tensor]:
        losses = self.head.loss(self.encoder(inputs), targets)
        return {"loss": losses.mean, "instances": losses.counts.sum(), **losses.parts}

    def losses(self, batch: Batch) -> Losses:
        """The loss of every sentence of a batch."""
        return self.head.loss(self.encoder(batch.inputs), batch.targets)

    def score(self, batch: Batch) -> ScoredSpans:
        return self.head.score(self.encoder(batch.inputs), batch.targets)

    @classmethod
    def build(
        cls, config: Config, corpus: Corpus, *, saved: Path | None = None, log: Callable[[str], None] = lambda line: None
    ) -> Model:
        """A model to be trained on a corpus: its labels, and whatever settings follow from the training sentences.

        With ``saved`` the encoder is made as a run folder has it, for weights that are still to come.
        """
        train = corpus["train"]
        labels = Labels(labels_of(train), relation_labels_of(train))
        if not labels.entities:
            raise SpanwiseError("the training data has no entities: nothing can be learned from it")
        encoder = load_encoder(config.encoder, saved) if saved else build_encoder(config.encoder, train, log)
        head = make_head(encoder, labels, config.head, train)
        resolved = {"head": head_values(head), "training": config.training.fitted(len(train))}
        return cls(encoder, head, config.model_copy(update=resolved))

    def exported(self) -> Model:
        """What prediction needs of this model: the same encoder with the head that predicts, as a model of its own."""
        head = self.head.prediction_head
        return Model(self.encoder, head, self.config.model_copy(update={"head": head_values(head)})).train(self.training)

    def save(self, folder: Path) -> None:
        """Everything ``load`` needs, the weights included."""
        self.save_frame(folder)
        self.save_weights(folder)

    def save_frame(self, folder: Path) -> None:
        """All but the weights. The configuration comes first: it makes the folder a run folder."""
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_output(folder / CONFIG) as temporary:
            temporary.write_text(self.config.to_yaml(), encoding="utf-8")
        self.encoder.save(folder)
        with atomic_output(folder / LABELS) as temporary:
            temporary.write_text(json.dumps(self.labels.to_json(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")

    def save_weights(self, folder: Path) -> None:
        with atomic_output(folder / WEIGHTS) as temporary:
            write_tensors(weights(self), temporary)

    @classmethod
    def load(cls, folder: str | Path) -> Model:
        """The model of a run folder, ready to predict. Whoever uses one whose training has not ended is warned."""
        folder = Path(folder)
        missing = [name for name in (CONFIG, LABELS, WEIGHTS) if not (folder / name).is_file()]
        if missing:
            raise SpanwiseError(f"{folder}: {_instead(folder, missing)}")
        config = read_config(folder)
        try:
            labels = Labels.from_json(read_json(folder / LABELS))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise SpanwiseError(f"{folder / LABELS}: cannot be read: {' '.join(str(error).split())}") from None
        encoder = load_encoder(config.encoder, folder)
        model = cls(encoder, make_head(encoder, labels, config.head), config)
        fill(model, folder / WEIGHTS)
        if is_unfinished(folder):
            warnings.warn(f"{folder}: its training is unfinished; this is the best epoch so far", SpanwiseWarning, stacklevel=2)
        return model.eval()


def _instead(folder: Path, missing: Sequence[str]) -> str:
    """What a folder is, where a run folder was expected."""
    if is_exported(folder):
        return "is a model in ONNX, which predicts but cannot be looked into or changed: take the run folder it was made of"
    if WEIGHTS in missing and is_unfinished(folder):
        return "no trained model here yet: its training has not finished an epoch; go on with it by spanwise train … --resume"
    if runs := runs_in(folder):
        return f"holds runs and is none itself: name one of them, as in {runs[0]}"
    return f"no trained model here ({', '.join(missing)} missing)"


def size(module: nn.Module) -> int:
    """How many weights a module has."""
    return sum(parameter.numel() for parameter in module.parameters())


def labels_of(sentences: Iterable[Sentence]) -> tuple[str, ...]:
    return tuple(sorted({entity.type for sentence in sentences for entity in sentence.entities}))


def relation_labels_of(sentences: Iterable[Sentence]) -> tuple[str, ...]:
    return tuple(sorted({relation.type for sentence in sentences for relation in sentence.relations}))
