"""Fuzz the readers of all formats with atheris: no traceback, nothing over 5 s or 1 GB.

Each format is fuzzed in its own process and starts from a valid file of the format
(``tests/samples.py``). An input may be read or refused with a ``SpanwiseError``; any other
exception, a time-out or too much memory is a finding. libFuzzer writes its input to
``crashes/FORMAT/``, and the test suite replays that folder.

atheris is the extra ``fuzz``: pip install 'spanwise[fuzz]'.

    python bench/fuzz/readers.py --runs 50000            # all formats, 1,000,000 inputs
    python bench/fuzz/readers.py --only conll --runs 1000
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
CRASHES = HERE / "crashes"
SECONDS, MEGABYTES, LONGEST = 5, 1024, 1 << 16


def read_bytes(name: str, data: bytes, folder: Path) -> None:
    """Read ``data`` as a file of a format, both named and detected. Any error but ``SpanwiseError`` is raised."""
    from spanwise import SpanwiseError
    from spanwise.formats import Ledger, formats, read

    suffix = next(iter(formats()[name].extensions), ".txt")
    if name == "brat":  # a text and its annotations, separated by a zero byte
        text, _, annotations = data.partition(b"\0")
        path = folder / "brat"
        path.mkdir(exist_ok=True)
        (path / "d.txt").write_bytes(text)
        (path / "d.ann").write_bytes(annotations)
    else:
        path = folder / f"input{suffix}"
        path.write_bytes(data)
    for format in (name, None):  # as the user names it, and detected
        try:
            for _ in read(path, format, Ledger()):
                pass
        except SpanwiseError:
            pass


def seeds(name: str, folder: Path) -> None:
    """Write valid inputs of a format to a folder."""
    sys.path.insert(0, str(HERE.parents[1] / "tests"))
    from samples import BRAT_TEXT, put

    folder.mkdir(parents=True, exist_ok=True)
    sample = put(name, folder.parent / f"{name}-sample").read_bytes()
    (folder / "seed").write_bytes(BRAT_TEXT.encode() + b"\0" + sample if name == "brat" else sample)


def fuzz(name: str, runs: int, seed: int, work: Path) -> None:
    """Run libFuzzer on one format; this process ends with it."""
    import atheris

    with atheris.instrument_imports(include=["spanwise.formats", "spanwise.files", "spanwise.text", "spanwise.core"]):
        from spanwise.formats import formats
    formats()
    seeds(name, work / "corpus" / name)
    (CRASHES / name).mkdir(parents=True, exist_ok=True)
    folder = work / f"files-{name}"
    folder.mkdir(parents=True, exist_ok=True)
    one_input: Callable[[bytes], None] = lambda data: read_bytes(name, data, folder)  # noqa: E731
    atheris.Setup(
        [
            sys.argv[0], str(work / "corpus" / name), f"-runs={runs}", f"-seed={seed}", f"-timeout={SECONDS}",
            f"-rss_limit_mb={MEGABYTES}", f"-max_len={LONGEST}", f"-artifact_prefix={CRASHES / name}/", "-print_final_stats=1",
        ],
        one_input,
    )  # fmt: skip
    atheris.Fuzz()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=50_000, help="inputs per format")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="one format")
    parser.add_argument("--work", type=Path, default=Path("/tmp/spanwise-fuzz"), help="scratch folder; a RAM disk is fastest")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        fuzz(options.only, options.runs, options.seed, options.work)
        return
    from spanwise.formats import formats

    waiting = [options.only] if options.only else list(formats())
    running: dict[str, tuple[subprocess.Popen[bytes], float]] = {}
    failed, total = [], 0
    while waiting or running:
        while waiting and len(running) < options.jobs:
            name = waiting.pop(0)
            log = options.work / f"{name}.log"
            log.parent.mkdir(parents=True, exist_ok=True)
            command = [
                sys.executable, __file__, "--child", "--only", name, "--runs", str(options.runs), "--seed", str(options.seed),
                "--work", str(options.work),
            ]  # fmt: skip
            running[name] = subprocess.Popen(command, stdout=log.open("wb"), stderr=subprocess.STDOUT), time.monotonic()
        time.sleep(0.2)
        for name, (process, start) in list(running.items()):
            if process.poll() is None:
                continue
            del running[name]
            text = (options.work / f"{name}.log").read_text(errors="replace")
            done = next((line.split()[-1] for line in text.splitlines() if "number_of_executed_units" in line), "?")
            total += int(done) if done.isdigit() else 0
            state = "ok" if process.returncode == 0 else f"FAILED, see {options.work / name}.log"
            print(f"{name:14} {done:>9} inputs {time.monotonic() - start:7.1f} s  {state}", flush=True)
            if process.returncode:
                failed.append(name)
    print(f"{total:,} inputs, {len(failed)} formats with findings{': ' * bool(failed)}{', '.join(failed)}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
