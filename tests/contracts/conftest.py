"""A smaller encoder for tests that train or export many models."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny import bert


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a random BERT with two layers instead of three."""
    return bert(tmp_path_factory.mktemp("encoders") / "bert", layers=2)
