"""Limits that protect the service from large requests, many requests and slow clients."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Requests over a limit are rejected with the status in parentheses."""

    max_body: int = 2 * 1024 * 1024  # bytes of a request (413)
    max_characters: int = 100_000  # of all texts of a request (413)
    max_words: int = 1000  # of a sentence, which is predicted at once (422)
    max_requests: int = 256  # that wait or are being answered (503)
    timeout: float = 30.0  # seconds to receive a request (408), and to answer it (504)
    max_texts: int = 1000  # of a request (413)
    max_connections: int = 1024  # a further one replaces the one that has waited longest
    idle_timeout: float = 30.0  # seconds between the requests of a connection
    max_sentences: int = 10_000  # of a request (413)
    header_timeout: float = 10.0  # seconds from the first byte of a request to the end of its headers (408)


# Label Studio sends all tasks that a user selects in one request, and waits 100 seconds for predictions.
LABEL_STUDIO_LIMITS = Limits(
    max_body=16 * 1024 * 1024, max_characters=2_000_000, max_texts=10_000, max_sentences=100_000, timeout=100.0
)
