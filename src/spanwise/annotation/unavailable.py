"""The error of a model that cannot answer any more, as opposed to one that fails on a row."""

from __future__ import annotations

from spanwise.core.errors import SpanwiseError


class ModelUnavailableError(SpanwiseError):
    """The process that runs the model is gone."""
