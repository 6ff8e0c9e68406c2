"""A short version of ``bench/kill.py``: a dozen kills, at file operations and at random moments."""

from __future__ import annotations

import os
import sys

import pytest
from forked import Forked


def kill(*arguments: str) -> None:
    from kill import main

    sys.argv = ["kill.py", *arguments]
    main()


@pytest.mark.skipif(sys.platform != "linux", reason="kills need fork and /proc")
def test_killed_commands_leave_the_old_or_the_new_output_and_resume_bit_equal() -> None:
    seed = str(os.getpid())  # printed by a failure
    with Forked(lambda: kill("--kills", "12", "--only", "train,convert,predict,export", "--seed", seed)) as process:
        done = process.wait()
    assert done.code == 0, f"seed {seed}\n{done.out}\n{done.err}"
    assert "total: 12 kills" in done.out
    assert "0 problems" in done.out
