"""Start all processes of ``accelerate launch --cpu --num_processes N``.

Without MPI, Accelerate starts a single process on a CPU and sets the address of the others. This process
is then replaced by ``torchrun``, which starts all of them. Imports no torch.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from spanwise.core.errors import SpanwiseError

_ADVICE = "start them with torchrun --nproc-per-node N -m spanwise …"


def start_missing_processes() -> None:
    """Replace this process by several if Accelerate should have started several on a CPU."""
    if not is_single_of_several(os.environ):
        return
    count = requested_processes(_launcher_arguments())
    if count is None:
        raise SpanwiseError(f"accelerate launch has started one process instead of several; {_ADVICE}")
    if count > 1:
        address = ("--master-addr", os.environ["MASTER_ADDR"], "--master-port", os.environ["MASTER_PORT"])
        launcher = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(count), *address)
        sys.stdout.flush()
        sys.stderr.flush()
        os.execv(sys.executable, (*launcher, *sys.orig_argv[1:]))


def is_single_of_several(environment: Mapping[str, str]) -> bool:
    """Whether Accelerate has prepared several processes on a CPU, but not started them.

    >>> is_single_of_several({"ACCELERATE_USE_CPU": "True", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"})
    True
    """
    has_address = "MASTER_ADDR" in environment and "MASTER_PORT" in environment
    return environment.get("ACCELERATE_USE_CPU", "").lower() in ("true", "1") and has_address and "RANK" not in environment


def requested_processes(arguments: Sequence[str]) -> int | None:
    """The number of processes on this machine in the arguments of ``accelerate launch``; None if it is unknown.

    >>> requested_processes(["accelerate", "launch", "--cpu", "--num_processes", "2", "-m", "spanwise"])
    2
    >>> requested_processes(["accelerate", "launch", "--num-processes=4", "--num_machines=2"]) is None
    True
    """
    values: dict[str, str] = {}
    for index, argument in enumerate(arguments):
        name, _, value = argument.replace("-", "_").removeprefix("__").partition("=")
        if name in ("num_processes", "num_machines"):
            values.setdefault(name, value or (arguments[index + 1] if index + 1 < len(arguments) else ""))
    count = values.get("num_processes", "")
    return int(count) if count.isdecimal() and values.get("num_machines", "1") == "1" else None


def _launcher_arguments() -> list[str]:
    """The command line of the process that started this one."""
    try:
        import psutil  # type: ignore[import-untyped]  # a dependency of Accelerate

        parent = psutil.Process().parent()
        return list(parent.cmdline()) if parent is not None else []
    except Exception:  # no permission, or no such process any more
        return []
