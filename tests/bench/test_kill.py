"""A short version of ``bench/kill.py``: a dozen kills, at file operations and at random moments."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

KILL = Path(__file__).parents[2] / "bench" / "kill.py"


@pytest.mark.skipif(sys.platform != "linux", reason="kills need fork and /proc")
def test_killed_commands_leave_the_old_or_the_new_output_and_resume_bit_equal() -> None:
    command = [sys.executable, str(KILL), "--kills", "12", "--only", "train,convert,predict,export"]
    command += ["--seed", str(os.getpid())]  # printed by a failure
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    assert "total: 12 kills" in done.stdout
    assert "0 problems" in done.stdout
