"""What tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[1].parent / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real corpora beside the repository; a test that needs it is skipped where it is absent."""
    if not SHARED.is_dir():
        pytest.skip("the folder of real corpora, ../shared/data, is not here")
    return SHARED
