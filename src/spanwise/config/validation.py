"""Validation of settings, with errors that name the wrong key."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, Field, ValidationError

from spanwise.core.errors import SpanwiseError, unknown_name

T = TypeVar("T", bound=BaseModel)


def _check_unique(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        raise ValueError("a name occurs twice")
    return names


# The names of entity or relation types.
TypeNames = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], AfterValidator(_check_unique)]


def validate_settings(model: type[T], values: Any, source: str) -> T:
    """Validate plain values; the error names ``source``, the first wrong key and, if it is unknown, the nearest known one."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            raise unknown_name(f"setting of {source}", key, _keys(model, first["loc"][:-1])) from None
        problem = first["msg"].removeprefix("Value error, ")
        value = repr(first["input"])
        shown = f", found {value}" if key and first["type"] != "missing" and len(value) < 100 else ""
        raise SpanwiseError(f"{source}: {key}{': ' * bool(key)}{problem[:1].lower()}{problem[1:]}{shown}") from None


def _keys(model: type[BaseModel], path: Iterable[Any]) -> list[str]:
    """The known keys of a section, under dotted names."""
    prefix, current = "", model
    for part in path:
        annotation = current.model_fields[part].annotation if part in current.model_fields else None
        models = [
            item for item in (annotation, *get_args(annotation)) if isinstance(item, type) and issubclass(item, BaseModel)
        ]
        if not models:
            return []
        prefix, current = f"{prefix}{part}.", models[0]
    return [prefix + name for name in current.model_fields]
