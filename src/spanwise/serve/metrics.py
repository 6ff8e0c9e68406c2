"""What a service counts, for Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

POWERS = tuple(2**power for power in range(9))


class Metrics:
    """Counters of one service, in a registry of their own."""

    content_type = CONTENT_TYPE_PLAIN_0_0_4

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self.requests = Counter(
            "spanwise_requests",
            "Requests by path and status of the answer (499: the client left before).",
            ("path", "status"),
            registry=registry,
        )
        self.seconds = Histogram(
            "spanwise_request_seconds", "From a request's first byte to its answer.", ("path",), registry=registry
        )
        self.held = Gauge("spanwise_requests_held", "Predictions that wait or are being made.", registry=registry)
        self.batch = Histogram("spanwise_batch_requests", "Requests predicted together.", buckets=POWERS, registry=registry)
        self.sentences = Counter("spanwise_sentences", "Sentences predicted.", registry=registry)
        self.words = Counter("spanwise_words", "Words predicted.", registry=registry)

    def text(self) -> bytes:
        return generate_latest(self._registry)
