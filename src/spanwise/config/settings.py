"""The settings of a run: encoder, head and training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field


class TrainingSettings(BaseModel):
    """How to train. The rates follow the encoder's size unless given (small ones bear more), and batches the corpus's."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    epochs: int = Field(default=20, ge=1)
    batch_size: int | None = Field(
        default=None, ge=1, description="sentences of a batch; a hundredth of the training data, 8 to 32, if not given"
    )
    token_budget: int | None = Field(
        default=None, ge=1, description="sentences x longest length of a batch, instead of batch_size"
    )
    encoder_rate: float | None = Field(
        default=None, ge=0, description="learning rate of pretrained weights; by their number if not given"
    )
    head_rate: float = Field(default=1e-3, ge=0, description="learning rate of new weights")
    warmup: float = Field(default=0.1, ge=0, le=1, description="share of the steps in which the rate rises")
    schedule: Literal["linear", "constant"] = Field(default="linear", description="what the rate does then: fall to 0, or stay")
    weight_decay: float = Field(default=0.01, ge=0)
    clip: float = Field(default=1.0, gt=0, description="largest norm of the gradient")
    accumulate: int = Field(default=1, ge=1, description="batches per step")
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    patience: int | None = Field(default=None, ge=1, description="stop after so many epochs without a better dev score")
    seed: int = Field(default=1, ge=0, lt=2**63)
    checkpoint_steps: int | None = Field(
        default=None, ge=1, description="a checkpoint every so many steps, besides one every epoch"
    )

    def fitted(self, sentences: int) -> Self:
        """With what is open settled by the number of training sentences: few need small batches, to make steps enough.

        >>> [TrainingSettings().fitted(sentences).batch_size for sentences in (50, 922, 15_000)]
        [8, 9, 32]
        """
        size = min(max(sentences // 100, 8), 32)
        return self if self.batch_size else self.model_copy(update={"batch_size": size})


class Config(BaseModel):
    """A run's whole configuration; ``encoder`` and ``head`` are read by the classes their ``kind`` names."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    recipe: str
    title: str = ""
    paper: str = ""
    encoder: dict[str, Any]
    head: dict[str, Any]
    training: TrainingSettings = TrainingSettings()

    def to_yaml(self) -> str:
        return yaml.safe_dump(self.model_dump(), sort_keys=False, allow_unicode=True)


def sections(name: str, values: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """A section's own settings, then those of the sections within it, under dotted names.

    >>> list(sections("head", {"kind": "bundle", "span": {"kind": "spanner"}}))
    [('head', {'kind': 'bundle'}), ('head.span', {'kind': 'spanner'})]
    """
    yield name, {key: value for key, value in values.items() if not isinstance(value, Mapping)}
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from sections(f"{name}.{key}", value)
