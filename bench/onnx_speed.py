"""Prediction speed in torch, ONNX and 8-bit ONNX, relative to the bare encoder in the same runtime.

    python bench/onnx_speed.py RUN --data DATA [--rounds 20] [--clock cpu]

The bare encoders (of a concatenation, the first transformer) get prepared rows of subwords, in the
batches of prediction; prediction starts with words and ends with entities. All contenders take turns
on the same sentences with one thread each, so a busy machine affects all alike. First, the exported
models are compared with the model on the whole split.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from speed import CLOCKS, Times, in_turns

from spanwise.batching.plan import plan
from spanwise.corpora.splits import open_splits
from spanwise.encoders.transformer import TransformerEncoder
from spanwise.export.onnx import export_onnx
from spanwise.prediction.base import BasePredictor
from spanwise.prediction.load import load_torch
from spanwise.prediction.onnx.encoders import transformers
from spanwise.prediction.onnx.predictor import OnnxPredictor, session

REQUIRED = 0.85  # minimum throughput relative to the bare encoder
Batch = Mapping[str, Any]  # ids and seen


@torch.inference_mode()
def forward(encoder: Any, batches: Iterable[Batch]) -> None:
    for batch in batches:
        encoder(input_ids=torch.from_numpy(batch["ids"]), attention_mask=torch.from_numpy(batch["seen"]).long())


def run(graph: Any, batches: Iterable[Batch]) -> None:
    for batch in batches:
        graph.run(None, batch)


def prepared(rows: Any, chosen: Any, batch_size: int) -> list[Batch]:
    """Return the rows of subwords that prediction computes from sentences."""
    items = rows.prepare(chosen)
    costs = np.array([rows.cost(item) for item in items])
    batches = (rows.collate([items[n] for n in numbers]) for numbers in plan(costs, batch_size, None, None))
    return [{name: batch[name] for name in ("ids", "seen")} for batch in batches]


def measured(predictors: Mapping[str, BasePredictor], bare: Mapping[str, Any], sentences: Any, arguments: Any) -> Times:
    times: Times = {}
    predictor = next(predictor for predictor in predictors.values() if isinstance(predictor, OnnxPredictor))
    rows = transformers(predictor.encoder)[0]
    for turn in range(1 + arguments.rounds):  # the first turn is a warm-up
        first = turn * arguments.slice % max(1, len(sentences) - arguments.slice + 1)
        chosen = sentences[first : first + arguments.slice]
        batches = prepared(rows, chosen, arguments.batch_size)
        contenders: dict[str, Callable[[], Any]] = {}
        for name, predictor in predictors.items():
            contenders[f"bare {name}"] = partial(bare[name], batches)
            contenders[name] = partial(predictor.predict, chosen, batch_size=arguments.batch_size)
        in_turns(contenders, turn, times if turn else {}, CLOCKS[arguments.clock])
    return times


def ratio(times: Times, numerator: str, denominator: str) -> list[float]:
    """Return the quartiles of the quotients over the turns."""
    return statistics.quantiles([b / a for a, b in zip(times[numerator], times[denominator], strict=True)], n=4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="run folder")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--split", default="test")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--slice", type=int, default=128, help="sentences to predict per turn")
    parser.add_argument("--clock", choices=CLOCKS, default="cpu", help="cpu: CPU time of this process, for a busy machine")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        names = {"onnx": Path(folder) / "float", "int8": Path(folder) / "int8"}
        for name, out in names.items():
            print(name, export_onnx(arguments.run, out, int8=name == "int8", data=arguments.data), flush=True)
        ours = load_torch(arguments.run, "cpu")
        predictors: dict[str, BasePredictor] = {"torch": ours}
        encoder = next(module for module in ours.model.encoder.modules() if isinstance(module, TransformerEncoder))
        bare: dict[str, Any] = {"torch": partial(forward, encoder.model)}
        for name, out in names.items():
            predictors[name] = predictor = OnnxPredictor(out, "cpu", threads=1)
            bare[name] = partial(run, session(transformers(predictor.encoder)[0].graph.path, "cpu", 1))
        times = measured(
            predictors, bare, list(open_splits(arguments.data, with_annotations=False)[arguments.split]), arguments
        )
    result = {name: {"per_second": arguments.slice / statistics.median(seconds)} for name, seconds in times.items()}
    for name in predictors:
        low, middle, high = ratio(times, name, f"bare {name}")
        result[name] |= {"ratio": middle, "low": low, "high": high}
        whole, alone = (result[key]["per_second"] for key in (name, f"bare {name}"))
        print(
            f"{name:6} {whole:8.1f} sentences/s, its bare encoder {alone:8.1f}: {middle:.3f} [{low:.3f}, {high:.3f}] "
            f"required {REQUIRED}"
        )
    for numerator, denominator in (("onnx", "torch"), ("int8", "onnx"), ("int8", "torch")):
        low, middle, high = ratio(times, numerator, denominator)
        result[f"{numerator} / {denominator}"] = {"ratio": middle, "low": low, "high": high}
        print(f"{numerator} / {denominator} {middle:.2f} [{low:.2f}, {high:.2f}]")
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
