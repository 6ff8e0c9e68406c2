"""Fixtures for the tests of commands."""

from __future__ import annotations

import pytest
from cli_runner import Result, Runner

from spanwise.cli import main


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Runner:
    def call(*arguments: object) -> Result:
        with pytest.raises(SystemExit) as exited:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return Result(int(exited.value.code or 0), out, err)

    return call
