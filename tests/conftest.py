"""Fixtures for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from browser import Browser

SHARED = Path(__file__).resolve().parents[1].parent / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real corpora next to the repository; tests are skipped without it."""
    if not SHARED.is_dir():
        pytest.skip("the folder of real corpora, ../shared/data, does not exist")
    return SHARED


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a random BERT with three layers of size 32 and a window of 64 subwords."""
    from tiny import bert

    return bert(tmp_path_factory.mktemp("encoders") / "bert")


@pytest.fixture(scope="session")
def tiny_roberta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a random RoBERTa with a byte-level tokenizer."""
    from tiny import roberta

    return roberta(tmp_path_factory.mktemp("encoders") / "roberta")


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A real browser; tests are skipped without one (``make browser`` installs it)."""
    from browser import Browser, find_browser

    path = find_browser()
    if path is None:
        pytest.skip("Chromium is not installed; run make browser")
    running = Browser(path, tmp_path_factory.mktemp("browser"))
    yield running
    running.close()
