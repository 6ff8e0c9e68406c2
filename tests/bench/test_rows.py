"""bench/rows: every row is a training that the present settings accept."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from spanwise.encoders import encoder_settings
from spanwise.heads import head_settings
from spanwise.recipes.catalog import configure

ROWS = Path(__file__).resolve().parents[2] / "bench" / "rows"
FILES = sorted(ROWS.glob("*.yaml"))
ENCODERS = {"static": "static"}  # the others are transformers


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_rows_have_settings_that_exist(file: Path) -> None:
    rows: list[dict[str, Any]] = yaml.safe_load(file.read_text())
    for row in rows:
        options = [str(option) for option in row.get("options", [])]
        overrides = [value for option, value in pairwise(options) if option == "--set"]
        config = configure(row["recipe"], encoder=ENCODERS.get(row["encoder"], "hf:any"), overrides=overrides)
        encoder_settings(config.encoder)
        head_settings(config.head)
    assert len({row["name"] for row in rows}) == len(rows)  # a run folder is named after its row
