"""CPU time of the first prediction of a new process, in parts.

    python bench/startup.py RUN... [--rounds 10] [--out FILE.json]

RUN is a run folder, an exported folder or the name of an installed model. One process runs ``spanwise
predict RUN one.txt`` on one sentence, one does the same in Python, and one does it step by step: it
reports the CPU time (user and system) after each step. The first step is the interpreter; imports,
loading and the prediction follow. A bare ``import torch`` or ``import onnxruntime``, the runtime of
the model, takes turns with them as a yardstick: on a busy machine all become slower. Every figure is
the median of all rounds, and the minimum in parentheses. Bytecode is cached, as for an installed
package.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from spanwise.prediction.load import model_folder
from spanwise.runs.folder import RunFolder

TEXT = "Marie Curie visited Paris in 1911.\n"
STEPS = ("interpreter", "command line", "runtime", "other imports", "loading", "prediction", "exit")
# The steps of `spanwise predict`. The modules that loading would import are imported before it.
PROGRAM = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
run, text, runtime, *modules = sys.argv[1:]
times = [time.process_time()]
from spanwise import cli
cli._prepare_process()
cli._build_command("predict")
from spanwise.formats import Ledger
from spanwise.inputs.sources import check_input_formats, read_inputs
from spanwise.prediction.load import load
from spanwise.prediction.outputs import print_predictions
from spanwise.runtime.collection import paused_collection
check_input_formats([text])
times.append(time.process_time())
collection = paused_collection()
collection.__enter__()
__import__(runtime)
times.append(time.process_time())
for module in modules:
    __import__(module)
times.append(time.process_time())
predictor = load(run, "cpu", maps_weights=True)
collection.__exit__(None, None, None)
times.append(time.process_time())
print_predictions(predictor.stream(read_inputs([text], None, Ledger()), batch_size=64))
sys.stdout.flush()
times.append(time.process_time())
sys.stderr.write(json.dumps(times))
"""


def modules_of(run: str) -> list[str]:
    """The modules that prediction with a model needs, the runtime first."""
    if RunFolder(model_folder(run)).is_onnx:
        return ["onnxruntime", "spanwise.prediction.onnx.predictor"]
    return ["torch", "spanwise.models.model", "spanwise.prediction.predictor", "spanwise.encoders.transformer"]


class Processes:
    """New processes with one thread and a cache of bytecode in a temporary folder."""

    def __init__(self, folder: Path) -> None:
        self.text = folder / "one.txt"
        self.text.write_text(TEXT, encoding="utf-8")
        self.environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        self.environment |= {"PYTHONPYCACHEPREFIX": str(folder / "bytecode"), "OMP_NUM_THREADS": "1", "PYTHONSAFEPATH": "1"}

    def run(self, *arguments: str) -> tuple[float, str]:
        """The CPU time of a process of this interpreter in seconds, and its standard error."""
        before = _children_cpu()
        done = subprocess.run(
            [sys.executable, *arguments], env=self.environment, capture_output=True, text=True, check=True
        )  # fmt: skip
        return _children_cpu() - before, done.stderr

    def bare_import(self, module: str) -> float:
        return self.run("-c", f"import {module}")[0]

    def command(self, run: str) -> float:
        return self.run("-m", "spanwise", "predict", run, str(self.text), "--device", "cpu")[0]

    def python(self, run: str) -> float:
        return self.run("-c", f"import spanwise; spanwise.load({run!r}, 'cpu').predict({TEXT!r})")[0]

    def steps(self, run: str) -> list[float]:
        """The CPU time of each step of a prediction."""
        total, report = self.run("-c", PROGRAM, run, str(self.text), *modules_of(run))
        times = [*json.loads(report), total]
        return [times[0], *(after - before for before, after in itertools.pairwise(times))]


def _children_cpu() -> float:
    """The CPU time of all finished child processes; ``os.times`` counts in steps of 10 ms."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure(run: str, rounds: int, processes: Processes) -> dict[str, list[float]]:
    """The median and minimum CPU time of the command, of its steps, of Python, and of the bare import of its runtime."""
    runtime = modules_of(run)[0]
    rows: list[dict[str, float]] = []
    for number in range(rounds + 1):
        row = {f"bare import {runtime}": processes.bare_import(runtime)}
        row |= {"spanwise predict": processes.command(run), "in Python": processes.python(run)}
        row |= dict(zip(STEPS, processes.steps(run), strict=True))
        if number:  # the first round fills the caches
            rows.append(row)
    values = {name: [row[name] for row in rows] for name in rows[0]}
    return {name: [round(statistics.median(times), 3), round(min(times), 3)] for name, times in values.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", metavar="RUN")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--out", type=Path, metavar="FILE.json")
    options = parser.parse_args(arguments)
    results: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        processes = Processes(Path(folder))
        for run in options.runs:
            source = str(Path(run).resolve()) if Path(run).exists() else run
            results[run] = measures = measure(source, options.rounds, processes)
            print(run)
            for name, (median, minimum) in measures.items():
                print(f"  {name:<24}{median:6.2f} ({minimum:.2f}) s")
    if options.out:
        options.out.write_text(json.dumps({"load average": os.getloadavg()[0], "runs": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
