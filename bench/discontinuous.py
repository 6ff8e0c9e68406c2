"""Effect of ``head.discontinuous`` on discontinuous and contiguous entities, as JSON.

    python bench/discontinuous.py generated --recipes biaffine spanner --epochs 10 --batch-size 16 --json FILE
    python bench/discontinuous.py folds --data NEREL --recipes spanner --epochs 8 --json FILE
    python bench/discontinuous.py splits --data COORDINATIONS --recipes spanwise --encoder minilm --device cuda --json FILE

``generated`` is the corpus of ``tests/discontinuous_corpus.py``. ``folds`` pools all splits of a corpus
with documents, splits the documents into five parts, trains five times on four of them (dev is taken
from these, in whole documents) and tests on the fifth. The predictions are pooled, so every document is
tested once. ``splits`` keeps the splits of a corpus, such as that of ``bench/coordinations.py``.

Scores are end-to-end and strict: an entity is correct if its type and all its fragments are. "with" is
``head.discontinuous=auto``, "without" is ``false``. ``--jobs`` trainings run in parallel. The file is
updated after each training; a second call runs only the missing ones.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from random import Random
from typing import Any

import torch

from spanwise.core.types import Corpus, Sentence
from spanwise.corpora.splits import ensure_dev_split, read_corpus
from spanwise.evaluation.scores import EntityItem, Score, Tally, entity_items
from spanwise.prediction.predictor import predict
from spanwise.training.run import train

SWITCH = {"with": "auto", "without": "false"}
KINDS = {"discontinuous": (2, 1 << 20), "contiguous": (1, 1), "all": (1, 1 << 20)}  # minimum and maximum number of fragments


def generated(arguments: argparse.Namespace) -> Iterator[Corpus]:
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from discontinuous_corpus import corpus

    yield corpus(arguments.sentences)


def folds(arguments: argparse.Namespace, parts: int = 5) -> Iterator[Corpus]:
    """Yield document folds of all splits."""
    corpus = read_corpus(arguments.data)
    documents: dict[str, list[Sentence]] = {}
    for split in corpus:
        for sentence in corpus[split]:
            documents.setdefault(sentence.document or sentence.id, []).append(sentence)
    names = sorted(documents)
    Random(13).shuffle(names)
    for part in range(parts):
        test = [sentence for name in names[part::parts] for sentence in documents[name]]
        rest = [sentence for index, name in enumerate(names) if index % parts != part for sentence in documents[name]]
        yield ensure_dev_split(Corpus({"train": tuple(rest), "test": tuple(test)}, corpus.name))[0]


def splits(arguments: argparse.Namespace) -> Iterator[Corpus]:
    yield ensure_dev_split(read_corpus(arguments.data))[0]


def counts(gold: Sequence[Sentence], predicted: Sequence[Sentence]) -> dict[str, tuple[int, int, int]]:
    """Count gold, predicted and correct entities of each kind."""

    def select(sentence: Sentence, min_fragments: int, max_fragments: int) -> set[EntityItem]:
        return {item for item in entity_items(sentence) if min_fragments <= len(item[1]) <= max_fragments}

    result = {}
    for kind, limits in KINDS.items():
        tally = Tally()
        for gold_sentence, sentence in zip(gold, predicted, strict=True):
            tally.add(select(gold_sentence, *limits), select(sentence, *limits))
        score = tally.scores.micro
        result[kind] = (score.support, score.predicted, score.correct)
    return result


def train_and_score(corpus: Corpus, recipe: str, mechanism: str, seed: int, arguments: argparse.Namespace) -> dict[str, Any]:
    overrides = [*arguments.set, f"head.discontinuous={SWITCH[mechanism]}"]
    start_time = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        run = train(
            corpus, Path(folder) / "run", recipe=recipe, encoder=arguments.encoder, overrides=overrides, seed=seed,
            epochs=arguments.epochs, batch_size=arguments.batch_size, device=arguments.device, test=False, log=_silent,
        )  # fmt: skip
    seconds = time.perf_counter() - start_time
    all_sentences = [sentence for split in corpus for sentence in corpus[split]]
    scored = {}
    for split in ("dev", "test"):
        scored[split] = counts(corpus[split], list(predict(run.model, corpus[split], context=all_sentences)))
    weights = sum(parameter.numel() for parameter in run.model.head.parameters())
    return {"counts": scored["test"], "dev_counts": scored["dev"], "dev": run.scores["dev"]["micro"]["f1"],
            "seconds": round(seconds, 1), "head_weights": weights}  # fmt: skip


def _silent(line: str) -> None:
    """Ignore a line of the log."""


def pooled(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Pool the scores of several parts of the data."""
    scores = {
        kind: Score(*(sum(column) for column in zip(*(run["counts"][kind] for run in runs), strict=True))).to_json()
        for kind in KINDS
    }
    return {**scores, "parts": len(runs), "seconds": round(sum(run["seconds"] for run in runs), 1)}


CORPORA = {"generated": generated, "folds": folds, "splits": splits}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", choices=tuple(CORPORA))
    parser.add_argument("--data", type=Path, help="folder of the corpus, for folds and splits")
    parser.add_argument("--recipes", nargs="+", default=["biaffine"])
    parser.add_argument("--switches", nargs="+", choices=tuple(SWITCH), default=list(SWITCH), help="values to compare")
    parser.add_argument("--encoder", default="static")
    parser.add_argument("--sentences", type=int, default=3000, help="size of the generated training split")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--set", action="append", default=[], help="SECTION.KEY=VALUE, as in spanwise train")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    if arguments.corpus != "generated" and arguments.data is None:
        parser.error(f"{arguments.corpus} needs --data")
    has_results = arguments.json is not None and arguments.json.is_file()
    runs: dict[str, Any] = json.loads(arguments.json.read_text())["runs"] if has_results else {}
    corpora = list(CORPORA[arguments.corpus](arguments))
    result: dict[str, Any] = {}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(arguments.jobs, context, torch.set_num_threads, (arguments.threads,)) as pool:
        # One part after the other, so that comparisons are complete as early as possible.
        pending = {
            pool.submit(train_and_score, corpus, recipe, mechanism, seed, arguments): key
            for seed in arguments.seeds
            for part, corpus in enumerate(corpora)
            for recipe in arguments.recipes
            for mechanism in arguments.switches
            if (key := f"{recipe} {mechanism} seed {seed} part {part}") not in runs
        }
        for future in as_completed(pending):
            runs[pending[future]] = future.result()
            print(pending[future], json.dumps(runs[pending[future]]), flush=True)
            result = {"settings": {key: str(value) for key, value in vars(arguments).items()}, "runs": runs}
            names = sorted({key.partition(" part")[0] for key in runs})
            result["pooled"] = {
                name: pooled([run for key, run in runs.items() if key.startswith(f"{name} ")]) for name in names
            }
            if arguments.json:
                arguments.json.write_text(json.dumps(result, indent=1))
    for name, scores in result.get("pooled", {}).items():
        print(f"{name}: " + ", ".join(f"{kind} F1 {100 * scores[kind]['f1']:.2f}" for kind in KINDS))


if __name__ == "__main__":
    main()
