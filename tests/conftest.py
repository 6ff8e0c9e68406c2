"""Fixtures for all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from browser import Browser

SHARED = Path(__file__).resolve().parents[1].parent / "shared" / "data"
# These run first, so that no worker starts one of them when the others have finished.
LONGEST = ("test_processes.py", "test_kill.py", "test_contracts.py", "test_onnx.py")

# No limits on time, which a busy machine would exceed.
settings.register_profile("no limits", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("no limits")


def pytest_configure() -> None:
    """Do not wait for the disk: the outputs of tests need not survive a power cut.

    ``files/test_durable_outputs.py`` tests which files are flushed, and flushes them in other processes.
    """
    os.fsync = lambda handle: None
    os.sync = lambda: None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ranks = {name: rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: ranks.get(item.path.name, len(ranks)))


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


@pytest.fixture
def without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the drawing of figures, which takes most of the time of an analysis."""
    from spanwise.analysis import analyze
    from spanwise.analysis.section import Section
    from spanwise.analysis.writing import RenderedFigure, file_name

    def placeholders(sections: Sequence[Section]) -> dict[str, RenderedFigure]:
        return {
            file_name(section, name): RenderedFigure(b"png", b"<svg></svg>") for section in sections for name in section.figures
        }

    monkeypatch.setattr(analyze, "render_figures", placeholders)


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
