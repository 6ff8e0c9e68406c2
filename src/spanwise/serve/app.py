"""The service: its paths, and what is refused."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Annotated, Any, cast

from fastapi import Body, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from spanwise.core.version import __version__
from spanwise.prediction.base import BasePredictor
from spanwise.serve import schema
from spanwise.serve.answers import to_answer
from spanwise.serve.batching import Batcher, Question
from spanwise.serve.guard import METRICS, PREDICT, Guard, to_bytes
from spanwise.serve.limits import Limits
from spanwise.serve.metrics import Metrics
from spanwise.serve.page import make_page
from spanwise.serve.refusals import RefusedError

JSON = "application/json"
NO_JSON = "the body is not JSON in UTF-8"
REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": schema.Refusal, "description": "The body is not JSON."},
    401: {"model": schema.Refusal, "description": "The token is missing or wrong."},
    408: {"model": schema.Refusal, "description": "The body did not arrive in time."},
    413: {"model": schema.Refusal, "description": "The body or its text is too long."},
    415: {"model": schema.Refusal, "description": "The body is not said to be JSON."},
    422: {"model": schema.Refusal, "description": "Not a request of this shape."},
    500: {"model": schema.Refusal, "description": "The model failed."},
    503: {"model": schema.Refusal, "description": "Too many requests are waiting; Retry-After says when to try again."},
    504: {"model": schema.Refusal, "description": "The answer took too long."},
}


def make_app(
    predictor: BasePredictor, *, title: str = "model", limits: Limits | None = None, token: str | None = None
) -> FastAPI:  # fmt: skip
    """The service of one model as an ASGI application."""
    limits, metrics = limits or Limits(), Metrics()
    batcher = Batcher(predictor, limits, metrics)
    page = make_page(title, predictor.types, threshold=predictor.own_threshold, has_token=token is not None)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with batcher.running():
            yield

    app = FastAPI(
        title="Spanwise", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None,
        description="Entities and relations found in text.",
    )  # fmt: skip
    app.add_middleware(Guard, limits=limits, metrics=metrics, token=token)

    @app.get("/", include_in_schema=False)
    async def show_page() -> Response:
        return Response(page.html, media_type="text/html", headers={"content-security-policy": page.policy})

    @app.get("/health")
    async def health() -> schema.Health:
        """Whether the service is there."""
        return schema.Health(status="ok")

    @app.get(METRICS, response_class=Response, responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}})
    async def show_metrics() -> Response:
        """Counters in Prometheus' text format."""
        return Response(metrics.text(), media_type=Metrics.content_type)

    @app.post(PREDICT, response_class=Response, responses={200: {"model": schema.Answer}, **REFUSALS})
    async def predict(request: Annotated[schema.Request, Body()]) -> Response:
        """Find entities and relations in a text, several texts, or the words of a sentence."""
        question = _question(request)
        if question.characters > limits.characters:
            raise RefusedError(413, f"{question.characters:,} characters of text, at most {limits.characters:,} are allowed")
        return Response(to_bytes(to_answer(await batcher.answer(question))), media_type=JSON)

    @app.exception_handler(RequestValidationError)
    async def refuse_request(request: Request, error: Exception) -> Response:
        first = cast(RequestValidationError, error).errors()[0]
        if first["type"] == "json_invalid":
            return _refusal(400, NO_JSON)
        if isinstance(first.get("input"), bytes):  # FastAPI reads nothing else as JSON
            return _refusal(415, "expected a body of type application/json")
        return _refusal(422, schema.problem(first))

    @app.exception_handler(HTTPException)
    async def refuse_path(request: Request, error: Exception) -> Response:
        known = cast(HTTPException, error)
        return _refusal(known.status_code, NO_JSON if known.status_code == 400 else str(known.detail), known.headers)

    _name_types(app, [*predictor.types, *predictor.relation_types])
    return app


def _name_types(app: FastAPI, types: list[str]) -> None:
    """Let the service's description say for which types thresholds can be given."""
    for part in (schema.OfText, schema.OfTexts, schema.OfTokens):
        _, by_type = app.openapi()["components"]["schemas"][part.__name__]["properties"]["threshold"]["oneOf"]
        by_type["propertyNames"] = {"enum": types}


def _question(request: schema.OfText | schema.OfTexts | schema.OfTokens) -> Question:
    texts: list[str] | list[list[str]]
    if isinstance(request, schema.OfTokens):
        texts = [request.tokens]
    else:
        texts = [request.text] if isinstance(request, schema.OfText) else request.texts
    return Question(texts, request.threshold, request.overlap)


def _refusal(status: int, reason: str, headers: Mapping[str, str] | None = None) -> Response:
    return Response(to_bytes({"error": reason}), status, dict(headers or {}), JSON)
