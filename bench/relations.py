"""Time and memory of the loss of a relation head with its gradients, for many types and long sentences.

    python bench/relations.py [--device cpu|cuda] [--words 128] [--types 170] [--batch 32] [--json FILE]

One batch of random states and random triples, without an encoder. Memory is the peak above states and
weights: reported by the allocator on a GPU, and the peak resident size of a separate process on a CPU.
``whole`` is the same head without the memory bound. Dense labels, which neither uses, would add to it.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

from spanwise.core.types import Entity, Relation, Sentence
from spanwise.encoders.base import Encoder, TokenStates
from spanwise.heads import make_head, pair_pointer
from spanwise.heads.base import Labels

WIDTH = 384  # size of MiniLM's states
FORMS: dict[str, dict[str, Any]] = {
    "gp-relations": {"kind": "gp-relations"},
    "gp-relations, whole": {"kind": "gp-relations"},
    "gp-relations, shared": {"kind": "gp-relations", "form": "shared"},
    "span-relations": {"kind": "span-relations"},
}


class Width(Encoder):
    """A placeholder for an encoder."""

    width = WIDTH
    prepare = collate = forward = cost = save = None  # type: ignore[assignment]


def random_sentences(count: int, words: int, types: tuple[str, ...], rng: np.random.Generator) -> list[Sentence]:
    """Make ten entities and twelve relations per sentence, as in the densest real corpora."""
    sentences = []
    for number in range(count):
        starts = rng.choice(words - 3, size=10, replace=False).tolist()
        entities = tuple(Entity("Entity", ((start, start + int(rng.integers(1, 4))),)) for start in starts)
        rows = {(types[kind], head, tail) for kind, head, tail in rng.integers(0, (len(types), 10, 10), size=(12, 3)).tolist()}
        sentences.append(Sentence(f"s{number}", ("w",) * words, entities, tuple(Relation(*row) for row in sorted(rows))))
    return sentences


def measure(form: str, arguments: argparse.Namespace) -> dict[str, float]:
    device = torch.device(arguments.device)
    if form.endswith("whole"):
        pair_pointer.MAX_CELLS = 1 << 62
    types = tuple(f"R{number}" for number in range(arguments.types))
    rng = np.random.default_rng(0)
    sentences = random_sentences(arguments.batch, arguments.words, types, rng)
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    head = make_head(Width(), Labels(("Entity",), types), FORMS[form], sentences).to(device).train()
    words = torch.randn(arguments.batch, arguments.words, WIDTH, device=device, requires_grad=True)
    states = TokenStates(
        words, words[:, 0].detach(), torch.ones(arguments.batch, arguments.words, dtype=torch.bool, device=device)
    )
    start_time = time.perf_counter()
    targets = {name: value.to(device) for name, value in head.targets(sentences, gold=True, generator=rng).items()}
    host = time.perf_counter() - start_time
    for parameter in head.parameters():  # allocate gradients first: they are not part of the memory of the loss
        parameter.grad = torch.zeros_like(parameter)
    before = memory(device)
    times = []
    for _ in range(1 + arguments.steps):
        start_time = time.perf_counter()
        head.loss(states, targets).mean.backward()
        if device.type == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start_time)
    return {
        "ms": 1000 * median(times[1:]),
        "host_ms": 1000 * host,
        "memory_mib": (memory(device, highest=True) - before) / 2**20,
        "weights": sum(parameter.numel() for parameter in head.parameters()),
    }


def memory(device: torch.device, *, highest: bool = False) -> float:
    if device.type == "cuda":
        return float(torch.cuda.max_memory_allocated() if highest else torch.cuda.memory_allocated())
    if highest:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0
    return int(Path("/proc/self/statm").read_text().split()[1]) * float(resource.getpagesize())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--words", type=int, default=128)
    parser.add_argument("--types", type=int, default=170)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--form", choices=FORMS)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    if arguments.form:  # one process each, because the peak resident size cannot be reset
        sys.stdout.write(json.dumps(measure(arguments.form, arguments)) + "\n")
        return
    options = ("device", "words", "types", "batch", "steps")
    common = [word for name in options for word in (f"--{name}", str(getattr(arguments, name)))]
    results: dict[str, Any] = {"settings": {name: getattr(arguments, name) for name in options}}
    cells = arguments.batch * 2 * arguments.types * arguments.words**2
    results["cells_of_all_matrices_mib"] = {"scores": 4 * cells / 2**20, "labels": 4 * cells / 2**20}
    for form in FORMS:
        done = subprocess.run([sys.executable, __file__, "--form", form, *common], capture_output=True, text=True, check=False)
        if done.returncode:
            results[form] = {"failed": (done.stderr.strip().splitlines() or [f"killed ({done.returncode})"])[-1][:200]}
        else:
            results[form] = json.loads(done.stdout.splitlines()[-1])
        print(form, results[form])
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
