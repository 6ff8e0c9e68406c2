"""Requests of Label Studio as pydantic models. Only the keys that are used are checked; others are ignored."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from spanwise.serve.errors import RequestError
from spanwise.serve.limits import Limits
from spanwise.serve.parsing import check_content_type, parse_json
from spanwise.serve.schema import Text

BYTES_PER_ITEM = 8  # of a request, at least; regions have about 20


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, dict) else value


class _Message(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)


MessageT = TypeVar("MessageT", bound=_Message)


class Task(_Message):
    id: int | str | None = None
    data: dict[str, Any]


class PredictRequest(_Message):
    """The body of ``POST /predict``."""

    tasks: list[Task]
    label_config: Text


class SetupRequest(_Message):
    """The body of ``POST /setup``. ``schema`` is the labelling configuration."""

    configuration: Text = Field(alias="schema")


class Project(_Message):
    id: int
    label_config: Text | None = None


class Annotation(_Message):
    id: int
    result: list[dict[str, Any]] | None = None
    was_cancelled: bool | None = None
    ground_truth: bool | None = None
    updated_at: str | None = None


class Identified(_Message):
    id: int


# One object or a list of them: actions on one annotation and on several have the same key.
Annotations: TypeAlias = Annotated[list[Annotation], BeforeValidator(_as_list)]
Tasks: TypeAlias = Annotated[list[Task], BeforeValidator(_as_list)]


class Action(_Message):
    """The action of a webhook, whose other keys depend on it."""

    action: str


class AnnotationsSaved(_Message):
    """Annotations that were created or updated, and the task of each."""

    project: Project
    annotation: Annotations
    task: Tasks


class AnnotationsDeleted(_Message):
    project: Project
    annotations: list[Identified]


class TasksDeleted(_Message):
    project: Project
    tasks: list[Identified]


def parse_body(body: bytes, content_type: str, limits: Limits) -> Any:
    """Parse JSON; refuse a body with very many items before they are built."""
    check_content_type(content_type)
    return parse_json(body, max(1000, limits.max_body // BYTES_PER_ITEM))


def validate(model: type[MessageT], value: Any) -> MessageT:
    """Return a message; raise ``RequestError`` with the first wrong key."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))[:80]
        raise RequestError(422, f"{place}: {first['msg']}" if place else "expected a JSON object") from None
