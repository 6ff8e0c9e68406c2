"""Speed of training and prediction relative to bare Hugging Face loops, interleaved in one run.

    python bench/speed.py --data GENIA [--encoder minilm] [--threads 2] [--steps 100] [--rounds 20] [--runs 3] [--json FILE]

Training: one step of Spanwise's trainer (batch, targets, forward, backward, clipping, AdamW, schedule)
compared with one step of ``AutoModelForTokenClassification`` on the same subwords, with labels at first
subwords and the same fused AdamW and clipping. The tensors of the bare loop are prepared in advance.
Prediction: complete ``predict`` (tokenising, batches, scores, decoding) compared with the bare encoder's
forward on the same length-sorted batches, also prepared; "with tokenizer" adds the tokenizer's time.

Float32 on the CPU. All contenders take turns in random order on the same batch (or the same sentences). A
ratio is the median of the quotients of such turns, with quartiles in brackets, so other load affects both
sides. Predictions are made by the models that were just trained, saved and loaded again, so the number of
entities is realistic, and prediction is that of ``spanwise predict``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.optim import AdamW
from transformers import AutoModel, AutoModelForTokenClassification, AutoTokenizer

from spanwise.batching.plan import plan
from spanwise.core.types import Corpus, Sentence
from spanwise.corpora.splits import open_splits
from spanwise.encoders.pretrained import resolve
from spanwise.models.model import Model
from spanwise.prediction.base import BasePredictor
from spanwise.prediction.load import load
from spanwise.recipes.catalog import configure
from spanwise.training.loop import Trainer

RECIPES = ("seqner", "seqner-crf", "spanner")
BARE, TOKENIZING = "bare", "bare with tokenizer"
REQUIRED = dict.fromkeys((("training", recipe) for recipe in RECIPES), 1.05)  # maximum
REQUIRED_THROUGHPUT = 0.97  # minimum, for every recipe
WARM_UP = 8  # warm-up steps
CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}

Times = dict[str, list[float]]


class BareLoop:
    """A training loop without a toolkit."""

    def __init__(self, source: str, trainer: Trainer, rate: float) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(source)
        tags = 2 * len(trainer.model.labels.entities) + 1
        self.model = AutoModelForTokenClassification.from_pretrained(source, num_labels=tags).float().train()
        self.optimizer = AdamW(self.model.parameters(), lr=rate, fused=True)

    def batch(self, sentences: Sequence[Sentence], tags: Tensor) -> dict[str, Tensor]:
        """Pad subwords by the tokenizer, with the tag of a word at its first subword."""
        encoded = self.tokenizer(
            [list(s.words) for s in sentences], is_split_into_words=True, padding=True, return_tensors="pt"
        )
        labels = torch.full_like(encoded["input_ids"], -100)
        for number in range(len(sentences)):
            before = None
            for place, word in enumerate(encoded.word_ids(number)):
                if word is not None and word != before:
                    labels[number, place] = tags[number, word]
                before = word
        return {**encoded, "labels": labels}

    def step(self, batch: Mapping[str, Tensor]) -> None:
        loss = self.model(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


class OurLoop:
    """Steps of Spanwise's trainer, one at a time."""

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer
        self.stream = trainer._stream(0)
        trainer.steps.wrapped_model.train()

    def step(self, number: int) -> None:
        self.trainer.step(number, next(self.stream))


def in_turns(contenders: Mapping[str, Callable[[], None]], turn: int, times: Times, clock: Callable[[], float]) -> None:
    """Run every contender once per turn, in random order, because caches depend on the order."""
    names = list(contenders)
    for name in Random(turn).sample(names, len(names)):
        start_time = clock()
        contenders[name]()
        times.setdefault(name, []).append(clock() - start_time)


def make_trainer(recipe: str, corpus: Corpus, folder: Path, arguments: argparse.Namespace, seed: int) -> Trainer:
    steps = -(-len(corpus["train"]) // arguments.batch_size)
    settings = {"epochs": -(-(WARM_UP + arguments.steps) // steps), "batch_size": arguments.batch_size, "seed": seed}
    config = configure(recipe, encoder=arguments.encoder, settings=settings)
    torch.manual_seed(seed)
    return Trainer(Model.build(config, corpus), corpus, folder, device="cpu", log=lambda line: None)


def time_training(trainers: Mapping[str, Trainer], source: str, arguments: argparse.Namespace) -> Times:
    ours = {recipe: OurLoop(trainer) for recipe, trainer in trainers.items()}
    tagger = trainers["seqner"]
    bare = BareLoop(source, tagger, tagger.steps.optimizer.param_groups[0]["initial_lr"])
    times: Times = {}
    for step in range(WARM_UP + arguments.steps):
        chosen = [tagger.batches.sentences[number] for number in tagger.batches.batches[step]]
        batch = bare.batch(chosen, tagger.model.head.targets(chosen, gold=True)["tags"])
        check_same(batch["input_ids"], tagger.batches.batch(step).inputs["ids"])
        contenders = {BARE: partial(bare.step, batch), **{recipe: partial(loop.step, step) for recipe, loop in ours.items()}}
        in_turns(contenders, step, times if step >= WARM_UP else {}, CLOCKS[arguments.clock])
    return times


def check_same(bare: Tensor, ours: Tensor) -> None:
    if not torch.equal(bare, ours):
        raise SystemExit("the bare loop and Spanwise use different subwords, so the comparison would not be fair")


class Forward:
    """The bare encoder on length-sorted batches, prepared or tokenised on the fly."""

    def __init__(self, source: str, batch_size: int) -> None:
        self.tokenizer, self.batch_size = AutoTokenizer.from_pretrained(source), batch_size
        self.encoder = AutoModel.from_pretrained(source, add_pooling_layer=False).float().eval()

    def groups(self, sentences: Sequence[Sentence]) -> list[list[list[str]]]:
        """Return the words of the sentences in the batches of prediction."""
        texts = [list(sentence.words) for sentence in sentences]
        costs = np.array([len(ids) for ids in self.tokenizer(texts, is_split_into_words=True)["input_ids"]])
        return [[texts[number] for number in numbers] for numbers in plan(costs, self.batch_size, None, None)]

    def tokenized(self, groups: list[list[list[str]]]) -> Iterator[Mapping[str, Tensor]]:
        for group in groups:
            yield self.tokenizer(group, is_split_into_words=True, padding=True, return_tensors="pt")

    @torch.inference_mode()
    def __call__(self, batches: Iterable[Mapping[str, Tensor]]) -> None:
        for batch in batches:
            self.encoder(**batch)


def time_prediction(
    models: Mapping[str, BasePredictor], source: str, sentences: Sequence[Sentence], arguments: argparse.Namespace
) -> tuple[Times, dict[str, float]]:
    """Time prediction; each turn uses the next sentences, so that turns are short and close together."""
    forward, other = Forward(source, arguments.predict_batch), Forward(source, arguments.predict_batch)
    times: Times = {}
    counts = dict.fromkeys(models, 0)

    def predicted(recipe: str, chosen: Sequence[Sentence]) -> None:
        counts[recipe] += sum(len(s.entities) for s in models[recipe].predict(chosen, batch_size=arguments.predict_batch))

    for turn in range(1 + arguments.rounds):
        first = turn * arguments.slice % max(1, len(sentences) - arguments.slice + 1)
        chosen = sentences[first : first + arguments.slice]
        groups = forward.groups(chosen)
        ready = list(forward.tokenized(groups))
        contenders: dict[str, Callable[[], None]] = {
            BARE: partial(forward, ready),
            TOKENIZING: lambda groups=groups: other(other.tokenized(groups)),
            **{recipe: partial(predicted, recipe, chosen) for recipe in models},
        }
        in_turns(contenders, turn, times if turn else {}, CLOCKS[arguments.clock])
    count = (1 + arguments.rounds) * min(arguments.slice, len(sentences))
    return times, {recipe: entities / count for recipe, entities in counts.items()}


def loaded(model: Model, folder: Path) -> BasePredictor:
    """Save a model and load it for prediction."""
    model.save(folder)
    return load(folder, "cpu")


def compared(times: Times, sentences: int, to: str = BARE, *, throughput: bool = False) -> dict[str, dict[str, float]]:
    """Return median milliseconds per call, sentences per second, and the ratio to a bare loop with quartiles."""
    result = {}
    for name in (name for name in (BARE, TOKENIZING, *RECIPES) if name in times):
        seconds = times[name]
        quotients = [b / a if throughput else a / b for a, b in zip(seconds, times[to], strict=True)]
        low, middle, high = statistics.quantiles(quotients, n=4) if len(quotients) > 1 else quotients * 3
        median = statistics.median(seconds)
        result[name] = {"ms": 1000 * median, "per_second": sentences / median, "ratio": middle, "low": low, "high": high}
    return result


def one_run(sentences: Mapping[str, tuple[Sentence, ...]], arguments: argparse.Namespace, seed: int) -> dict[str, Any]:
    corpus, source = Corpus(sentences), resolve(arguments.encoder)
    with tempfile.TemporaryDirectory() as folder:
        trainers = {recipe: make_trainer(recipe, corpus, Path(folder), arguments, seed) for recipe in arguments.recipes}
        times = time_training(trainers, source, arguments) if arguments.steps else {}
        models = {recipe: loaded(trainer.model, Path(folder) / recipe) for recipe, trainer in trainers.items()}
    result: dict[str, Any] = {"training": compared(times, arguments.batch_size)} if times else {}
    if arguments.rounds:
        times, per_sentence = time_prediction(models, source, sentences["dev"], arguments)
        result["prediction"] = compared(times, arguments.slice, throughput=True)
        del times[BARE]
        result["prediction with tokenizer"] = compared(times, arguments.slice, TOKENIZING, throughput=True)
        result["entities per sentence"] = per_sentence
    return result


def show(result: Mapping[str, Any], arguments: argparse.Namespace) -> None:
    names = {
        "training": f"training step, batch {arguments.batch_size}, time / bare",
        "prediction": f"prediction, batch {arguments.predict_batch}, throughput / bare forward",
        "prediction with tokenizer": "the same / bare forward with tokenizer",
    }
    for part, title in names.items():
        for name, row in result.get(part, {}).items():
            bound = REQUIRED.get((part, name)) if part == "training" else REQUIRED_THROUGHPUT
            needed = "" if bound is None or name in (BARE, TOKENIZING) or part.endswith("tokenizer") else f"required {bound}"
            print(
                f"{title:52} {name:20} {row['ms']:9.1f} ms {row['per_second']:8.1f} sentences/s "
                f"{row['ratio']:6.3f} [{row['low']:.3f}, {row['high']:.3f}] {needed}"
            )
    per_sentence = ", ".join(f"{name} {value:.2f}" for name, value in result.get("entities per sentence", {}).items())
    print(f"predicted entities per sentence: {per_sentence}\n" if per_sentence else "", flush=True)


def summary(results: Sequence[Mapping[str, Any]]) -> None:
    """Print the ratios of all runs with their range."""
    for part in ("training", "prediction"):
        for name in results[0].get(part, {}):
            ratios = [result[part][name]["ratio"] for result in results]
            if name not in (BARE, TOKENIZING):
                print(
                    f"{part:12} {name:12} median {statistics.median(ratios):.3f} of {len(ratios)} runs "
                    f"({min(ratios):.3f} to {max(ratios):.3f})"
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="corpus folder with train and dev")
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--recipes", nargs="+", choices=RECIPES, default=RECIPES, help="recipes; seqner is always included")
    parser.add_argument("--sentences", type=int, default=1600, help="maximum number of sentences of each split")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--predict-batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=100, help="training steps; 0 skips training")
    parser.add_argument("--rounds", type=int, default=20, help="turns of prediction; 0 skips prediction")
    parser.add_argument("--slice", type=int, default=80, help="sentences to predict per turn")
    parser.add_argument("--runs", type=int, default=1, help="number of repetitions of the measurement")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument(
        "--clock", choices=CLOCKS, default="wall", help="cpu: CPU time of this process; for one thread on a busy machine"
    )
    parser.add_argument("--json", type=Path, help="write the numbers of every run to this file")
    arguments = parser.parse_args()
    arguments.recipes = tuple(dict.fromkeys(("seqner", *arguments.recipes)))
    torch.set_num_threads(arguments.threads)
    streams = open_splits(arguments.data)
    sentences = {split: tuple(islice(streams[split], arguments.sentences)) for split in ("train", "dev")}
    print(f"torch {torch.__version__}, {arguments.threads} threads, {arguments.encoder}, {arguments.data.name}\n", flush=True)
    results = []
    for run in range(arguments.runs):
        results.append(one_run(sentences, arguments, seed=run + 1))
        show(results[-1], arguments)
        if arguments.json:
            arguments.json.write_text(json.dumps({"threads": arguments.threads, "runs": results}, indent=1))
    summary(results)


if __name__ == "__main__":
    main()
