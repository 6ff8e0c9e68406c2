"""How many predictions of a model change in 8 bits, for each quantisation and without parts of the rounding.

python bench/quantization.py RUN --data DATA

Exports the model of a run folder to ONNX and quantises its transformers as `spanwise export --int8` does. For
each quantisation it prints F1 on dev and test, the share of test predictions that changed (entities and
relations lost or added, relative to those in float32), the squared error of the states of subwords relative to
their square, and milliseconds per sentence. The last rows are a scale per column without outliers in float32,
without divisors, without compensation, and without all three.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np

from spanwise.core.types import Sentence
from spanwise.corpora.splits import read_corpus
from spanwise.export import quantization, rounding
from spanwise.export.choice import DevData, FloatGraphs, score_f1
from spanwise.export.onnx import export_onnx
from spanwise.prediction.onnx.encoders import transformers
from spanwise.prediction.onnx.predictor import OnnxPredictor

COLUMNS = quantization.CANDIDATES[0]
STATES = 48  # sentences of test whose states are compared
PARTS: dict[str, dict[str, Any]] = {
    "outliers": {"MAX_OUTLIERS": 0},
    "divisors": {"LIMITS": (1.0,)},
    "compensation": {"_compensation": lambda rows: np.eye(rows.shape[1])},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    arguments = parser.parse_args()
    corpus = read_corpus(arguments.data)
    with TemporaryDirectory() as work:
        folder = Path(work) / "model"
        export_onnx(arguments.run, folder)
        measure = partial(Measure, folder, corpus)
        exact = measure()
        print(f"{'quantisation':<36}{'dev F1':>8}{'test F1':>9}{'changed':>9}{'states':>10}{'ms':>7}")
        print(exact.format("float32", exact))
        graphs = FloatGraphs(folder)
        dev = DevData.of(corpus, "dev", "dev")
        graphs.round(dev)
        for candidate in quantization.CANDIDATES:
            graphs.quantize(candidate)
            print(measure().format(candidate.name, exact), flush=True)
        for names in (["outliers"], ["divisors"], ["compensation"], list(PARTS)):
            with without(names):
                graphs.round(dev)
            graphs.quantize(COLUMNS)
            print(measure().format(f"columns without {'these' if len(names) > 1 else names[0]}", exact), flush=True)


@contextmanager
def without(names: Sequence[str]) -> Iterator[None]:
    """Round without some parts."""
    values = {name: value for part in names for name, value in PARTS[part].items()}
    with patch.multiple(rounding, **values):
        yield


class Measure:
    """The predictions of the model in a folder on dev and test, and the states of some test sentences."""

    def __init__(self, folder: Path, corpus: Any) -> None:
        predictor = OnnxPredictor(folder, "cpu")
        started = time.perf_counter()
        self.predicted = {name: list(predictor.stream(corpus[name])) for name in ("dev", "test")}
        self.milliseconds = 1000 * (time.perf_counter() - started) / sum(map(len, self.predicted.values()))
        self.f1 = {
            name: 100 * score_f1(corpus[name], sentences, finds_relations=predictor.finds_relations)
            for name, sentences in self.predicted.items()
        }
        self.states = []
        for encoder in transformers(predictor.encoder):
            arrays = encoder.graph.select(encoder.collate(encoder.prepare(corpus["test"][:STATES])))
            self.states.append(encoder.graph.run(arrays)[0][arrays["seen"]])

    def format(self, name: str, exact: Measure) -> str:
        expected, predicted = (set(map(str, items(measure.predicted["test"]))) for measure in (exact, self))
        error = np.mean([np.square(a - b).mean() / np.square(b).mean() for a, b in zip(self.states, exact.states, strict=True)])
        return (
            f"{name:<36}{self.f1['dev']:>8.2f}{self.f1['test']:>9.2f}{len(expected ^ predicted) / len(expected):>9.2%}"
            f"{error:>10.5f}{self.milliseconds:>7.1f}"
        )


def items(sentences: Sequence[Sentence]) -> Iterator[tuple[Any, ...]]:
    """The entities and relations of sentences, comparable between predictions of the same text."""
    for index, sentence in enumerate(sentences):
        yield from ((index, entity.type, entity.fragments) for entity in sentence.entities)
        for relation in sentence.relations:
            ends = (sentence.entities[end].fragments for end in (relation.head, relation.tail))
            yield index, relation.type, *ends


if __name__ == "__main__":
    main()
