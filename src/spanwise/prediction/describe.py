"""What a trained model is made of, and what it would cost to teach it one more type. One in ONNX is described without torch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spanwise.config.settings import sections
from spanwise.prediction.onnx.record import read_record
from spanwise.runs.files import is_exported, read_config

if TYPE_CHECKING:
    from spanwise.heads.base import Labels
    from spanwise.models.model import Model


@dataclass(frozen=True)
class Description(ABC):
    """A model in plain values."""

    recipe: str
    title: str
    paper: str
    encoder: dict[str, Any]
    head: dict[str, Any]
    labels: dict[str, list[str]]

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))

    def lines(self) -> Iterator[str]:
        """The same for people."""
        rows = {"recipe": self.recipe, "title": self.title, "paper": self.paper}
        for name, values in (*sections("encoder", self.encoder), *sections("head", self.head)):
            rows[name] = ", ".join(f"{key}={value}" for key, value in values.items())
        rows |= {what: f"{len(names)}: {', '.join(names)}" for what, names in self.labels.items() if names}
        for name, row in (rows | self._own_rows()).items():
            yield f"{name:<14}{row}"

    @abstractmethod
    def _own_rows(self) -> dict[str, str]: ...


@dataclass(frozen=True)
class ModelDescription(Description):
    """A model in torch. ``parameters`` counts weights: of encoder and head, and of a bundle's branches."""

    parameters: dict[str, int]
    another_type: int  # weights that one more entity type adds to the head
    another_relation: int | None = None  # and one more relation type, where relations are found

    def _own_rows(self) -> dict[str, str]:
        rows = {
            "weights": ", ".join(f"{name} {count:,}" for name, count in self.parameters.items()),
            "another type": f"{self.another_type:,} weights more",
        }
        if self.another_relation is not None:
            rows["relation type"] = f"{self.another_relation:,} weights more"
        return rows


@dataclass(frozen=True)
class ExportedDescription(Description):
    """A model in ONNX: ``precision`` is that of the encoder's weights, ``size`` the bytes of its files."""

    precision: str
    size: int

    def _own_rows(self) -> dict[str, str]:
        return {"in ONNX": f"{self.precision}, {self.size / 1e6:.1f} MB"}


def describe_folder(folder: Path) -> Description:
    """The model of a run folder, or of one that an export wrote."""
    if is_exported(folder):
        return describe_exported(folder)
    from spanwise.models.model import Model

    return describe_model(Model.load(folder))


def describe_exported(folder: Path) -> ExportedDescription:
    config, record = read_config(folder), read_record(folder)
    return ExportedDescription(
        recipe=config.recipe, title=config.title, paper=config.paper, encoder=config.encoder, head=config.head,
        labels={"entities": list(record.entities), "relations": []},  # what finds relations has no graph
        precision=record.precision, size=sum(path.stat().st_size for path in folder.iterdir()),
    )  # fmt: skip


def describe_model(model: Model) -> ModelDescription:
    from spanwise.heads import make_head
    from spanwise.models.model import size

    config, head, labels = model.config, model.head, model.labels

    def growth(more: Labels) -> int:
        return size(make_head(model.encoder, more, config.head)) - size(head)

    larger = replace(labels, entities=(*labels.entities, "one more"))
    related = replace(labels, relations=(*labels.relations, "one more"))
    parameters = {"encoder": size(model.encoder), "head": size(head)}
    parameters |= {f"head.{name}": size(one) for name, one in head.branches.items()}
    found = labels if head.prediction_head.finds_relations else replace(labels, relations=())
    return ModelDescription(
        recipe=config.recipe, title=config.title, paper=config.paper, encoder=config.encoder, head=config.head,
        labels=found.to_json(), parameters=parameters,
        another_type=growth(larger), another_relation=growth(related) if head.finds_relations else None,
    )  # fmt: skip
