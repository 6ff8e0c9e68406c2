"""What tests of commands share."""

from __future__ import annotations

import pytest
from running import Result, Runner

from spanwise.cli import main


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Runner:
    def call(*arguments: object) -> Result:
        with pytest.raises(SystemExit) as left:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return Result(int(left.value.code or 0), out, err)

    return call
