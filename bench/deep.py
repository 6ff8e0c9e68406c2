"""Cost of deep spans: the paper's literal form, packed and pruned deep spans, and shallow spans.

    python bench/deep.py --device cpu|cuda [--encoder minilm] [--widths 12 18 25] [--lengths 32 64 128] [--batch-size 16]
                         [--turns 3] [--clock wall|cpu] [--json FILE]

Time is that of forward and backward of the whole model with its encoder, in training mode. Each sentence
of a batch has the given number of words (of one subword), and an entity starts at every eighth word. All
contenders take turns in random order on the same sentences. A ratio is the median of the quotients over
the turns, with quartiles. Float32; TF32 products on CUDA, with CUDA graphs of the encoder as in training.

``literal`` and ``packed`` are the same model. Both and ``shallow`` have the BiLSTM of the paper, which
``pruned`` does not have; compare it with ``packed, no LSTM`` and ``shallow, no LSTM``. "Saved" is the
memory that autograd keeps for the backward pass without parameters, which can be measured on any device.
On CUDA the peak above the memory before the step is measured too. FLOPs are those of products and
attention, without LSTMs. The literal form is skipped if its projected keys and values alone need more
than ``--literal-limit`` GiB.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from literal_spans import LiteralSpan
from speed import CLOCKS
from torch.utils.flop_counter import FlopCounterMode

from spanwise.batching.batches import make_batch
from spanwise.core.types import Entity, Sentence
from spanwise.encoders.transformer import TransformerEncoder
from spanwise.encoders.transformer_settings import TransformerSettings
from spanwise.heads import head_settings
from spanwise.heads.abilities import UsesCudaGraphs, heads_with
from spanwise.heads.base import Head, Labels
from spanwise.heads.deep_span import DeepSpan, ShallowSpan
from spanwise.heads.pruned_span import PrunedSpan

LITERAL, PACKED, BARE, PRUNED, SHALLOW, BARE_SHALLOW = (
    "literal", "packed", "packed, no LSTM", "pruned", "shallow", "shallow, no LSTM",
)  # fmt: skip
HEADS: dict[str, tuple[type[Head], dict[str, Any]]] = {
    LITERAL: (LiteralSpan, {"kind": "deep-span"}),
    PACKED: (DeepSpan, {"kind": "deep-span"}),
    BARE: (DeepSpan, {"kind": "deep-span", "lstm": 0}),
    PRUNED: (PrunedSpan, {"kind": "deep-span-pruned"}),
    SHALLOW: (ShallowSpan, {"kind": "shallow-span"}),
    BARE_SHALLOW: (ShallowSpan, {"kind": "shallow-span", "lstm": 0}),
}
# (a, b, width, words): the required quotient of the times of a and b.
REQUIRED = {(LITERAL, PACKED, 25, 64): "at least 2", (PRUNED, SHALLOW, 18, 32): "at most 1.5"}
RATIOS = ((LITERAL, PACKED), (PACKED, SHALLOW), (PRUNED, SHALLOW), (PRUNED, BARE_SHALLOW))
DENSITY = 8  # words per entity


class Contender:
    """A model and one batch."""

    def __init__(self, name: str, sentences: list[Sentence], width: int, arguments: argparse.Namespace) -> None:
        head_class, values = HEADS[name]
        torch.manual_seed(1)
        self.device, self.clock = torch.device(arguments.device), CLOCKS[arguments.clock]
        encoder = TransformerEncoder.build(TransformerSettings(name=arguments.encoder))
        settings = head_settings({**values, "max_width": width, "decoding": "nested"}).resolve(sentences)
        head = head_class.build(encoder, Labels(tuple("ABCDE")), settings)
        if self.device.type == "cuda":
            encoder.enable_cuda_graphs()
            for part in heads_with(head, UsesCudaGraphs):
                part.enable_cuda_graphs()
        self.encoder, self.head = encoder.to(self.device).train(), head.to(self.device).train()
        self.parameters = [*encoder.parameters(), *head.parameters()]
        numbers = np.arange(len(sentences))
        self.batch = make_batch(encoder, head, sentences, encoder.prepare(sentences), numbers, gold=True).to(self.device)

    def forward(self) -> torch.Tensor:
        return self.head.loss(self.encoder(self.batch.inputs), self.batch.targets).mean

    def step(self) -> float:
        """Measure the seconds of forward and backward."""
        self.settle()
        start_time = self.clock()
        self.forward().backward()
        self.settle()
        seconds = self.clock() - start_time
        for parameter in self.parameters:
            parameter.grad = None
        return seconds

    def settle(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def saved(self) -> float:
        """Measure the MiB that autograd keeps for the backward pass, without parameters."""
        parameters = {parameter.untyped_storage().data_ptr() for parameter in self.parameters}
        saved: dict[int, int] = {}

        def keep(tensor: torch.Tensor) -> torch.Tensor:
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in parameters:
                saved[storage.data_ptr()] = storage.nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            loss = self.forward()
        del loss
        return sum(saved.values()) / 2**20

    def peak(self) -> float | None:
        """Measure the peak memory of a step in MiB, above the memory before it."""
        if self.device.type != "cuda":
            return None
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        self.step()
        return (torch.cuda.max_memory_allocated() - before) / 2**20

    def gigaflops(self) -> float:
        with FlopCounterMode(display=False) as counter:
            self.forward().backward()
        for parameter in self.parameters:
            parameter.grad = None
        return counter.get_total_flops() / 1e9


def sentences_of(words: int, count: int, encoder: str, seed: int) -> list[Sentence]:
    """Make sentences of random words of one subword, with entities of one to four words."""
    build = TransformerEncoder.build(TransformerSettings(name=encoder))
    known = sorted(word for word in build.tokenizer.get_vocab() if word.isascii() and word.isalpha() and len(word) > 2)
    choose = Random(seed)
    sentences = []
    for number in range(count):
        entities = set()
        for start in choose.sample(range(words), words // DENSITY):
            entities.add(Entity(choose.choice("ABCDE"), ((start, min(words, start + choose.randint(1, 4))),)))
        sentences.append(Sentence(str(number), tuple(choose.choices(known, k=words)), tuple(entities)))
    return sentences


def literal_memory(encoder: TransformerEncoder, width: int, words: int, batch: int) -> float:
    """Return the GiB of the keys and values of all windows in all layers."""
    windows = sum(size * max(0, words - size + 1) for size in range(2, width + 1))
    return batch * windows * 2 * encoder.width * 4 * len(encoder.layer_parts()) / 2**30


def measured(width: int, words: int, arguments: argparse.Namespace) -> dict[str, Any]:
    sentences = sentences_of(words, arguments.batch_size, arguments.encoder, seed=words)
    encoder = TransformerEncoder.build(TransformerSettings(name=arguments.encoder))
    fits = literal_memory(encoder, width, words, arguments.batch_size) <= arguments.literal_limit
    names = [name for name in arguments.contenders if name != LITERAL or fits]
    contenders = {name: Contender(name, sentences, width, arguments) for name in names}
    for contender in contenders.values():
        for _ in range(arguments.warm_up):
            contender.step()
    times: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(arguments.turns):
        for name in Random(turn).sample(names, len(names)):
            times[name].append(contenders[name].step())
    rows = {}
    for name, contender in contenders.items():
        peak = contender.peak()
        for part in (contender.encoder, contender.head):
            part.graphs = None  # operations of a replayed graph cannot be counted
        median = statistics.median(times[name])
        rows[name] = {"ms": 1000 * median, "gflop": contender.gigaflops(), "saved_mib": contender.saved(), "peak_mib": peak}
    ratios = {}
    for numerator, denominator in RATIOS:
        if numerator in times and denominator in times:
            quotients = [a / b for a, b in zip(times[numerator], times[denominator], strict=True)]
            low, middle, high = statistics.quantiles(quotients, n=4) if len(quotients) > 1 else quotients * 3
            ratios[f"{numerator} / {denominator}"] = {"ratio": middle, "low": low, "high": high}
    return {"width": width, "words": words, "rows": rows, "ratios": ratios}


def show(result: Mapping[str, Any]) -> None:
    width, words = result["width"], result["words"]
    for name, row in result["rows"].items():
        peak = "" if row["peak_mib"] is None else f"  peak {row['peak_mib']:8.0f} MiB"
        print(
            f"K {width:3} n {words:4}  {name:17} {row['ms']:10.1f} ms  {row['gflop']:9.1f} GFLOP  "
            f"saved {row['saved_mib']:8.0f} MiB{peak}"
        )
    for name, ratio in result["ratios"].items():
        requirement = REQUIRED.get((*name.split(" / "), width, words))
        needed = f"  required {requirement}" if requirement else ""
        print(f"K {width:3} n {words:4}  {name:27} {ratio['ratio']:6.2f} [{ratio['low']:.2f}, {ratio['high']:.2f}]{needed}")
    print(flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--contenders", nargs="+", choices=HEADS, default=list(HEADS))
    parser.add_argument("--widths", nargs="+", type=int, default=[12, 18, 25], help="width K of the widest span")
    parser.add_argument("--lengths", nargs="+", type=int, default=[32, 64, 128], help="words per sentence")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--warm-up", type=int, default=None, help="warm-up steps; 1 on a CPU, 4 on CUDA")
    parser.add_argument("--literal-limit", type=float, default=None, help="GiB for the literal form; 4.5 on a CPU, 40 on CUDA")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="cpu: CPU time of this process; use one thread")
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    arguments = parser.parse_args()
    on_cuda = arguments.device == "cuda"
    arguments.warm_up = (4 if on_cuda else 1) if arguments.warm_up is None else arguments.warm_up
    arguments.literal_limit = arguments.literal_limit or (40.0 if on_cuda else 4.5)
    torch.set_num_threads(arguments.threads)
    torch.set_float32_matmul_precision("high")
    name = torch.cuda.get_device_name() if on_cuda else f"{arguments.threads} threads"
    print(f"torch {torch.__version__}, {name}, {arguments.encoder}, batch {arguments.batch_size}\n", flush=True)
    results = []
    for words in arguments.lengths:
        for width in arguments.widths:
            results.append(measured(width, words, arguments))
            show(results[-1])
            if arguments.json:
                record = {"device": name, "batch_size": arguments.batch_size, "encoder": arguments.encoder, "results": results}
                arguments.json.write_text(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
