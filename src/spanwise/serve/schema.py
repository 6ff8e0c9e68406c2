"""Requests and responses as pydantic models, for validation and the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag

from spanwise.core.errors import unknown_name
from spanwise.decoding.thresholds import MIN_THRESHOLD

EXPECTED_KEYS = "expected an object with exactly one of text, texts and tokens"


def _check_unicode(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("unpaired surrogate; expected valid Unicode") from None
    return text


Text: TypeAlias = Annotated[str, AfterValidator(_check_unicode)]
Score: TypeAlias = Annotated[float, Field(ge=0, le=1, description="From 0 to 1.")]
Range: TypeAlias = Annotated[tuple[int, int], Field(description="Start (inclusive) and end (exclusive).", examples=[[4, 9]])]
Threshold: TypeAlias = Annotated[
    Annotated[Score, Tag("number")] | Annotated[dict[str, Score], Tag("by type")],
    Discriminator(lambda value: "by type" if isinstance(value, dict) else "number"),
]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    threshold: Threshold = Field(
        0.0,
        description="Drop entities and relations with a lower score. A number, or numbers by type; other types use the "
        "model's default threshold, and so does 0. If entities and relations have a type of the same name, entity:NAME and "
        "relation:NAME set their thresholds separately. A value below the model's default returns more predictions, but "
        f"never those that score less than {MIN_THRESHOLD} before calibration.",
    )
    overlap: Literal["nested", "flat", "outermost"] | None = Field(
        None,
        description="Which overlapping entities to return: all (nested, the default), the most probable (flat), or the "
        "outermost.",
    )


class TextRequest(_Request):
    """Raw text."""

    text: Text = Field(
        description="The service splits it into sentences and words.", examples=["The Bank of Japan is in Tokyo."]
    )


class TextsRequest(_Request):
    """Several independent texts."""

    texts: list[Text]


class TokensRequest(_Request):
    """The words of one sentence."""

    tokens: list[Annotated[str, Field(min_length=1), AfterValidator(_check_unicode)]]


def _kind(value: Any) -> str | None:
    given = [key for key in ("text", "texts", "tokens") if isinstance(value, dict) and key in value]
    return given[0] if len(given) == 1 else None


PredictRequest: TypeAlias = Annotated[
    Annotated[TextRequest, Tag("text")] | Annotated[TextsRequest, Tag("texts")] | Annotated[TokensRequest, Tag("tokens")],
    Discriminator(_kind, custom_error_type="kind", custom_error_message=EXPECTED_KEYS),
]


class PredictedEntity(BaseModel):
    type: str
    text: str = Field(description="Text of the entity; fragments are joined by a space.")
    score: float | None
    characters: list[Range] = Field(description="Character ranges in the text; several if the entity is discontinuous.")
    spans: list[Range] = Field(description="Word ranges in the sentence.")


class PredictedRelation(BaseModel):
    type: str
    head: int = Field(description="Index of an entity of the sentence.")
    tail: int = Field(description="Index of an entity of the sentence.")
    score: float | None


class PredictedSentence(BaseModel):
    start: int = Field(description="Start of the sentence in the text, in Unicode code points.")
    end: int = Field(description="End of the sentence in the text (exclusive).")
    text: str
    words: list[Range] = Field(description="Character ranges of the words in the text.")
    entities: list[PredictedEntity]
    relations: list[PredictedRelation]


class TextResult(BaseModel):
    sentences: list[PredictedSentence]


class PredictResponse(BaseModel):
    """Predictions for each text."""

    results: list[TextResult]


class Health(BaseModel):
    status: Literal["ok"]


class ErrorResponse(BaseModel):
    """Why the request failed."""

    error: str


def validation_message(error: Mapping[str, Any]) -> str:
    """Describe a validation error without quoting the request.

    >>> error = {"loc": ("text", "threshold", "number"), "type": "float_type", "msg": "Input should be a valid number"}
    >>> validation_message(error)
    'threshold: Input should be a valid number'
    """
    if error["type"] == "extra_forbidden":
        kind, key = error["loc"]
        return str(unknown_name("key", key[:80], (kind, *_Request.model_fields)))
    path = [str(part) for part in error["loc"][1:] if part not in ("number", "by type", "[key]")]
    if not path:
        return EXPECTED_KEYS if error["type"] in ("kind", "missing") else str(error["msg"])
    return f"{'.'.join(path)[:80]}: {str(error['msg']).removeprefix('Value error, ')}"
