"""The settings of a run: encoder, head and training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

# Automatic settings follow from the number of training sentences (TrainingSettings.resolve).
MIN_BATCH, MAX_BATCH = 8, 32
TRAINING_STEPS = 3000  # of batches of automatic size; both CoNLL04 (922 sentences) and GENIA (15,000) need about as many
MIN_EPOCHS, MAX_EPOCHS = 6, 100
PATIENCE, MIN_PATIENCE = 0.6, 5  # share of the epochs; epochs. The falling rate often gives the best epochs at the end
MIN_DEV_ENTITIES = 200  # with fewer, chance selects the epoch: the standard error of F1 is above 3 points


class TrainingSettings(BaseModel):
    """How to train. By default, the learning rate depends on the encoder's size, and epochs and batch size on the data."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    epochs: int | None = Field(
        default=None, ge=1, description="passes over the training data; by default about 3,000 steps in 6 to 100 epochs"
    )
    batch_size: int | None = Field(
        default=None, ge=1, description="sentences per batch; by default a hundredth of the training data, from 8 to 32"
    )
    token_budget: int | None = Field(
        default=None, ge=1, description="sentences x longest length of a batch; replaces batch_size"
    )
    encoder_rate: float | None = Field(
        default=None, ge=0, description="learning rate of pretrained weights; by default chosen by their number"
    )
    head_rate: float = Field(default=1e-3, ge=0, description="learning rate of new weights")
    warmup: float = Field(default=0.1, ge=0, le=1, description="share of the steps with a rising learning rate")
    schedule: Literal["linear", "constant"] = Field(
        default="linear", description="learning rate after warm-up: falling to 0, or constant"
    )
    weight_decay: float = Field(default=0.01, ge=0, description="weight decay of AdamW")
    clip: float = Field(default=1.0, gt=0, description="maximum norm of the gradient")
    adversarial: float = Field(
        default=0.0,
        ge=0,
        description="size of the embedding perturbation (FGM); a second pass doubles the cost; 0: off",
    )
    gold_weight: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="weight of gold in training sentences; teachers (spanwise distill) have the rest",
    )
    marked_share: float = Field(
        default=0.2,
        ge=0,
        lt=1,
        description='assumed share of annotated entities in sentences marked "annotated": []; 0: ignore their other spans',
    )
    rounds: Literal[1, 2] | None = Field(
        default=None,
        description='2: a first model fills the gaps of sentences marked "annotated": []; by default 2 if there are any',
    )
    accumulate: int = Field(default=1, ge=1, description="batches per optimiser step")
    precision: Literal["auto", "fp32", "bf16", "fp16"] = Field(
        default="auto",
        description="number format; auto: bf16 on a GPU for large encoders and deep spans, else fp32",
    )
    patience: int | None = Field(
        default=None,
        ge=1,
        description="epochs without a better dev score before stopping; by default 60% of automatic epochs",
    )
    selection: Literal["best", "last"] | None = Field(
        default=None,
        description="epoch to keep: the best on dev, or the last; by default last if epochs are automatic and dev is tiny",
    )
    seed: int = Field(default=1, ge=0, lt=2**63, description="seed of all random numbers")
    deterministic: bool = Field(default=False, description="give the same weights on every run on a GPU; slower")
    checkpoint_steps: int | None = Field(
        default=None, ge=1, description="steps between checkpoints; there is always one after each epoch"
    )

    def resolve(self, sentence_count: int, dev_entities: int = MIN_DEV_ENTITIES) -> Self:
        """Set automatic batch size, epochs, patience and selection from the size of train and dev.

        Small corpora get small batches and many epochs, so that the number of steps depends little on
        the size. If dev has few entities, all epochs are trained and the last is kept. Given settings
        stay as they are: with ``epochs``, all of them are trained unless ``patience`` is given too, and
        the best is kept.

        >>> resolved = [TrainingSettings().resolve(sentences) for sentences in (20, 100, 922, 5400, 15_000)]
        >>> [(settings.batch_size, settings.epochs, settings.patience) for settings in resolved]
        [(8, 100, 60), (8, 100, 60), (9, 29, 17), (32, 18, 11), (32, 6, 5)]
        """
        update: dict[str, Any] = {}
        batch_size = min(max(sentence_count // 100, MIN_BATCH), MAX_BATCH)
        if self.batch_size is None:
            update["batch_size"] = batch_size
        if self.epochs is None:
            steps_per_epoch = max(1, sentence_count / batch_size)
            epochs = min(max(round(TRAINING_STEPS / steps_per_epoch), MIN_EPOCHS), MAX_EPOCHS)
            update["epochs"] = epochs
        is_tiny = self.epochs is None and self.patience is None and dev_entities < MIN_DEV_ENTITIES
        if self.selection is None:
            update["selection"] = "last" if is_tiny else "best"
        if self.epochs is None and self.patience is None and (self.selection or update["selection"]) == "best":
            update["patience"] = max(MIN_PATIENCE, round(PATIENCE * update["epochs"]))
        return self.model_copy(update=update)


class CalibrationSettings(BaseModel):
    """How the scores of a model's head are calibrated: their log-odds are divided by a temperature, then a bias is added."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    temperature: FiniteFloat = Field(gt=0, description="divides the log-odds of scores")
    bias: FiniteFloat = Field(default=0.0, description="added to the log-odds of scores after the division")


class Config(BaseModel):
    """The configuration of a run. The classes that ``kind`` names validate ``encoder`` and ``head``."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    recipe: str
    title: str = ""
    paper: str = ""
    encoder: dict[str, Any]
    head: dict[str, Any]
    training: TrainingSettings = Field(default_factory=TrainingSettings)
    thresholds: dict[str, Annotated[float, Field(ge=0, le=1)]] | None = Field(
        default=None, description="minimum score by entity type, found on dev after training; by default the head's"
    )
    calibration: CalibrationSettings | None = Field(
        default=None, description="calibration of the scores of entities, fitted on dev after training"
    )

    def to_yaml(self) -> str:
        import yaml  # prediction with ONNX does not need it

        return yaml.safe_dump(self.model_dump(), sort_keys=False, allow_unicode=True)


def encoder_name(values: Mapping[str, Any]) -> str:
    """Name the encoder of a configuration.

    >>> encoder_name({"kind": "concat", "parts": [{"kind": "transformer", "name": "minilm"}, {"kind": "static"}]})
    'minilm + static'
    """
    if values.get("kind") == "concat":
        return " + ".join(map(encoder_name, values["parts"]))
    return str(values.get("name", values["kind"]))


def iter_sections(name: str, values: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a section and its nested sections under dotted names.

    >>> list(iter_sections("head", {"kind": "bundle", "span": {"kind": "spanner"}}))
    [('head', {'kind': 'bundle'}), ('head.span', {'kind': 'spanner'})]
    """
    yield name, {key: value for key, value in values.items() if not isinstance(value, Mapping)}
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from iter_sections(f"{name}.{key}", value)
