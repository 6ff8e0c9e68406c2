"""What tests share."""

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
    """The folder of real corpora beside the repository; a test that needs it is skipped where it is absent."""
    if not SHARED.is_dir():
        pytest.skip("the folder of real corpora, ../shared/data, is not here")
    return SHARED


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a random BERT: three layers, 32 wide, a window of 64 subwords."""
    from tiny import bert

    return bert(tmp_path_factory.mktemp("encoders") / "bert")


@pytest.fixture(scope="session")
def tiny_roberta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a random RoBERTa with a byte-level tokenizer."""
    from tiny import roberta

    return roberta(tmp_path_factory.mktemp("encoders") / "roberta")


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A real browser; a test that needs it is skipped where none is installed (``make browser`` installs one)."""
    from browser import Browser, program

    path = program()
    if path is None:
        pytest.skip("no chromium is installed here; make browser installs one")
    running = Browser(path, tmp_path_factory.mktemp("browser"))
    yield running
    running.close()
