"""Whatever a file holds, reading it ends in sentences or in one clear error: never in a traceback, never not at all."""

from __future__ import annotations

import json
import random
import re
import signal
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import TEXTS, path_of, put
from strategies import json_values

from spanwise import Entity, Relation, Sentence, SpanwiseError, read, write
from spanwise.cli import main
from spanwise.formats import formats

NAMES = tuple(formats())
EVERY_FORMAT = pytest.mark.parametrize("name", NAMES)


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """Far more time than the block needs; what still takes longer would not have ended."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"not at its end after {seconds} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def is_read_or_refused(path: Path, format: str | None = None) -> str:
    """Says which; any other exception is the test's failure."""
    try:
        for sentence in read(path, format):
            assert isinstance(sentence, Sentence)
    except SpanwiseError as error:
        assert str(path.with_suffix("")) in str(error)  # noqa: PT017
        assert "\n" not in str(error)  # noqa: PT017
        return "refused"
    return "read"


@given(content=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass"))))
@settings(max_examples=60, deadline=None)
def test_random_bytes_and_text(content: bytes) -> None:
    with TemporaryDirectory() as folder, within(60):
        for name in NAMES:
            is_read_or_refused(put(name, Path(folder), content), name)
        is_read_or_refused(put("jsonl", Path(folder), content))


@given(values=st.lists(json_values, max_size=4), as_array=st.booleans())
@settings(max_examples=60, deadline=None)
def test_random_json(values: list[Any], as_array: bool) -> None:
    text = json.dumps(values) if as_array else "".join(json.dumps(value) + "\n" for value in values)
    with TemporaryDirectory() as folder, within(60):
        for name in NAMES:
            is_read_or_refused(put(name, Path(folder), text.encode()), name)
        is_read_or_refused(put("jsonl", Path(folder), text.encode()))
