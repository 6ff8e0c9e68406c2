"""A model is an encoder and a head; it lives in a run folder."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from spanwise.batching import Batch
from spanwise.config import Config, checked
from spanwise.encoders import build_encoder, load_encoder
from spanwise.encoders.base import Encoder
from spanwise.errors import SpanwiseError
from spanwise.heads import head_class
from spanwise.heads.base import Head, Labels, Losses, ScoredSpans
from spanwise.types import Corpus, Sentence

WEIGHTS = "model.safetensors"


class Model(nn.Module):
    """Encoder and head together. Calling it gives the batch's mean loss, and its parts by name."""

    def __init__(self, encoder: Encoder, head: Head, config: Config) -> None:
        super().__init__()
        self.encoder, self.head, self.config = encoder, head, config

    @property
    def labels(self) -> Labels:
        return self.head.labels

    def forward(self, inputs: Mapping[str, Tensor], targets: Mapping[str, Tensor]) -> dict[str, Tensor]:
        losses = self.head.loss(self.encoder(inputs), targets)
        return {"loss": losses.mean, **losses.parts}

    def losses(self, batch: Batch) -> Losses:
        """The loss of every sentence of a batch."""
        return self.head.loss(self.encoder(batch.inputs), batch.targets)

    def score(self, batch: Batch) -> ScoredSpans:
        return self.head.score(self.encoder(batch.inputs), batch.targets)

    @classmethod
    def build(cls, config: Config, corpus: Corpus) -> Model:
        """A model to be trained on a corpus: its labels, and whatever settings follow from the training sentences."""
        train = corpus["train"]
        labels = Labels(labels_of(train), relation_labels_of(train))
        if not labels.entities:
            raise SpanwiseError("the training data has no entities: nothing can be learned from it")
        encoder = build_encoder(config.encoder, train)
        head, values = make_head(encoder, labels, config.head, train)
        return cls(encoder, head, config.model_copy(update={"head": values}))

    def save(self, folder: Path) -> None:
        """Everything ``load`` needs, the weights included."""
        folder.mkdir(parents=True, exist_ok=True)
        self.encoder.save(folder)
        (folder / "config.yaml").write_text(self.config.to_yaml(), encoding="utf-8")
        (folder / "labels.json").write_text(json.dumps(self.labels.to_json(), ensure_ascii=False, indent=1), encoding="utf-8")
        save_file(weights(self), folder / WEIGHTS)

    @classmethod
    def load(cls, folder: str | Path) -> Model:
        """The model of a run folder, ready to predict."""
        folder = Path(folder)
        if not (folder / "config.yaml").is_file() or not (folder / WEIGHTS).is_file():
            raise SpanwiseError(f"{folder}: no model here (config.yaml and {WEIGHTS} were expected)")
        try:
            values = yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8"))
            labels = Labels.from_json(json.loads((folder / "labels.json").read_text(encoding="utf-8")))
        except (yaml.YAMLError, ValueError, KeyError, TypeError) as error:
            raise SpanwiseError(f"{folder}: the run's configuration cannot be read: {error}") from None
        config = checked(Config, values, str(folder / "config.yaml"))
        encoder = load_encoder(config.encoder, folder)
        head, _ = make_head(encoder, labels, config.head, ())
        model = cls(encoder, head, config)
        fill(model, folder / WEIGHTS)
        return model.eval()


def make_head(
    encoder: Encoder, labels: Labels, values: Mapping[str, Any], sentences: Iterable[Sentence]
) -> tuple[Head, dict[str, Any]]:
    """The head that ``values`` describe, and the values with what was taken from the training sentences filled in."""
    kind = values.get("kind", "")
    found = head_class(kind)
    rest = {key: value for key, value in values.items() if key != "kind"}
    settings = checked(found.settings_class, rest, f"head {kind}").fitted(tuple(sentences))
    return found.build(encoder, labels, settings), {"kind": kind, **settings.model_dump()}


def weights(model: nn.Module) -> dict[str, Tensor]:
    """The state of a model for saving: contiguous, on the host, shared tensors once."""
    return {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}


def fill(model: nn.Module, path: Path) -> None:
    """Load weights into a model; what does not fit is an error, never ignored."""
    try:
        model.load_state_dict(load_file(path))
    except (RuntimeError, SafetensorError, OSError) as error:
        raise SpanwiseError(f"{path}: the weights do not fit the model: {str(error).splitlines()[0]}") from None


def labels_of(sentences: Iterable[Sentence]) -> tuple[str, ...]:
    return tuple(sorted({entity.type for sentence in sentences for entity in sentence.entities}))


def relation_labels_of(sentences: Iterable[Sentence]) -> tuple[str, ...]:
    return tuple(sorted({relation.type for sentence in sentences for relation in sentence.relations}))
