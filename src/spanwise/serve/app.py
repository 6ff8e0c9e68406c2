"""FastAPI application: routes and error responses.

Large requests are parsed, and their responses built, in threads, so that they block no others.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Annotated, Any, cast

from fastapi import Body, FastAPI, Request, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from spanwise.core.version import __version__
from spanwise.decoding.thresholds import threshold_names
from spanwise.prediction.base import BasePredictor
from spanwise.serve import schema
from spanwise.serve.batching import Batcher, Query, Results
from spanwise.serve.errors import RequestError
from spanwise.serve.extension import Encoder, Extension, ServedModel, Service
from spanwise.serve.hosts import AllowedHosts
from spanwise.serve.limits import Limits
from spanwise.serve.metrics import Metrics
from spanwise.serve.middleware import METRICS, PREDICT, RequestMiddleware, to_bytes
from spanwise.serve.page import Page, make_page
from spanwise.serve.parsing import INVALID_JSON, parse_request
from spanwise.serve.responses import to_response
from spanwise.serve.workers import Workers

JSON = "application/json"
ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": schema.ErrorResponse, "description": "The body is not valid JSON."},
    401: {"model": schema.ErrorResponse, "description": "The token is missing or wrong."},
    403: {"model": schema.ErrorResponse, "description": "The Host header is not allowed."},
    408: {"model": schema.ErrorResponse, "description": "The body did not arrive in time."},
    413: {"model": schema.ErrorResponse, "description": "The body or its text is too long, or has too many items."},
    415: {"model": schema.ErrorResponse, "description": "The content type is not application/json."},
    422: {"model": schema.ErrorResponse, "description": "The request does not match the schema."},
    500: {"model": schema.ErrorResponse, "description": "The model failed."},
    503: {"model": schema.ErrorResponse, "description": "Too many open requests; see Retry-After."},
    504: {"model": schema.ErrorResponse, "description": "The prediction took too long."},
}


def make_app(
    predictor: BasePredictor,
    *,
    title: str = "model",
    limits: Limits | None = None,
    token: str | None = None,
    hosts: AllowedHosts | None = None,
    extension: Extension | None = None,
) -> FastAPI:
    """Build the ASGI application that serves one model. ``hosts`` restricts the Host header."""
    limits, metrics, workers = limits or Limits(), Metrics(), Workers()
    batcher, extension = Batcher(limits, metrics, workers), extension or Extension()
    service, page = Service(ServedModel(predictor, title), limits, workers), Page("", "")

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with batcher.running(), extension.running(service):
            yield
        workers.close()

    app = FastAPI(
        title="Spanwise", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None,
        description="Predict entities and relations in text.",
    )  # fmt: skip
    app.add_middleware(RequestMiddleware, limits=limits, metrics=metrics, token=token, hosts=hosts, extension=extension)

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

    _add_prediction(app, service, batcher, extension)

    @app.exception_handler(HTTPException)
    async def handle_http_error(request: Request, error: Exception) -> Response:
        http_error = cast(HTTPException, error)
        message = INVALID_JSON if http_error.status_code == 400 else str(http_error.detail)
        return _error_response(http_error.status_code, message, http_error.headers)

    def describe_model() -> None:
        nonlocal page
        page = _make_page(service.model, has_token=token is not None)
        _list_types(app, service.model.predictor)

    extension.add_routes(app, service)
    service.on_replacement = describe_model
    describe_model()
    return app


def _add_prediction(app: FastAPI, service: Service, batcher: Batcher, extension: Extension) -> None:
    """Add the route of predictions, which an extension may also answer in its own format."""
    limits, workers = service.limits, service.workers

    def parse(body: bytes, content_type: str, model: ServedModel) -> tuple[Query, Encoder]:
        parsed = extension.parse(body, content_type, service, model)
        return parsed or (parse_request(body, content_type, limits), _encode)

    async def answer(request: Request) -> Response:
        body, model = await request.body(), service.model
        content_type = request.headers.get("content-type", "")
        try:
            async with asyncio.timeout(limits.timeout), workers.slot(len(body)):
                query, encode = await workers.call(len(body), parse, body, content_type, model)
                results = await batcher.predict(query, model)
                return Response(await workers.call(query.characters, encode, results), media_type=JSON)
        except TimeoutError:
            raise RequestError(504, f"no prediction within {limits.timeout:g} s") from None

    class PredictRoute(APIRoute):
        """Replaces FastAPI's handler, which parses and validates bodies in the event loop."""

        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            return answer

    async def predict(request: Annotated[schema.PredictRequest, Body()]) -> Response:
        """Predict entities and relations in a text, several texts, or the words of a sentence."""
        raise NotImplementedError  # describes the route; `answer` handles it

    app.router.add_api_route(
        PREDICT, predict, methods=["POST"], response_class=Response, route_class_override=PredictRoute,
        responses={200: {"model": schema.PredictResponse}, **ERRORS},
    )  # fmt: skip


def _make_page(model: ServedModel, *, has_token: bool) -> Page:
    predictor = model.predictor
    return make_page(
        model.title,
        predictor.types,
        threshold=predictor.default_threshold,
        saved=predictor.thresholds,
        lowest=predictor.min_threshold,
        has_token=has_token,
    )


def _list_types(app: FastAPI, predictor: BasePredictor) -> None:
    """List the types that accept a threshold in the OpenAPI document."""
    types = threshold_names(predictor.types, predictor.relation_types)
    for request in (schema.TextRequest, schema.TextsRequest, schema.TokensRequest):
        _, by_type = app.openapi()["components"]["schemas"][request.__name__]["properties"]["threshold"]["oneOf"]
        by_type["propertyNames"] = {"enum": types}


def _encode(results: Results) -> bytes:
    return to_bytes(to_response(results))


def _error_response(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    return Response(to_bytes({"error": message}), status, dict(headers or {}), JSON)
