"""Describe a trained model: settings, labels, scores and number of parameters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spanwise.config.settings import iter_sections
from spanwise.evaluation.tasks import task_from_scores
from spanwise.prediction.base import score_scale
from spanwise.prediction.onnx.record import read_record
from spanwise.runs.folder import RunFolder

if TYPE_CHECKING:
    from spanwise.heads.base import Labels
    from spanwise.models.model import Model


@dataclass(frozen=True)
class Description(ABC):
    """Description of a model in plain values.

    ``threshold`` is the default minimum of calibrated scores, None if there is none; ``thresholds`` are
    those that were saved in the model, by type. A run folder also has the scores and the number of
    sentences of each split of its data.
    """

    recipe: str
    title: str
    paper: str
    encoder: dict[str, Any]
    head: dict[str, Any]
    labels: dict[str, list[str]]
    threshold: float | None
    thresholds: dict[str, float]
    data: dict[str, int] = field(default_factory=dict, kw_only=True)
    scores: dict[str, dict[str, Any]] = field(default_factory=dict, kw_only=True)

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))

    def lines(self) -> Iterator[str]:
        """Text lines for the terminal."""
        rows = {"recipe": self.recipe, "title": self.title, "paper": self.paper}
        for name, values in (*iter_sections("encoder", self.encoder), *iter_sections("head", self.head)):
            rows[name] = ", ".join(f"{key}={value}" for key, value in values.items())
        rows |= {kind: f"{len(names)}: {', '.join(names)}" for kind, names in self.labels.items() if names}
        if self.threshold is not None:
            rows["threshold"] = f"{self.threshold:g} by default (--threshold), of calibrated scores"
        if self.thresholds:
            rows["thresholds"] = ", ".join(f"{name} {value:g}" for name, value in self.thresholds.items())
        if self.data:
            rows["sentences"] = ", ".join(f"{split} {count:,}" for split, count in self.data.items())
        for split, values in self.scores.items():
            rows[f"{split} scores"] = "; ".join(task_from_scores(values).format_scores(values))
        for name, row in (rows | self._size_rows()).items():
            yield f"{name:<14}{row}"

    @abstractmethod
    def _size_rows(self) -> dict[str, str]: ...


@dataclass(frozen=True)
class ModelDescription(Description):
    """A torch model with the number of parameters of its encoder, head and branches."""

    parameters: dict[str, int]
    parameters_per_type: int  # added to the head by one more entity type
    parameters_per_relation_type: int | None = None  # None if the head predicts no relations

    def _size_rows(self) -> dict[str, str]:
        rows = {
            "parameters": ", ".join(f"{name} {count:,}" for name, count in self.parameters.items()),
            "entity type": f"{self.parameters_per_type:,} parameters each",
        }
        if self.parameters_per_relation_type is not None:
            rows["relation type"] = f"{self.parameters_per_relation_type:,} parameters each"
        return rows


@dataclass(frozen=True)
class ExportedDescription(Description):
    """An ONNX model: precision of the encoder's weights and size of all files in bytes."""

    precision: str
    size: int
    quantization: str | None = None  # as chosen by an export with --int8

    def _size_rows(self) -> dict[str, str]:
        rows = {"quantisation": self.quantization} if self.quantization else {}
        return {**rows, "ONNX": f"{self.precision}, {self.size / 1e6:.1f} MB"}


def describe_folder(folder: Path) -> Description:
    """Describe the model of a run folder or an exported folder."""
    if RunFolder(folder).is_onnx:
        return describe_exported(folder)
    from spanwise.models.model import Model

    description, run = describe_model(Model.load(folder)), RunFolder(folder)
    if not run.is_finished:
        return description
    data = {split: values["sentences"] for split, values in run.read_report().get("data", {}).items()}
    return replace(description, data=data, scores=run.read_scores())


def describe_exported(folder: Path) -> ExportedDescription:
    config, record = RunFolder(folder).read_config(), read_record(folder)
    return ExportedDescription(
        recipe=config.recipe, title=config.title, paper=config.paper, encoder=config.encoder, head=config.head,
        labels={
            "entities": list(record.entities),
            "relations": [] if record.relations is None else list(record.relations.types),
        },
        threshold=None if record.threshold is None else score_scale(record.calibration).calibrate(record.threshold),
        thresholds=record.thresholds or {},
        precision=record.precision, size=sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()),
        quantization=None if record.quantization is None else record.quantization.summary,
    )  # fmt: skip


def describe_model(model: Model) -> ModelDescription:
    from spanwise.heads import make_head
    from spanwise.models.model import count_parameters
    from spanwise.prediction.predictor import Predictor

    config, head, labels = model.config, model.head, model.labels

    def growth(labels: Labels) -> int:
        return count_parameters(make_head(model.encoder, labels, config.head)) - count_parameters(head)

    more_types = replace(labels, entities=(*labels.entities, "one more"))
    more_relations = replace(labels, relations=(*labels.relations, "one more"))
    parameters = {"encoder": count_parameters(model.encoder), "head": count_parameters(head)}
    parameters |= {f"head.{name}": count_parameters(branch) for name, branch in head.branches.items()}
    predicted = labels if head.prediction_head.finds_relations else replace(labels, relations=())
    return ModelDescription(
        recipe=config.recipe, title=config.title, paper=config.paper, encoder=config.encoder, head=config.head,
        labels=predicted.to_json(), threshold=Predictor(model, "cpu").default_threshold,
        thresholds=config.thresholds or {}, parameters=parameters,
        parameters_per_type=growth(more_types),
        parameters_per_relation_type=growth(more_relations) if head.finds_relations else None,
    )  # fmt: skip
