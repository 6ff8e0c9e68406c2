"""Spanwise compared with other libraries on the same corpus and encoder: relative speed and F1.

    python bench/peers.py --data DATA --encoder FOLDER --environments ENVS [--recipes spanner seqner] [--peers hf spancat …]
        [--python flair=VENV/bin/python …] [--sentences 1600] [--blocks 10] [--epochs 10] [--json FILE]
    … --blocks 0 --epochs 10 --clock cpu   only the table: F1 on test, CPU time and memory
    … --int8 --reference spancat_trf       Spanwise as 8-bit ONNX; ratios relative to spancat

Each contender is a process (bench/peers/worker.py). With ``--environments``, each library gets its own
virtual environment in this folder, with the versions of peer_environments.py, created on first use.
Otherwise it runs in the environment given by ``--python``, or in this one. A contender that is not installed
or fails is reported and skipped. All load first and then take turns in random order: one epoch of training
each, repeatedly, then the same slices of test. Only one works at a time, so other load affects all alike. A
ratio is the median over the turns of a contender's throughput relative to ``--reference`` (the first
recipe), with quartiles: above 1 it is faster. With ``--epochs``, each then trains a new model for this many epochs; the
model after the last epoch is scored on test by Spanwise's strict micro F1, and a table shows F1, time and the
peak memory of the process. With ``--blocks 0`` only this is done.

The same for all: sentences, epochs, float32 on the CPU, threads, and the width of candidate spans for
GLiNER, SpanMarker and spancat (Spanwise's recipes choose theirs by the corpus). Learning rates and batch
sizes are those of each library's documentation (see its module in bench/peers), or those of ``--rate``
and ``--batch-size``. Differences:

- Flair, SpanMarker and token classification do not support nested entities. They learn from flat
  entities (the outermost, and the first of those that cross); the number of dropped entities is printed.
  Test is scored with all entities, except discontinuous ones, which nobody gets.
- EDS-NLP gets nested entities, but cannot predict those inside an entity of the same type.
- ``spancat`` uses spaCy's small tok2vec with its rate; ``spancat_trf`` uses the encoder through
  spacy-transformers.
- With ``--int8``, Spanwise's models are exported to 8-bit ONNX after training and predict in onnxruntime.
- Batches, schedule, dropout and loss are those of each library. Loading, dev scores and checkpoints are
  not timed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from peer_contenders import Contender, ContenderError, Field, Library, Times
from peer_environments import create_environment

from spanwise.core.types import Entity, Sentence, Span
from spanwise.corpora.splits import open_splits
from spanwise.decoding.overlaps import overlap_filter
from spanwise.evaluation.evaluation import evaluate
from spanwise.formats.jsonl import to_record

PEERS = {
    "spancat": Library("spacy_spancat", nests=True, environment="spacy"),
    "spancat_trf": Library("spacy_spancat", nests=True, options={"transformer": True}, environment="spacy"),
    "gliner": Library("gliner_model", nests=True, environment="gliner"),
    "flair": Library("flair_tagger", nests=False, environment="flair"),
    "span_marker": Library("span_marker_model", nests=False, environment="span_marker"),
    "hf": Library("hf_tokens", nests=False, environment="hf"),
    "edsnlp": Library("edsnlp_crf", nests=True, environment="edsnlp"),
    "eznlp": Library("eznlp_model", nests=True, environment="eznlp"),
}


def contiguous(sentence: Sentence) -> Sentence:
    """Keep only the words and the distinct contiguous entities."""
    entities = dict.fromkeys(Entity(e.type, e.fragments) for e in sentence.entities if not e.is_discontinuous)
    return Sentence(sentence.id, sentence.words, tuple(entities))


def flat(sentence: Sentence) -> Sentence:
    """Keep the outermost entities; of those that cross or have the same words, the first."""
    return overlap_filter("flat")(overlap_filter("outermost")(sentence))


def write(path: Path, sentences: Sequence[Sentence]) -> str:
    path.write_text("".join(json.dumps(to_record(sentence), ensure_ascii=False) + "\n" for sentence in sentences))
    return str(path)


def compared(times: Times, to: str, sentences: int) -> dict[str, dict[str, float]]:
    """Return sentences per second, and the throughput relative to ``to`` in the same turns."""
    result = {}
    for name, seconds in times.items():
        quotients = [b / a for a, b in zip(seconds, times[to], strict=True)]
        low, middle, high = statistics.quantiles(quotients, n=4) if len(quotients) > 1 else quotients * 3
        result[name] = {"per_second": sentences / statistics.median(seconds), "ratio": middle, "low": low, "high": high}
    return result


def score_f1(records: Sequence[Sequence[Mapping[str, Any]]], gold: Sequence[Sentence]) -> float:
    predicted = [
        Sentence(s.id, s.words, tuple(Entity(e["type"], tuple(Span(*span) for span in e["spans"])) for e in entities))
        for s, entities in zip(gold, records, strict=True)
    ]
    return evaluate(gold, predicted).f1


def show(part: str, rows: Mapping[str, Mapping[str, float]]) -> None:
    for name, row in rows.items():
        spread = f"[{row['low']:.3f}, {row['high']:.3f}]"
        print(f"{part:12} {name:24} {row['per_second']:8.1f} sentences/s {row['ratio']:6.3f}x {spread}", flush=True)


def training_turns(arguments: argparse.Namespace) -> int:
    return arguments.blocks if arguments.training_blocks is None else arguments.training_blocks


def measured(field: Field, size: int, test: Sequence[Sentence], arguments: argparse.Namespace) -> dict[str, Any]:
    """Measure training on ``size`` sentences and prediction of ``test``; print each part when it is done."""
    slices = [turn * arguments.slice % max(1, len(test) - arguments.slice + 1) for turn in range(1 + arguments.blocks)]
    training = [{"do": "train"}] * (1 + training_turns(arguments))
    prediction = [{"do": "predict", "from": first, "to": first + arguments.slice} for first in slices]
    parts = {"training": (training, size), "prediction": (prediction, min(arguments.slice, len(test)))}
    result: dict[str, Any] = {}
    for part, (commands, sentences) in parts.items() if arguments.blocks else ():
        result[part] = compared(field.in_turns(commands), field.reference, sentences)
        show(part, result[part])
    for name in list(field.contenders) if arguments.epochs else ():
        answer = field.ask(name, {"do": "fit", "epochs": arguments.epochs})
        if answer is not None:
            f1 = result.setdefault("f1", {})[name] = score_f1(answer["predictions"], test)
            cost = result.setdefault("seconds", {})[name] = {part: answer[part] for part in parts}
            result.setdefault("memory", {})[name] = answer["memory"]
            spent = ", ".join(f"{part} {seconds:.1f} s" for part, seconds in cost.items())
            print(f"test F1      {name:24} {100 * f1:8.2f} after {arguments.epochs} epochs; {spent}", flush=True)
    return result


def table(result: Mapping[str, Any], sentences: int) -> str:
    """Return a Markdown table of F1, time and memory; best F1 first. ``sentences`` is the number of test sentences."""
    rows = ["| | test F1 | training, s | prediction, sentences/s | peak memory, MiB |", "|---|---|---|---|---|"]
    for name, f1 in sorted(result.get("f1", {}).items(), key=lambda pair: -pair[1]):
        seconds = result["seconds"][name]
        label = f"{name} ({result['versions'][name]})"
        rate = sentences / seconds["prediction"]
        rows.append(f"| {label} | {100 * f1:.2f} | {seconds['training']:.0f} | {rate:.0f} | {result['memory'][name]:.0f} |")
    return "\n".join(rows)


def python_of(name: str, library: Library, arguments: argparse.Namespace) -> str:
    """Return the Python that runs a contender; create its environment if needed."""
    given = dict(pair.split("=", 1) for pair in arguments.python)
    if name in given or not (arguments.environments and library.environment):
        return given.get(name, sys.executable)
    try:
        return create_environment(library.environment, arguments.environments.absolute())
    except subprocess.CalledProcessError as error:
        raise ContenderError(f"could not be installed: {error}") from None


def choose_reference(name: str | None, contenders: Iterable[str]) -> str:
    """Return the contender that ratios are relative to: by default the first."""
    names = list(contenders)
    if name is not None and name not in names:
        raise SystemExit(f"--reference {name}: expected one of {', '.join(names)}")
    return name or next(iter(names), "")


def spanwise_contenders(recipes: Sequence[str], int8: bool, dev: str | None) -> dict[str, Library]:
    """Return a contender for each recipe; with ``int8`` it predicts with an export whose quantisation is chosen on ``dev``."""
    suffix, options = ("_int8", {"int8": True, "dev": dev}) if int8 else ("", {})
    return {f"{name}{suffix}": Library("spanwise_model", nests=True, options={"recipe": name, **options}) for name in recipes}


def run(arguments: argparse.Namespace, peers: Mapping[str, Library]) -> dict[str, Any]:
    streams = open_splits(arguments.data)
    train = [contiguous(sentence) for sentence in islice(streams["train"], arguments.sentences)]
    test = list(islice(streams["test"], arguments.sentences))
    flattened = [flat(sentence) for sentence in train]
    counts = [sum(len(s.entities) for s in view) for view in (train, flattened)]
    print(f"{arguments.data.name}: {len(train)} training sentences, {len(test)} to predict, {arguments.threads} threads")
    print(f"flat entities omit {counts[0] - counts[1]} of {counts[0]} training entities", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        dev = [contiguous(sentence) for sentence in streams["dev"]] if arguments.int8 and "dev" in streams else []
        dev_file = write(Path(folder) / "dev.jsonl", dev) if dev else None
        everyone = spanwise_contenders(arguments.recipes, arguments.int8, dev_file)
        everyone |= {name: peers[name] for name in arguments.peers}
        field = Field(choose_reference(arguments.reference, everyone))
        views = {nests: write(Path(folder) / f"{nests}.jsonl", view) for nests, view in ((True, train), (False, flattened))}
        common = {
            "encoder": str(arguments.encoder.resolve()),
            "test": write(Path(folder) / "test.jsonl", [contiguous(sentence) for sentence in test]),
            "types": sorted({entity.type for sentence in train for entity in sentence.entities}), "width": arguments.width,
            "batch_size": arguments.batch_size, "predict_batch": arguments.predict_batch, "rate": arguments.rate,
            "seed": arguments.seed, "clock": arguments.clock, "epochs": 2 + training_turns(arguments),
        }  # fmt: skip
        try:
            for name, library in everyone.items():
                job = {**common, "train": views[library.nests], "options": library.options or {}}
                log = Path(folder) / f"{name}.log"
                try:
                    python = python_of(name, library, arguments)
                    field.contenders[name] = Contender(library, python, job, arguments.threads, log)
                    print(f"{name:24} {field.contenders[name].version}", flush=True)
                except ContenderError as why:
                    field.leave(name, why)
            versions = {name: contender.version for name, contender in field.contenders.items()}
            result = {"versions": versions, "lost": field.lost, **measured(field, len(train), test, arguments)}
            print(table(result, len(test)))
            return result
        finally:
            for contender in field.contenders.values():
                contender.close()


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="corpus folder with train and test")
    parser.add_argument("--encoder", type=Path, required=True, help="folder with a transformers model")
    parser.add_argument("--recipes", nargs="*", default=["spanner"], help="Spanwise recipes")
    parser.add_argument("--int8", action="store_true", help="predict with 8-bit ONNX exports of the recipes, as RECIPE_int8")
    parser.add_argument("--peers", nargs="*", default=list(PEERS), choices=PEERS)
    parser.add_argument("--reference", help="contender that ratios are relative to; by default the first recipe")
    parser.add_argument("--python", action="append", default=[], metavar="PEER=PYTHON", help="Python of a peer's environment")
    parser.add_argument("--environments", type=Path, metavar="FOLDER", help="create an environment for each library here")
    parser.add_argument("--sentences", type=int, default=1600, help="maximum number of sentences of each split")
    parser.add_argument("--batch-size", type=int, help="training batch size for all; by default as each library documents")
    parser.add_argument("--predict-batch", type=int, default=16)
    parser.add_argument("--rate", type=float, help="learning rate of all weights for all; by default as each library documents")
    parser.add_argument("--width", type=int, default=8)
    parser.add_argument("--blocks", type=int, default=10, help="turns: epochs of training, slices of test; 0 to skip")
    parser.add_argument("--training-blocks", type=int, help="turns of training; by default as many as of prediction")
    parser.add_argument("--slice", type=int, default=128, help="sentences to predict per turn")
    parser.add_argument("--epochs", type=int, help="also train a new model for this many epochs and score test")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall", help="cpu: CPU time of each process")
    parser.add_argument("--json", type=Path)
    return parser.parse_args(arguments)


def main() -> None:
    arguments = parsed()
    result = run(arguments, PEERS)
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
