"""A smaller encoder, and encoders that are traced once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from encoder_graphs import trace_equal_encoders_once
from tiny import bert


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a random BERT with two layers instead of three."""
    return bert(tmp_path_factory.mktemp("encoders") / "bert", layers=2)


@pytest.fixture(autouse=True, scope="module")
def _graphs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with trace_equal_encoders_once(tmp_path_factory.mktemp("graphs")):
        yield
