"""Fixtures for all tests."""

from __future__ import annotations

import gc
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
LONGEST = (
    "test_processes.py", "test_kill.py", "test_contracts.py", "test_onnx.py", "test_notebooks.py", "test_round_trips.py",
)  # fmt: skip

# No limits on time, which a busy machine would exceed. Examples differ from run to run; --hypothesis-profile=thorough
# tries many more at once.
settings.register_profile("quick", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", settings.get_profile("quick"), max_examples=1000)
settings.load_profile("quick")


def pytest_configure() -> None:
    """Do not wait for the disk: the outputs of tests need not survive a power cut.

    ``files/test_durable_outputs.py`` tests which files are flushed, and flushes them in other processes.
    """
    os.fsync = lambda handle: None
    os.sync = lambda: None
    gc.disable()  # until all modules are imported


def pytest_collection_finish() -> None:
    """Exclude everything that is loaded from garbage collection, and collect less often."""
    gc.freeze()
    gc.get_freeze_count = lambda: 1  # counting them takes 20 ms, and every command does it
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ranks = {name: rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: ranks.get(item.path.name, len(ranks)))


@pytest.fixture(scope="session", autouse=True)
def no_minilm() -> None:
    """Test without MiniLM, also where ``make demo`` has installed it: as the default encoder it would be slow."""
    from spanwise.encoders import pretrained

    pretrained.ALIASES = {"minilm": ("no_such_package", "model")}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of an untrained model, which predicts entities everywhere."""
    import tiny

    folder = tmp_path_factory.mktemp("model") / "run"
    tiny.model("static", "spanner").save(folder)
    return folder


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
