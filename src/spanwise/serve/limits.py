"""What a service takes on, so that no request and no crowd of requests can bring it down."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What is over is refused with a status that says so."""

    body: int = 2 * 1024 * 1024  # bytes of a request (413)
    characters: int = 100_000  # of all texts of a request together (413)
    words: int = 1000  # of one sentence, which is predicted at once (422)
    waiting: int = 256  # requests that wait or are being answered (503)
    seconds: float = 30.0  # for a request to arrive (408) and to be answered (504)
