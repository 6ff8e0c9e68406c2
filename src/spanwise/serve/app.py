"""FastAPI application: routes and error responses."""

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
from spanwise.serve.batching import Batcher, Query
from spanwise.serve.errors import RequestError
from spanwise.serve.limits import Limits
from spanwise.serve.metrics import Metrics
from spanwise.serve.middleware import METRICS, PREDICT, RequestMiddleware, to_bytes
from spanwise.serve.page import make_page
from spanwise.serve.responses import to_response

JSON = "application/json"
INVALID_JSON = "the body is not valid JSON in UTF-8"
ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": schema.ErrorResponse, "description": "The body is not valid JSON."},
    401: {"model": schema.ErrorResponse, "description": "The token is missing or wrong."},
    408: {"model": schema.ErrorResponse, "description": "The body did not arrive in time."},
    413: {"model": schema.ErrorResponse, "description": "The body or its text is too long."},
    415: {"model": schema.ErrorResponse, "description": "The content type is not application/json."},
    422: {"model": schema.ErrorResponse, "description": "The request does not match the schema."},
    500: {"model": schema.ErrorResponse, "description": "The model failed."},
    503: {"model": schema.ErrorResponse, "description": "Too many open requests; see Retry-After."},
    504: {"model": schema.ErrorResponse, "description": "The prediction took too long."},
}


def make_app(
    predictor: BasePredictor, *, title: str = "model", limits: Limits | None = None, token: str | None = None
) -> FastAPI:  # fmt: skip
    """Build the ASGI application that serves one model."""
    limits, metrics = limits or Limits(), Metrics()
    batcher = Batcher(predictor, limits, metrics)
    page = make_page(title, predictor.types, threshold=predictor.default_threshold, has_token=token is not None)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with batcher.running():
            yield

    app = FastAPI(
        title="Spanwise", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None,
        description="Predict entities and relations in text.",
    )  # fmt: skip
    app.add_middleware(RequestMiddleware, limits=limits, metrics=metrics, token=token)

    @app.get("/", include_in_schema=False)
    async def show_page() -> Response:
        return Response(page.html, media_type="text/html", headers={"content-security-policy": page.policy})

    @app.get("/health")
    async def health() -> schema.Health:
        """Check that the service is running."""
        return schema.Health(status="ok")

    @app.get(METRICS, response_class=Response, responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}})
    async def show_metrics() -> Response:
        """Metrics in the Prometheus text format."""
        return Response(metrics.text(), media_type=Metrics.content_type)

    @app.post(PREDICT, response_class=Response, responses={200: {"model": schema.PredictResponse}, **ERRORS})
    async def predict(request: Annotated[schema.PredictRequest, Body()]) -> Response:
        """Predict entities and relations in a text, several texts, or the words of a sentence."""
        query = _to_query(request)
        if query.characters > limits.max_characters:
            raise RequestError(413, f"the text has {query.characters:,} characters; the limit is {limits.max_characters:,}")
        return Response(to_bytes(to_response(await batcher.predict(query))), media_type=JSON)

    @app.exception_handler(RequestValidationError)
    async def handle_validation_error(request: Request, error: Exception) -> Response:
        first = cast(RequestValidationError, error).errors()[0]
        if first["type"] == "json_invalid":
            return _error_response(400, INVALID_JSON)
        if isinstance(first.get("input"), bytes):  # FastAPI did not parse the body because of its content type
            return _error_response(415, "expected the content type application/json")
        return _error_response(422, schema.validation_message(first))

    @app.exception_handler(HTTPException)
    async def handle_http_error(request: Request, error: Exception) -> Response:
        http_error = cast(HTTPException, error)
        message = INVALID_JSON if http_error.status_code == 400 else str(http_error.detail)
        return _error_response(http_error.status_code, message, http_error.headers)

    _list_types(app, [*predictor.types, *predictor.relation_types])
    return app


def _list_types(app: FastAPI, types: list[str]) -> None:
    """List the types that accept a threshold in the OpenAPI document."""
    for request in (schema.TextRequest, schema.TextsRequest, schema.TokensRequest):
        _, by_type = app.openapi()["components"]["schemas"][request.__name__]["properties"]["threshold"]["oneOf"]
        by_type["propertyNames"] = {"enum": types}


def _to_query(request: schema.TextRequest | schema.TextsRequest | schema.TokensRequest) -> Query:
    texts: list[str] | list[list[str]]
    if isinstance(request, schema.TokensRequest):
        texts = [request.tokens]
    else:
        texts = [request.text] if isinstance(request, schema.TextRequest) else request.texts
    return Query(texts, request.threshold, request.overlap)


def _error_response(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    return Response(to_bytes({"error": message}), status, dict(headers or {}), JSON)
