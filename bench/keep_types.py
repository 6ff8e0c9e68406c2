"""What a model forgets when it learns new types from data where only these are annotated.

    python bench/keep_types.py DATA RESULT.json [--old protein,DNA] [--recipe spanwise] [--encoder minilm]

The first half of the training sentences, annotated with the old types only, trains the old model. The
second half, annotated with the other types only (--new; by default all others), trains the new ones:
with --init alone, and with --init and --keep-types. With --same-text, all sentences are used for
both. Scores are of the test split, of the old and the new types separately.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from spanwise import load
from spanwise.core.types import Corpus, Sentence
from spanwise.evaluation.evaluation import evaluate
from spanwise.training.data import read_training_corpus
from spanwise.training.run import train


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("result", type=Path)
    parser.add_argument("--old", default="protein,DNA")
    parser.add_argument("--new")
    parser.add_argument("--recipe", default="spanwise")
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--same-text", action="store_true")
    options = parser.parse_args()
    corpus = read_training_corpus(options.data, None, lambda line: None)
    old = set(options.old.split(","))
    new = set(options.new.split(",")) if options.new else set(corpus.types) - old
    train_sentences, middle = corpus["train"], len(corpus["train"]) // 2
    halves = (train_sentences,) * 2 if options.same_text else (train_sentences[:middle], train_sentences[middle:])
    rows: dict[str, Any] = {}
    with TemporaryDirectory() as folder:
        for name, types, sentences in (("old", old, halves[0]), ("init", new, halves[1]), ("keep", new, halves[1])):
            data = Corpus({"train": only(sentences, types), "dev": only(corpus["dev"], types)}, corpus.name)
            run = Path(folder) / name
            more = {} if name == "old" else {"init": Path(folder) / "old", "keep_types": name == "keep"}
            fit(data, run, options, **more)
            predicted = list(load(run).predict([replace(sentence, entities=()) for sentence in corpus["test"]]))
            rows[name] = {"old": f1(corpus["test"], predicted, old), "new": f1(corpus["test"], predicted, new)}
            print(name, json.dumps(rows[name]), flush=True)
            record = {"recipe": options.recipe, "seed": options.seed, "same_text": options.same_text, "models": rows}
            options.result.write_text(json.dumps(record, indent=1), encoding="utf-8")


def only(sentences: Iterable[Sentence], types: Collection[str]) -> tuple[Sentence, ...]:
    """The sentences with entities of some types."""
    return tuple(
        replace(s, entities=tuple(entity for entity in s.entities if entity.type in types), relations=(), links=())
        for s in sentences
    )


def fit(data: Corpus, folder: Path, options: argparse.Namespace, **more: Any) -> None:
    settings: dict[str, Any] = {"seed": options.seed} | ({"epochs": options.epochs} if options.epochs else {})
    overrides = ["head.relations=false"] if options.recipe == "spanwise" else []
    train(data, folder, recipe=options.recipe, encoder=options.encoder, overrides=overrides, test=False, **settings, **more)


def f1(gold: Sequence[Sentence], predicted: Sequence[Sentence], types: Collection[str]) -> float:
    return round(100 * evaluate(only(gold, types), only(predicted, types)).f1, 2)


if __name__ == "__main__":
    main()
