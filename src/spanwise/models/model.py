"""A model: an encoder and a head, stored in a run folder."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from torch import Tensor, nn

from spanwise.batching.batches import Batch
from spanwise.config.settings import Config
from spanwise.core.errors import SpanwiseError, SpanwiseWarning
from spanwise.core.types import Corpus, Sentence
from spanwise.encoders import build_encoder, load_encoder, resolve_encoder
from spanwise.encoders.base import Encoder
from spanwise.evaluation.tasks import EntityTask, Task, TypingTask
from spanwise.files.limits import MODEL_BUFFER_BYTES, MODEL_EXPANSION
from spanwise.files.reading import read_json
from spanwise.files.writing import atomic_files, atomic_output, write_json
from spanwise.heads import head_class, head_values, make_head
from spanwise.heads.abilities import heads_with
from spanwise.heads.base import Head, Labels, Losses
from spanwise.runs.folder import RunFolder
from spanwise.runtime.allocation import AllocationLimit
from spanwise.runtime.tensors import check_finite, load_weights, state_tensors, write_tensors

NO_ENTITIES = "the training data has no entities; a model needs at least one to learn from"


class Model(nn.Module):
    """An encoder and a head. The forward pass returns the mean loss, the number of instances, and named parts of the loss."""

    def __init__(self, encoder: Encoder, head: Head, config: Config) -> None:
        super().__init__()
        self.encoder, self.head, self.config = encoder, head, config

    @property
    def labels(self) -> Labels:
        return self.head.labels

    @property
    def task(self) -> Task:
        """The task of the head that predicts, with its scores."""
        return TypingTask() if self.needs_spans else EntityTask(self.head.prediction_head.finds_relations)

    @property
    def needs_spans(self) -> bool:
        """Whether the model only types given spans: the entities that a sentence already has."""
        return self.head.prediction_head.task == "typing"

    def forward(self, inputs: Mapping[str, Tensor], targets: Mapping[str, Tensor]) -> dict[str, Tensor]:
        losses = self.head.loss(self.encoder(inputs), targets)
        return {"loss": losses.mean, "instances": losses.counts.sum(), **losses.parts}

    def losses(self, batch: Batch) -> Losses:
        """Compute the loss of each sentence of a batch."""
        return self.head.loss(self.encoder(batch.inputs), batch.targets)

    @classmethod
    def build(
        cls, config: Config, corpus: Corpus, *, saved: Path | None = None, log: Callable[[str], None] = lambda line: None,
        more_types: Iterable[str] = (),
    ) -> Model:  # fmt: skip
        """Build a model for a corpus: labels and automatic settings come from the training sentences.

        With ``saved``, a run folder, the encoder is loaded from there without its weights. ``more_types``
        are entity types that the training sentences need not have.
        """
        train = corpus["train"]
        labels = Labels(tuple(sorted({*entity_types(train), *more_types})), relation_types(train))
        if not labels.entities:
            raise SpanwiseError(NO_ENTITIES)
        config = config.model_copy(update={"encoder": resolve_encoder(config.encoder, len(train))})
        encoder = load_encoder(config.encoder, saved) if saved else build_encoder(config.encoder, train, log)
        head = make_head(encoder, labels, config.head, train)
        dev_entities = sum(len(sentence.entities) for sentence in corpus["dev"]) if "dev" in corpus else 0
        for part in heads_with(head, Head):
            part.marked_share = config.training.marked_share
        resolved = {"head": head_values(head), "training": config.training.resolve(len(train), dev_entities)}
        return cls(encoder, head, config.model_copy(update=resolved))

    def for_prediction(self) -> Model:
        """Return a model with the same encoder and only the head that predicts."""
        head = self.head.prediction_head
        return Model(self.encoder, head, self.config.model_copy(update={"head": head_values(head)})).train(self.training)

    def save(self, folder: Path) -> None:
        """Write everything that ``load`` needs."""
        self.save_without_weights(folder)
        self.save_weights(folder)

    def save_without_weights(self, folder: Path) -> None:
        """Write configuration, encoder files and labels. The configuration comes first: it marks a run folder."""
        folder.mkdir(parents=True, exist_ok=True)
        run = RunFolder(folder)
        run.write_config(self.config)
        with atomic_files(folder) as files:
            self.encoder.save(files)
        write_json(run.labels_file, self.labels.to_json())

    def save_weights(self, folder: Path, weights: Mapping[str, Tensor] | None = None) -> None:
        """Save the weights, or those that ``state_tensors`` returned earlier."""
        with atomic_output(RunFolder(folder).weights_file) as temporary:
            write_tensors(state_tensors(self) if weights is None else weights, temporary)

    @classmethod
    def load(cls, folder: str | Path, *, maps_weights: bool = False, only_predicts: bool = False) -> Model:
        """Load the model of a run folder, in evaluation mode; warn if its training is unfinished.

        ``maps_weights`` is for several processes that predict: they share the weights in memory.
        ``only_predicts`` loads faster, but the model cannot be trained.
        """
        folder = Path(folder)
        run = require_model(folder)
        config, labels = run.read_config(), read_labels(run)
        with AllocationLimit(MODEL_EXPANSION * run.weights_file.stat().st_size + MODEL_BUFFER_BYTES, run.weights_file):
            encoder = load_encoder(config.encoder, folder, only_predicts=only_predicts)
            model = cls(encoder, make_head(encoder, labels, config.head), config)
        load_weights(model, run.weights_file, is_mapped=maps_weights)
        check_finite(dict(model.named_parameters()), run.weights_file)
        if run.is_unfinished:
            warnings.warn(f"{folder}: training is unfinished; using its best epoch so far", SpanwiseWarning, stacklevel=2)
        return model.eval()


def require_model(folder: Path) -> RunFolder:
    """Return the run folder of a PyTorch model; raise an error that explains what is missing if it has none."""
    run = RunFolder(folder)
    missing = [file.name for file in (run.config_file, run.labels_file, run.weights_file) if not file.is_file()]
    if missing:
        raise SpanwiseError(f"{folder}: {_why_no_model(run, missing)}")
    return run


def read_labels(run: RunFolder) -> Labels:
    """The types of the data that a model was trained on; only some heads predict relations."""
    return Labels.from_json(read_json(run.labels_file), str(run.labels_file))


def predicts_relations(run: RunFolder) -> bool:
    """Whether the model of a run predicts relations."""
    return head_class(str(run.read_config().head.get("kind"))).finds_relations


def _why_no_model(run: RunFolder, missing: Sequence[str]) -> str:
    """Explain why a folder has no PyTorch model, and what to do."""
    if not run.path.exists():
        return "no such folder"
    if run.is_onnx:
        return "is an ONNX model, which can only predict; pass the run folder it was exported from"
    if run.weights_file.name in missing and run.is_unfinished:
        return "no trained model yet: training has not finished its first epoch; continue it with spanwise train … --resume"
    if runs := run.runs():
        return f"is a folder of several runs; pass one of them, such as {runs[0].path}"
    return f"no trained model here ({', '.join(missing)} missing)"


def count_parameters(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def entity_types(sentences: Iterable[Sentence]) -> tuple[str, ...]:
    return tuple(sorted({entity.type for sentence in sentences for entity in sentence.entities}))


def relation_types(sentences: Iterable[Sentence]) -> tuple[str, ...]:
    return tuple(sorted({relation.type for sentence in sentences for relation in sentence.relations}))
