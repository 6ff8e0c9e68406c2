"""What a trained model is made of, and what it would cost to teach it one more type."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from spanwise.config import sections
from spanwise.heads import make_head
from spanwise.heads.base import Labels
from spanwise.model import Model, size


@dataclass(frozen=True)
class ModelDescription:
    """A model in plain values. ``parameters`` counts weights: of encoder and head, and of a bundle's branches."""

    recipe: str
    title: str
    paper: str
    encoder: dict[str, Any]
    head: dict[str, Any]
    labels: dict[str, list[str]]
    parameters: dict[str, int]
    another_type: int  # weights that one more entity type adds to the head
    another_relation: int | None = None  # and one more relation type, where relations are found

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))

    def lines(self) -> Iterator[str]:
        """The same for people."""
        rows = {"recipe": self.recipe, "title": self.title, "paper": self.paper}
        for name, values in (*sections("encoder", self.encoder), *sections("head", self.head)):
            rows[name] = ", ".join(f"{key}={value}" for key, value in values.items())
        rows |= {what: f"{len(names)}: {', '.join(names)}" for what, names in self.labels.items() if names}
        rows["weights"] = ", ".join(f"{name} {count:,}" for name, count in self.parameters.items())
        rows["another type"] = f"{self.another_type:,} weights more"
        if self.another_relation is not None:
            rows["relation type"] = f"{self.another_relation:,} weights more"
        for name, row in rows.items():
            yield f"{name:<14}{row}"


def describe_model(model: Model) -> ModelDescription:
    config, head, labels = model.config, model.head, model.labels

    def growth(more: Labels) -> int:
        return size(make_head(model.encoder, more, config.head)) - size(head)

    larger = replace(labels, entities=(*labels.entities, "one more"))
    related = replace(labels, relations=(*labels.relations, "one more"))
    parameters = {"encoder": size(model.encoder), "head": size(head)}
    parameters |= {f"head.{name}": size(one) for name, one in head.branches.items()}
    found = labels if head.reader.finds_relations else replace(labels, relations=())
    return ModelDescription(
        recipe=config.recipe, title=config.title, paper=config.paper, encoder=config.encoder, head=config.head,
        labels=found.to_json(), parameters=parameters,
        another_type=growth(larger), another_relation=growth(related) if head.finds_relations else None,
    )  # fmt: skip
