"""Errors that the service returns to clients."""

from __future__ import annotations

import logging
import traceback

from spanwise.core.errors import SpanwiseError
from spanwise.core.terminal import escape_controls

log = logging.getLogger("spanwise.serve")


class SafeMessages(logging.Filter):
    """Escapes control characters, and drops the messages of exceptions, which may quote a request."""

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if record.exc_info and record.exc_info[0]:
            lines = traceback.format_tb(record.exc_info[2])
            message = f"{message.rstrip()}: {record.exc_info[0].__name__}\n{''.join(lines).rstrip()}"
        record.msg, record.args, record.exc_info = escape_controls(message), (), None
        return True


for name in (log.name, "uvicorn.error"):
    logging.getLogger(name).addFilter(SafeMessages())


class RequestError(Exception):
    """An HTTP status with a message of one line."""

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, message, headers or {}


def to_request_error(error: Exception) -> RequestError:
    """Convert an error that a request caused; unexpected errors become internal errors."""
    if isinstance(error, RequestError):
        return error
    if isinstance(error, SpanwiseError):
        return RequestError(422, str(error)[:500])
    return to_internal_error(error)


def to_internal_error(error: Exception) -> RequestError:
    """Convert an error of the model, such as a damaged file, which the client cannot fix.

    It is logged with its traceback but without its message, which may quote the request.
    """
    log.error("%s\n%s", type(error).__name__, "".join(traceback.format_tb(error.__traceback__)).rstrip())
    return RequestError(500, "internal error")
