"""From the body of a request to a query. Requests with too many items fail before objects are built."""

from __future__ import annotations

import json
from typing import Any

from pydantic import TypeAdapter, ValidationError

from spanwise.serve import schema
from spanwise.serve.batching import Query
from spanwise.serve.errors import RequestError
from spanwise.serve.limits import Limits

INVALID_JSON = "the body is not valid JSON in UTF-8"
MAX_KEYS = 1000  # of a request and of its thresholds
_REQUEST: TypeAdapter[schema.TextRequest | schema.TextsRequest | schema.TokensRequest] = TypeAdapter(schema.PredictRequest)


def parse_request(body: bytes, content_type: str, limits: Limits) -> Query:
    """Parse and validate a request; raise ``RequestError`` if it is invalid or too large."""
    check_content_type(content_type)
    if not body:
        raise RequestError(422, schema.EXPECTED_KEYS)
    # Each comma or bracket either belongs to a text, whose characters are limited, or separates items.
    value = parse_json(body, limits.max_characters + max(limits.max_texts, limits.max_words) + 2 * MAX_KEYS)
    _check_counts(value, limits)
    try:
        request = _REQUEST.validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        raise RequestError(422, schema.validation_message(first)) from None
    query = to_query(request)
    if query.characters > limits.max_characters:
        raise RequestError(413, f"the text has {query.characters:,} characters; the limit is {limits.max_characters:,}")
    return query


def check_content_type(content_type: str) -> None:
    """Refuse a body that is not JSON: a form of another web site can send it without asking first."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise RequestError(415, "expected the content type application/json")


def to_query(request: schema.TextRequest | schema.TextsRequest | schema.TokensRequest) -> Query:
    texts: list[str] | list[list[str]]
    if isinstance(request, schema.TokensRequest):
        texts = [request.tokens]
    else:
        texts = [request.text] if isinstance(request, schema.TextRequest) else request.texts
    return Query(texts, request.threshold, request.overlap)


def parse_json(body: bytes, max_marks: int) -> Any:
    """Parse JSON; refuse a body with more commas and brackets than any valid request before its items are built."""
    if sum(body.count(mark) for mark in (b",", b"[", b"{")) > max_marks:
        raise RequestError(413, "the request has too many items")
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise RequestError(400, INVALID_JSON) from None


def _check_counts(value: Any, limits: Limits) -> None:
    """Refuse lists that are too long before their items are validated."""
    if not isinstance(value, dict):
        return
    texts, tokens, threshold = (value.get(key) for key in ("texts", "tokens", "threshold"))
    if isinstance(texts, list) and len(texts) > limits.max_texts:
        raise RequestError(413, f"the request has {len(texts):,} texts; the limit is {limits.max_texts:,}")
    if isinstance(tokens, list) and len(tokens) > limits.max_words:
        raise RequestError(422, f"the sentence has {len(tokens):,} tokens; the limit is {limits.max_words:,}")
    if len(value) > MAX_KEYS or (isinstance(threshold, dict) and len(threshold) > MAX_KEYS):
        raise RequestError(422, f"the request has more than {MAX_KEYS:,} keys")
