"""Prometheus metrics of the service."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

POWERS_OF_TWO = tuple(2**power for power in range(9))


class Metrics:
    """Metrics of one service, in a separate registry."""

    content_type = CONTENT_TYPE_PLAIN_0_0_4

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self.requests = Counter(
            "spanwise_requests",
            "Requests by path and response status (499: the client disconnected first).",
            ("path", "status"),
            registry=registry,
        )
        self.seconds = Histogram(
            "spanwise_request_seconds", "Time from the start of a request to its response.", ("path",), registry=registry
        )
        self.in_progress = Gauge(
            "spanwise_requests_in_progress", "Prediction requests that wait or are being answered.", registry=registry
        )
        self.batch = Histogram(
            "spanwise_batch_requests", "Requests predicted in one batch.", buckets=POWERS_OF_TWO, registry=registry
        )
        self.sentences = Counter("spanwise_sentences", "Predicted sentences.", registry=registry)
        self.words = Counter("spanwise_words", "Predicted words.", registry=registry)

    def text(self) -> bytes:
        return generate_latest(self._registry)
