"""What programs send and get, as pydantic models: they check requests, and the OpenAPI document is made of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag

from spanwise.decoding.thresholds import LOWEST

GIVE_ONE = "expected an object with one of text, texts and tokens"


def _unicode(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("half of a surrogate pair is no Unicode text") from None
    return text


Text: TypeAlias = Annotated[str, AfterValidator(_unicode)]
Score: TypeAlias = Annotated[float, Field(ge=0, le=1, description="from 0 to 1")]
Range: TypeAlias = Annotated[
    tuple[int, int], Field(description="half-open: the first, and the one behind the last", examples=[[4, 9]])
]
Threshold: TypeAlias = Annotated[
    Annotated[Score, Tag("number")] | Annotated[dict[str, Score], Tag("by type")],
    Discriminator(lambda value: "by type" if isinstance(value, dict) else "number"),
]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    threshold: Threshold = Field(
        0.0,
        description="Leave out entities and relations with a lower score: a number, or numbers by type, where types not named "
        "keep the model's own. 0 leaves it to the model; where it is lower than the model's own, the model finds more. "
        f"What scores less than {LOWEST} is never looked for.",
    )
    overlap: Literal["nested", "flat", "outermost"] | None = Field(
        None, description="Of entities that overlap: all that the model finds (as when left out), the surest, or the outermost."
    )


class OfText(_Request):
    """Raw text."""

    text: Text = Field(description="Split into sentences and words.", examples=["The Bank of Japan is in Tokyo."])


class OfTexts(_Request):
    """Several texts, each by itself."""

    texts: list[Text]


class OfTokens(_Request):
    """The words of one sentence."""

    tokens: list[Annotated[str, Field(min_length=1), AfterValidator(_unicode)]]


def _kind(value: Any) -> str | None:
    given = [key for key in ("text", "texts", "tokens") if isinstance(value, dict) and key in value]
    return given[0] if len(given) == 1 else None


Request: TypeAlias = Annotated[
    Annotated[OfText, Tag("text")] | Annotated[OfTexts, Tag("texts")] | Annotated[OfTokens, Tag("tokens")],
    Discriminator(_kind, custom_error_type="kind", custom_error_message=GIVE_ONE),
]


class FoundEntity(BaseModel):
    type: str
    text: str = Field(description="What it says; fragments joined by single spaces.")
    score: float | None
    characters: list[Range] = Field(
        description="Characters of the text; several ranges where words between do not belong to it."
    )
    spans: list[Range] = Field(description="The same as words of the sentence.")


class FoundRelation(BaseModel):
    type: str
    head: int = Field(description="A place among the sentence's entities.")
    tail: int
    score: float | None


class FoundSentence(BaseModel):
    start: int = Field(description="Where the sentence begins in the text. Characters are counted as Unicode code points.")
    end: int
    text: str
    words: list[Range] = Field(description="Characters of the text.")
    entities: list[FoundEntity]
    relations: list[FoundRelation]


class Result(BaseModel):
    sentences: list[FoundSentence]


class Answer(BaseModel):
    """A result for each text."""

    results: list[Result]


class Health(BaseModel):
    status: Literal["ok"]


class Refusal(BaseModel):
    """Why a request is not answered."""

    error: str


def problem(error: Mapping[str, Any]) -> str:
    """What is wrong with a request, without quoting it.

    >>> problem({"loc": ("body", "text", "threshold", "number"), "type": "float_type", "msg": "Input should be a valid number"})
    'threshold: Input should be a valid number'
    """
    place = [str(part) for part in error["loc"][2:] if part not in ("number", "by type", "[key]")]
    if not place:
        return GIVE_ONE if error["type"] in ("kind", "missing") else str(error["msg"])
    return f"{'.'.join(place)[:80]}: {error['msg']}"
