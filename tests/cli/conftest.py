"""Fixtures for the tests of commands."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from unittest.mock import patch

import pytest
from cli_runner import Result, Runner

from spanwise.cli import main


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Iterator[Runner]:
    """Runs a command in this process. The option ``--threads`` does not affect the tests that follow."""

    def call(*arguments: object) -> Result:
        with pytest.raises(SystemExit) as exited:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return Result(int(exited.value.code or 0), out, err)

    with patch.dict(os.environ):
        yield call
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)
