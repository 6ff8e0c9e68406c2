"""What a run is made of: encoder, head and training settings, from a recipe and what the user says besides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from spanwise.errors import SpanwiseError, unknown

# The files of a run folder without which there is no model.
CONFIG, LABELS, WEIGHTS = "config.yaml", "labels.json", "model.safetensors"
# What a training began with, there until it ends, and then its report.
BEGAN, REPORT = "began.json", "run.json"
# What several runs in one folder began with.
ASKED = "asked.json"
# What training and exporting write, an encoder's own files among it.
_OF_A_RUN = (
    CONFIG, LABELS, WEIGHTS, BEGAN, REPORT, "*.onnx", "*.jsonl", "*.txt", "*.model", "config.json", "onnx.json",
    "static_encoder.json", "tokenizer*.json", "*vocab*.json", "*tokens*.json",
)  # fmt: skip
DEFAULT_RECIPE = "spanner"

T = TypeVar("T", bound=BaseModel)


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


def is_run_folder(folder: Path) -> bool:
    """Whether a folder says that it holds a trained model."""
    return (folder / CONFIG).is_file() and (folder / LABELS).is_file()


def is_unfinished(folder: Path) -> bool:
    """Whether a folder's training has begun and not ended. Exported models have neither file."""
    return (folder / BEGAN).is_file() and not (folder / REPORT).is_file()


def files_of_run(folder: Path) -> list[Path]:
    """The files of a run folder that are its own; others, results say, may lie beside them."""
    return [file for pattern in _OF_A_RUN for file in folder.glob(pattern)]


def runs_in(folder: Path) -> list[Path]:
    """The runs that a folder holds, as trainings with several seeds, folds or settings leave them; seed-2 before seed-10."""
    found = [run.parent for run in folder.glob(f"*/{CONFIG}")]
    return sorted(found, key=lambda run: (len(run.name), run.name))


def read_config(folder: Path) -> Config:
    """The configuration of a run folder."""
    try:
        values = yaml.safe_load((folder / CONFIG).read_text(encoding="utf-8"))
    except (yaml.YAMLError, ValueError) as error:
        raise SpanwiseError(f"{folder / CONFIG}: cannot be read: {' '.join(str(error).split())}") from None
    return checked(Config, values, str(folder / CONFIG))


def recipes() -> dict[str, dict[str, Any]]:
    """Every recipe by name, as its file says it."""
    found = {}
    for file in sorted(files("spanwise.recipes").iterdir(), key=lambda file: file.name):
        if file.name.endswith(".yaml"):
            found[file.name.removesuffix(".yaml")] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return found


def configure(
    recipe: str, *, encoder: str | None = None, settings: Mapping[str, Any] | None = None, overrides: Iterable[str] = (),
    begun: Config | None = None,
) -> Config:  # fmt: skip
    """The configuration of a recipe with another encoder, training settings, and ``section.key=value`` overrides.

    With ``begun``, the configuration of a training that is to go on, that is what these are said of, and not the recipe.

    >>> configure("spanner", overrides=["head.representation=boundary"]).head["representation"]
    'boundary'
    """
    if begun is not None:
        values = begun.model_dump()
    else:
        known = recipes()
        if recipe not in known:
            raise unknown("recipe", recipe, known)
        values = {"recipe": recipe, **known[recipe]}
    values["encoder"] = dict(values.get("encoder") or {})
    if encoder is not None or _is_open(values["encoder"]):
        values["encoder"] = encoder_values(encoder or default_encoder(), values["encoder"])
    values["training"] = {**(values.get("training") or {}), **{k: v for k, v in (settings or {}).items() if v is not None}}
    for override in overrides:
        _apply(values, override)
    return checked(Config, values, "the configuration")


def sections(name: str, values: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """A section's own settings, then those of the sections within it, under dotted names.

    >>> list(sections("head", {"kind": "bundle", "span": {"kind": "spanner"}}))
    [('head', {'kind': 'bundle'}), ('head.span', {'kind': 'spanner'})]
    """
    yield name, {key: value for key, value in values.items() if not isinstance(value, Mapping)}
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from sections(f"{name}.{key}", value)


def default_encoder() -> str:
    """The encoder of recipes that name none: MiniLM where its package is installed, else static. Neither needs a network."""
    from spanwise.encoders.pretrained import alias_folder

    return "minilm" if alias_folder("minilm") else "static"


def encoder_values(name: str, before: Mapping[str, Any]) -> dict[str, Any]:
    """The encoder section for the name a user wrote: ``static``, an alias, a folder or a hub name.

    Where a recipe puts a transformer beside other parts, it is the transformer that is named, and ``static`` leaves it out.

    >>> parts = [{"kind": "transformer", "layers": 4}, {"kind": "static"}]
    >>> encoder_values("minilm", {"kind": "concat", "parts": parts})["parts"]
    [{'kind': 'transformer', 'layers': 4, 'name': 'minilm'}, {'kind': 'static'}]
    """
    kind = "static" if name == "static" else "transformer"
    named = {"kind": kind} if kind == "static" else {"kind": kind, "name": name}
    if before.get("kind") != "concat":
        return {"kind": kind, **(before if before.get("kind") == kind else {}), **named}
    parts = [dict(part) for part in before["parts"]]
    if kind == "transformer":
        return {**before, "parts": [{**part, **named} if part["kind"] == kind else part for part in parts]}
    # One part alone needs no other encoder above it: it has the same BiLSTM of its own.
    alone = next((part for part in parts if part["kind"] == kind), named)
    return {**alone, **{key: before[key] for key in ("hidden", "dropout") if key in before}, "layers": 1}


def _is_open(values: Mapping[str, Any]) -> bool:
    """Whether an encoder section leaves it to the user which pretrained encoder is taken."""
    if values.get("kind") == "concat":
        return any(_is_open(part) for part in values["parts"])
    return not values or (values["kind"] == "transformer" and "name" not in values)


def _apply(values: dict[str, Any], override: str) -> None:
    """Set what an override says, at any depth; sections on the way that are not there yet are made."""
    key, equals, text = override.partition("=")
    section, *names = key.split(".")
    if not equals or not names or not all(names):
        raise SpanwiseError(f"--set {override}: expected section.key=value, as in head.representation=boundary")
    if section not in ("encoder", "head", "training"):
        raise unknown("section", section, ("encoder", "head", "training"))
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        raise SpanwiseError(f"--set {override}: {text!r} is not a value") from None
    values[section] = _replaced(values[section], names, value, f"--set {override}: {section}")


def _replaced(values: Any, path: Sequence[str], value: Any, place: str) -> Any:
    """``values`` with another value at the end of the path; a number is a place in a list.

    >>> _replaced({"parts": [{"size": 3}]}, ["parts", "0", "size"], 5, "")
    {'parts': [{'size': 5}]}
    """
    if not path:
        return value
    name, *rest = path
    if isinstance(values, list) and name.isdigit() and int(name) < len(values):
        number = int(name)
        return [*values[:number], _replaced(values[number], rest, value, f"{place}.{name}"), *values[number + 1 :]]
    if not isinstance(values, dict):
        raise SpanwiseError(f"{place} is {values!r} and has no settings of its own")
    return {**values, name: _replaced(values.get(name, {}), rest, value, f"{place}.{name}")}


def checked(model: type[T], values: Any, what: str) -> T:
    """Settings from plain values; an unknown key is an error that names the nearest known one."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            raise unknown(f"setting of {what}", place, _keys(model, first["loc"][:-1])) from None
        problem = first["msg"].removeprefix("Value error, ")
        value = repr(first["input"])
        found = f", found {value}" if place and first["type"] != "missing" and len(value) < 100 else ""
        raise SpanwiseError(f"{what}: {place}{': ' * bool(place)}{problem[:1].lower()}{problem[1:]}{found}") from None


def _keys(model: type[BaseModel], path: Iterable[Any]) -> list[str]:
    prefix, current = "", model
    for part in path:
        prefix += f"{part}."
        current = current.model_fields[part].annotation  # type: ignore[assignment]
    return [prefix + name for name in current.model_fields]
