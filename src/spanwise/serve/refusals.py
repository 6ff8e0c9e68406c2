"""Requests that are not answered: on purpose, or because something failed."""

from __future__ import annotations

import logging
import traceback

from spanwise.core.errors import SpanwiseError

log = logging.getLogger("spanwise.serve")


class RefusedError(Exception):
    """A status, and one line that says why."""

    def __init__(self, status: int, reason: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(reason)
        self.status, self.reason, self.headers = status, reason, headers or {}


def as_refusal(error: Exception) -> RefusedError:
    """What a client is told of an error. Of one that nobody thought of, the log has the place but not the message, which
    may quote what was sent.
    """
    if isinstance(error, RefusedError):
        return error
    if isinstance(error, SpanwiseError):
        return RefusedError(422, str(error)[:500])
    log.error("%s\n%s", type(error).__name__, "".join(traceback.format_tb(error.__traceback__)).rstrip())
    return RefusedError(500, "the service failed on this request")
