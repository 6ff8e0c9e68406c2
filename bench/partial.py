"""F1 of models that are trained on data from which entities are missing, with and without marks.

    python bench/partial.py DATA RESULT.json VARIANT... [--recipe spanwise] [--encoder minilm] [--seed 1]

A share of the training entities (--removed) is removed at random; dev and test stay complete. VARIANT:

    full            the complete data
    unmarked        the data with missing entities, as if it were complete
    marked:SHARE    sentences that lost an entity have "annotated": []; training.marked_share is SHARE
    once:SHARE      as marked:SHARE, without the second round
    all:SHARE       all training sentences have "annotated": []
    ranges          sentences have the ranges between the lost entities as "annotated"
    taught:SHARE    as once:SHARE, then it is the teacher of a second model on the marked data
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from spanwise.core.types import Corpus, Entity, Sentence, Span
from spanwise.training.data import read_training_corpus
from spanwise.training.run import train


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("result", type=Path)
    parser.add_argument("variants", nargs="+", metavar="VARIANT")
    parser.add_argument("--recipe", default="spanwise")
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--removed", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=int, help="use only this many training sentences")
    options = parser.parse_args()
    corpus = read_training_corpus(options.data, None, lambda line: None)
    corpus = Corpus({**corpus.splits, "train": corpus["train"][: options.limit]}, corpus.name)
    removed = remove_entities(corpus["train"], options.removed, options.seed)
    rows: dict[str, Any] = {}
    for variant in options.variants:
        rows[variant] = run_variant(variant, corpus, removed, options)
        print(variant, json.dumps(rows[variant]), flush=True)
        record = {"recipe": options.recipe, "seed": options.seed, "removed": options.removed, "variants": rows}
        options.result.write_text(json.dumps(record, indent=1), encoding="utf-8")


def remove_entities(sentences: Sequence[Sentence], share: float, seed: int) -> list[tuple[Sentence, list[Entity]]]:
    """Each sentence without a random share of the entities, and the removed ones."""
    generator = random.Random(seed)
    result = []
    for sentence in sentences:
        lost = [entity for entity in sentence.entities if generator.random() < share]
        kept = tuple(entity for entity in sentence.entities if entity not in lost)
        result.append((replace(sentence, entities=kept, relations=(), links=()), lost))
    return result


def run_variant(
    variant: str, corpus: Corpus, removed: Sequence[tuple[Sentence, list[Entity]]], options: argparse.Namespace
) -> dict[str, float]:  # fmt: skip
    kind, _, text = variant.partition(":")
    share = float(text) if text else None
    sentences = corpus["train"] if kind == "full" else mark(kind, removed)
    rounds = 1 if kind in ("once", "taught") else None
    with TemporaryDirectory() as folder:
        scores = fit(sentences, corpus, Path(folder) / "run", options, marked_share=share, rounds=rounds)
        if kind == "taught":
            scores = fit(sentences, corpus, Path(folder) / "second", options, teachers=[Path(folder) / "run"])
    return scores


def mark(kind: str, removed: Sequence[tuple[Sentence, list[Entity]]]) -> tuple[Sentence, ...]:
    if kind == "unmarked":
        return tuple(sentence for sentence, _ in removed)
    if kind == "all":
        return tuple(replace(sentence, annotated=()) for sentence, _ in removed)
    if kind == "ranges":
        return tuple(replace(sentence, annotated=gaps(sentence, lost)) if lost else sentence for sentence, lost in removed)
    return tuple(replace(sentence, annotated=()) if lost else sentence for sentence, lost in removed)


def gaps(sentence: Sentence, lost: Sequence[Entity]) -> tuple[Span, ...]:
    """The ranges of words that no lost entity covers."""
    covered = {word for entity in lost for word in range(*entity.range)}
    free = [word for word in range(len(sentence.words)) if word not in covered]
    return tuple(Span(word, word + 1) for word in free)


def fit(
    sentences: Sequence[Sentence], corpus: Corpus, folder: Path, options: argparse.Namespace, **settings: Any
) -> dict[str, float]:  # fmt: skip
    data = Corpus({**corpus.splits, "train": tuple(sentences)}, corpus.name)
    settings = {name: value for name, value in {"epochs": options.epochs, **settings}.items() if value is not None}
    overrides = ["head.relations=false"] if options.recipe == "spanwise" else []
    run = train(
        data, folder, recipe=options.recipe, encoder=options.encoder, overrides=overrides, seed=options.seed, **settings
    )  # fmt: skip
    names = ("f1", "precision", "recall")
    splits = {split: scores["micro"] for split, scores in run.scores.items()}
    return {f"{split}_{name}": round(100 * micro[name], 2) for split, micro in splits.items() for name in names}


if __name__ == "__main__":
    main()
