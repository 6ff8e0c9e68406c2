"""The choice of a quantisation on dev: the fastest one whose F1 is close enough to that of float32."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from random import Random

from spanwise.core.counting import counted
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Corpus, Sentence
from spanwise.corpora.splits import find_split_files, read_corpus, select_split
from spanwise.evaluation.tasks import EntityTask
from spanwise.export.quantization import (
    CANDIDATES,
    SAFEST,
    Quantization,
    RoundedProduct,
    product_names,
    quantize,
    round_products,
)
from spanwise.prediction.onnx.encoders import transformers
from spanwise.prediction.onnx.predictor import OnnxPredictor
from spanwise.prediction.onnx.record import FLOAT32, QuantizationRecord, TriedQuantization
from spanwise.runtime.progress import ProgressBar, listen

MAX_SENTENCES = 1000  # of dev that each candidate predicts
MAX_ROWS, MAX_SUBWORDS = 64, 4096  # sentences and subwords of dev for whose states weights are rounded
Log = Callable[[str], None]


@dataclass(frozen=True)
class DevData:
    """Gold sentences on which a quantisation is chosen. ``context`` are all sentences of their documents."""

    name: str
    sentences: Sequence[Sentence]
    context: Sequence[Sentence]
    total: int  # sentences before sampling

    @classmethod
    def of(cls, corpus: Corpus, split: str, name: str) -> DevData:
        """At most ``MAX_SENTENCES`` sentences of a split, drawn with a fixed seed."""
        sentences = corpus[split]
        if not any(sentence.entities for sentence in sentences):
            raise SpanwiseError(f"{name}: {split} has no entities; expected gold annotations to choose the quantisation on")
        chosen = sorted(Random(13).sample(range(len(sentences)), min(MAX_SENTENCES, len(sentences))))
        context = [sentence for split_sentences in corpus.splits.values() for sentence in split_sentences]
        return cls(name, [sentences[index] for index in chosen], context, len(sentences))


def score_f1(gold: Sequence[Sentence], predicted: Sequence[Sentence], *, finds_relations: bool) -> float:
    """The F1 of entities or, if gold has relations, the mean of those of entities and relations."""
    task = EntityTask(finds_relations)
    _, value = task.selection_metric(task.score_split(gold, predicted, ()))
    return value


def find_dev_data(dev: str | Path | None, data: str | Path | None) -> DevData | None:
    """Read the dev sentences: those of ``dev``, or the dev split of ``data`` if it has one."""
    if dev is not None:
        corpus = read_corpus(dev)
        split = select_split(corpus.splits, "dev", dev)
        return DevData.of(corpus, split, str(dev))
    if data is not None and "dev" in find_split_files(Path(data)):
        return DevData.of(read_corpus(data), "dev", f"{data} (dev)")
    return None


def quantize_safely(folder: Path) -> QuantizationRecord:
    """Compute all products in blocks, the most exact quantisation that needs no dev data."""
    graphs = FloatGraphs(folder)
    graphs.quantize(SAFEST)
    graphs.remove()
    return QuantizationRecord(chosen=SAFEST.name)


def choose_quantization(folder: Path, dev: DevData, max_loss: float, log: Log) -> QuantizationRecord:
    """Quantise the transformers of an exported model with the first candidate within ``max_loss`` of float32.

    F1 and ``max_loss`` are in points of 100. If no candidate is close enough, float32 stays.
    """
    part = "" if len(dev.sentences) == dev.total else f"{len(dev.sentences):,} of "
    sentences = f"{part}{counted(dev.total, 'sentence')}"
    log(f"choosing the quantisation on {sentences} of {dev.name}: at most {max_loss:g} F1 below float32")
    log(f"{'quantisation':<44}{'F1':>7}{'loss':>7}{'MB':>8}{'ms/sentence':>13}")
    tried = [_try(folder, dev, FLOAT32, None, log)]
    graphs = FloatGraphs(folder)
    graphs.round(dev)
    chosen = FLOAT32
    for candidate in CANDIDATES:
        graphs.quantize(candidate)
        tried.append(_try(folder, dev, candidate.name, tried[0].f1, log))
        if tried[-1].loss <= max_loss:
            chosen = candidate.name
            break
    else:
        graphs.restore()
    graphs.remove()
    return QuantizationRecord(
        chosen=chosen, data=Path(dev.name).name, sentences=len(dev.sentences), max_loss=max_loss, tried=tuple(tried)
    )


class FloatGraphs:
    """The float32 graphs of an exported model's transformers, moved aside while quantised ones take their place."""

    def __init__(self, folder: Path) -> None:
        self.encoders = {encoder.graph.path: encoder for encoder in transformers(OnnxPredictor(folder, "cpu").encoder)}
        self.sources = {path: path.with_name("float32.onnx") for path in self.encoders}
        self.rounded: dict[Path, dict[str, RoundedProduct]] = {path: {} for path in self.encoders}
        for path, source in self.sources.items():
            path.rename(source)

    def round(self, dev: DevData) -> None:
        """Round all products for the states of dev sentences."""
        for path, encoder in self.encoders.items():
            arrays = encoder.graph.select(encoder.collate(encoder.prepare(dev.sentences[:MAX_ROWS], dev.context)))
            rows = max(1, MAX_SUBWORDS // arrays["ids"].shape[1])
            self.rounded[path] = round_products(self.sources[path], {name: array[:rows] for name, array in arrays.items()})

    def quantize(self, quantization: Quantization) -> None:
        """Write the quantised graphs. Without ``round``, all products must be in blocks."""
        for path, source in self.sources.items():
            rounded = self.rounded[path]
            ranked = sorted(rounded, key=lambda name: -rounded[name].error) or product_names(source)
            kept, cut = (ceil(share * len(ranked)) for share in (quantization.float_share, quantization.block_share))
            quantize(source, path, {name: rounded[name] for name in ranked[cut:]}, blocks=ranked[kept:cut])

    def restore(self) -> None:
        for path, source in self.sources.items():
            shutil.copyfile(source, path)

    def remove(self) -> None:
        for source in self.sources.values():
            source.unlink()


def _try(folder: Path, dev: DevData, name: str, exact_f1: float | None, log: Log) -> TriedQuantization:
    """Score the model in a folder on dev, and print a line of the table."""
    predictor, done = OnnxPredictor(folder, "cpu"), 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        bar.show(done, lambda: name)

    started = time.perf_counter()
    with ProgressBar(len(dev.sentences)) as bar, listen(advance):
        predicted = list(predictor.stream(dev.sentences, context=dev.context))
    milliseconds = 1000 * (time.perf_counter() - started) / len(predicted)
    f1 = 100 * score_f1(dev.sentences, predicted, finds_relations=predictor.finds_relations)
    tried = TriedQuantization(
        name=name, f1=f1, loss=0.0 if exact_f1 is None else exact_f1 - f1, megabytes=_megabytes(folder, predictor),
        milliseconds=milliseconds,
    )  # fmt: skip
    log(f"{name:<44}{f1:>7.2f}{tried.loss:>7.2f}{tried.megabytes:>8.1f}{milliseconds:>13.1f}")
    return tried


def _megabytes(folder: Path, predictor: OnnxPredictor) -> float:
    return sum((folder / name).stat().st_size for name in predictor.record.files()) / 1e6
