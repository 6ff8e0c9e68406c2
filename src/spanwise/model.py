"""A model is an encoder and a head; it lives in a run folder."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml
from torch import Tensor, nn

from spanwise.batching import Batch
from spanwise.config import Config, checked
from spanwise.encoders import build_encoder, load_encoder
from spanwise.encoders.base import Encoder
from spanwise.errors import SpanwiseError
from spanwise.formats.files import replacing
from spanwise.heads import head_class
from spanwise.heads.base import Head, HeadSettings, Labels, Losses, ScoredSpans
from spanwise.tensors import fill, weights, write_tensors
from spanwise.types import Corpus, Sentence

CONFIG, LABELS, WEIGHTS = "config.yaml", "labels.json", "model.safetensors"


class Model(nn.Module):
    """Encoder and head together. Calling it gives the batch's mean loss, over how many instances, and its parts by name."""

    def __init__(self, encoder: Encoder, head: Head, config: Config) -> None:
        super().__init__()
        self.encoder, self.head, self.config = encoder, head, config

    @property
    def labels(self) -> Labels:
        return self.head.labels

    def forward(self, inputs: Mapping[str, Tensor], targets: Mapping[str, Tensor]) -> dict[str, Tensor]:
        losses = self.head.loss(self.encoder(inputs), targets)
        return {"loss": losses.mean, "instances": losses.counts.sum(), **losses.parts}

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
        """Everything ``load`` needs, the weights included. The configuration comes first: it makes the folder a run folder."""
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(folder / CONFIG) as temporary:
            temporary.write_text(self.config.to_yaml(), encoding="utf-8")
        self.encoder.save(folder)
        with replacing(folder / LABELS) as temporary:
            temporary.write_text(json.dumps(self.labels.to_json(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        self.save_weights(folder)

    def save_weights(self, folder: Path) -> None:
        with replacing(folder / WEIGHTS) as temporary:
            write_tensors(weights(self), temporary)

    @classmethod
    def load(cls, folder: str | Path) -> Model:
        """The model of a run folder, ready to predict."""
        folder = Path(folder)
        missing = [name for name in (CONFIG, LABELS, WEIGHTS) if not (folder / name).is_file()]
        if missing:
            raise SpanwiseError(f"{folder}: no trained model here ({', '.join(missing)} missing)")
        try:
            values = yaml.safe_load((folder / CONFIG).read_text(encoding="utf-8"))
            labels = Labels.from_json(json.loads((folder / LABELS).read_text(encoding="utf-8")))
        except (yaml.YAMLError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise SpanwiseError(f"{folder}: the run's configuration cannot be read: {' '.join(str(error).split())}") from None
        config = checked(Config, values, str(folder / CONFIG))
        encoder = load_encoder(config.encoder, folder)
        head, _ = make_head(encoder, labels, config.head, ())
        model = cls(encoder, head, config)
        fill(model, folder / WEIGHTS)
        return model.eval()


def make_head(
    encoder: Encoder, labels: Labels, values: Mapping[str, Any], sentences: Iterable[Sentence]
) -> tuple[Head, dict[str, Any]]:
    """The head that ``values`` describe, and the values with what was taken from the training sentences filled in."""
    settings = head_settings(values).fitted(tuple(sentences))
    kind = values["kind"]
    return head_class(kind).build(encoder, labels, settings), {"kind": kind, **settings.model_dump()}


def head_settings(values: Mapping[str, Any]) -> HeadSettings:
    """The settings that a configuration's ``head`` section names, checked."""
    kind = str(values.get("kind", ""))
    rest = {key: value for key, value in values.items() if key != "kind"}
    return checked(head_class(kind).settings_class, rest, f"head {kind}")


def labels_of(sentences: Iterable[Sentence]) -> tuple[str, ...]:
    return tuple(sorted({entity.type for sentence in sentences for entity in sentence.entities}))


def relation_labels_of(sentences: Iterable[Sentence]) -> tuple[str, ...]:
    return tuple(sorted({relation.type for sentence in sentences for relation in sentence.relations}))
