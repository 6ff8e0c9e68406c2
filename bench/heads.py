"""Speed of recipes with the same encoder, relative to one of them, and the cost of a head.

    python bench/heads.py --data GENIA --encoder minilm --device cpu [--against seqner-crf] [--json FILE] RECIPE …

Training: complete steps of the library's trainer, in blocks. Prediction: complete calls of ``predict`` on
slices of dev. All recipes take turns in random order, so other load affects all alike. A speed-up is the
median over the turns of (time of ``--against`` / time of the recipe), with quartiles. Predictions are
made by the models that were just trained.

``textbook-crf`` is ``seqner-crf`` with the CRF of ``bench/textbook_crf.py`` in training.

Head cost: forward of the head's ``score`` relative to the encoder's forward, on one batch of 16 random
sentences of 64 words with 5 types.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from speed import CLOCKS, WARM_UP, OurLoop, Times, in_turns
from textbook_crf import TextbookCrf

from spanwise.batching.batches import make_batch
from spanwise.core.types import Corpus, Entity, Sentence
from spanwise.corpora.splits import open_splits
from spanwise.models.model import Model
from spanwise.prediction.predictor import predict
from spanwise.recipes.catalog import configure
from spanwise.training.loop import Trainer


def resolve_config(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def build(recipe: str, corpus: Corpus, arguments: argparse.Namespace, **settings: Any) -> Model:
    is_textbook = recipe == "textbook-crf"
    model = Model.build(
        configure("seqner-crf" if is_textbook else recipe, encoder=arguments.encoder, settings=settings), corpus
    )
    if is_textbook:
        head: Any = model.head
        textbook = TextbookCrf(len(head.crf.start))
        textbook.load_state_dict(head.crf.state_dict())
        head.crf = textbook
    return model


def make_trainer(recipe: str, corpus: Corpus, folder: Path, arguments: argparse.Namespace) -> Trainer:
    per_epoch = -(-len(corpus["train"]) // arguments.batch_size)
    steps = arguments.block * (arguments.turns + 1) + arguments.warm_up
    torch.manual_seed(1)
    model = build(recipe, corpus, arguments, epochs=-(-steps // per_epoch), batch_size=arguments.batch_size)
    return Trainer(model, corpus, folder, device=arguments.device, log=lambda line: None)


def time_training(trainers: dict[str, Trainer], arguments: argparse.Namespace) -> Times:
    loops = {recipe: OurLoop(trainer) for recipe, trainer in trainers.items()}
    done = dict.fromkeys(loops, 0)

    def block(recipe: str, steps: int) -> None:
        for _ in range(steps):
            loops[recipe].step(done[recipe])
            done[recipe] += 1
        resolve_config(arguments.device)

    for recipe in loops:  # records graphs and fills caches
        block(recipe, arguments.warm_up)
    times: Times = {}
    for turn in range(1 + arguments.turns):
        contenders = {recipe: partial(block, recipe, arguments.block) for recipe in loops}
        in_turns(contenders, turn, times if turn else {}, CLOCKS[arguments.clock])
    return times


def time_prediction(models: dict[str, Model], sentences: Sequence[Sentence], arguments: argparse.Namespace) -> Times:
    times: Times = {}
    size = arguments.slice

    def predicted(recipe: str, chosen: Sequence[Sentence]) -> None:
        for _ in predict(models[recipe], chosen, batch_size=arguments.predict_batch):
            pass
        resolve_config(arguments.device)

    for turn in range(1 + arguments.turns):
        first = turn * size % max(1, len(sentences) - size + 1)
        contenders = {recipe: partial(predicted, recipe, sentences[first : first + size]) for recipe in models}
        in_turns(contenders, turn, times if turn else {}, CLOCKS[arguments.clock])
    return times


def speed_ups(times: Times, against: str) -> dict[str, dict[str, float]]:
    result = {}
    for name, seconds in times.items():
        quotients = [b / a for a, b in zip(seconds, times[against], strict=True)]
        low, middle, high = statistics.quantiles(quotients, n=4)
        result[name] = {"ms": 1000 * statistics.median(seconds), "speed_up": middle, "low": low, "high": high}
    return result


def head_costs(recipes: Sequence[str], arguments: argparse.Namespace, words: int = 64, types: int = 5) -> dict[str, float]:
    """Measure the cost of the head as a fraction of the encoder's forward."""
    random = Random(0)
    vocabulary = ["cell", "protein", "the", "of", "binds", "gene", "factor", "in", "human", "expression"]
    sentences = [
        Sentence(
            f"s{n}", tuple(random.choices(vocabulary, k=words)), tuple(Entity(f"T{t}", ((t, t + 2),)) for t in range(types))
        )
        for n in range(16)
    ]
    corpus, costs = Corpus({"train": sentences}), {}
    for recipe in recipes:
        model = build(recipe, corpus, arguments).eval().to(arguments.device)
        prepared = model.encoder.prepare(sentences)
        batch = make_batch(model.encoder, model.head, sentences, prepared, np.arange(16)).to(torch.device(arguments.device))
        times: Times = {}
        with torch.inference_mode():
            states = model.encoder(batch.inputs)

            def encode(model: Model = model, batch: Any = batch) -> None:
                model.encoder(batch.inputs)
                resolve_config(arguments.device)

            def score(model: Model = model, batch: Any = batch, states: Any = states) -> None:
                model.head.score(states, batch.targets)
                resolve_config(arguments.device)

            contenders: dict[str, Callable[[], None]] = {"encoder": encode, "head": score}
            for turn in range(WARM_UP + arguments.turns):
                in_turns(contenders, turn, times if turn >= WARM_UP else {}, CLOCKS[arguments.clock])
        costs[recipe] = statistics.median(times["head"]) / statistics.median(times["encoder"])
    return costs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipes", nargs="+")
    parser.add_argument("--data", type=Path, required=True, help="corpus folder with train and dev")
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--against", default="seqner-crf")
    parser.add_argument("--sentences", type=int, default=1600, help="maximum number of sentences of each split")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--predict-batch", type=int, default=64)
    parser.add_argument("--block", type=int, default=2, help="training steps per turn")
    parser.add_argument("--warm-up", type=int, default=8, help="training steps before the first turn")
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--slice", type=int, default=128, help="sentences to predict per turn")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="cpu: CPU time of this process, for a busy machine")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    recipes = tuple(dict.fromkeys((arguments.against, *arguments.recipes)))
    streams = open_splits(arguments.data)
    corpus = Corpus({split: tuple(islice(streams[split], arguments.sentences)) for split in ("train", "dev")})
    with tempfile.TemporaryDirectory() as folder:
        trainers = {recipe: make_trainer(recipe, corpus, Path(folder), arguments) for recipe in recipes}
        training = time_training(trainers, arguments)
    models = {recipe: trainer.model for recipe, trainer in trainers.items()}
    result = {
        "device": torch.cuda.get_device_name() if arguments.device == "cuda" else f"cpu, {arguments.threads} threads",
        "torch": torch.__version__,
        "training": speed_ups(training, arguments.against),
        "prediction": speed_ups(time_prediction(models, corpus["dev"], arguments), arguments.against),
        "head_cost": head_costs(recipes, arguments),
    }
    print(result["device"], result["torch"])
    for part in ("training", "prediction"):
        for name, row in result[part].items():
            print(f"{part:12} {name:28} {row['ms']:9.1f} ms  {row['speed_up']:.3f}x [{row['low']:.3f}, {row['high']:.3f}]")
    for name, cost in result["head_cost"].items():
        print(f"head cost    {name:28} {cost:.1%} of the encoder's forward")
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
