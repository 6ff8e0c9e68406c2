"""The served model, which can be replaced while the service runs, and further routes of a service."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from fastapi import FastAPI

from spanwise.prediction.base import BasePredictor
from spanwise.serve.limits import Limits

if TYPE_CHECKING:
    from spanwise.serve.batching import Query, Results
    from spanwise.serve.workers import Workers

Encoder: TypeAlias = "Callable[[Results], bytes]"


@dataclass(frozen=True, eq=False)
class ServedModel:
    """A model and its name. A request is answered by the model that was served when it arrived."""

    predictor: BasePredictor
    title: str = "model"


@dataclass
class Service:
    """The state that the routes of a service share. ``on_replacement`` is called after ``model`` was replaced."""

    model: ServedModel
    limits: Limits
    workers: Workers
    on_replacement: Callable[[], None] = field(default=lambda: None)

    def replace_model(self, model: ServedModel) -> None:
        """Answer new requests with another model; call this in the event loop. Open requests keep theirs."""
        self.model = model
        self.on_replacement()


class Extension:
    """Further routes of a service, such as the protocol of an annotation tool.

    Requests to ``posts`` have the limits of predictions on size and time, and need the token, as do
    those to ``gets``. A POST request is not cancelled when its client disconnects.
    """

    posts: frozenset[str] = frozenset()
    gets: frozenset[str] = frozenset()

    def add_routes(self, app: FastAPI, service: Service) -> None:
        """Add the routes to the application."""

    def parse(self, body: bytes, content_type: str, service: Service, model: ServedModel) -> tuple[Query, Encoder] | None:
        """Parse a body of ``/predict`` in another protocol; None for a request of the service itself."""
        return None

    @asynccontextmanager
    async def running(self, service: Service) -> AsyncIterator[None]:
        """Run what the extension does between requests."""
        yield
