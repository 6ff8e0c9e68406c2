"""A corpus in which no entity of dev occurs in train, as in text about new names.

    python bench/unseen.py /path/to/ncbi_disease unseen --share 0.35 --train 1500

A share of the entity strings of train, in lower case, is held out. Dev gets the sentences whose entities are
all held out and a quarter of those without entities, train the sentences without such strings. Other
sentences are dropped. All choices are random with a fixed seed; the corpus' own dev and test are not used.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from random import Random

from spanwise.core.types import Sentence
from spanwise.corpora.splits import read_corpus
from spanwise.formats import Ledger, jsonl

SEED = 7
EMPTY_SHARE = 0.25  # of the sentences without entities, for dev


def entity_strings(sentence: Sentence) -> list[str]:
    return [
        " ".join(word for start, end in entity.fragments for word in sentence.words[start:end]).lower()
        for entity in sentence.entities
    ]


def split_by_entities(sentences: Sequence[Sentence], share: float) -> tuple[list[Sentence], list[Sentence]]:
    """Return sentences for train and for dev that have no entity string in common."""
    random, shuffled = Random(SEED), list(sentences)
    random.shuffle(shuffled)
    strings = sorted({string for sentence in shuffled for string in entity_strings(sentence)})
    held_out = {string for string in strings if random.random() < share}
    train, dev = [], []
    for sentence in shuffled:
        is_held_out = [string in held_out for string in entity_strings(sentence)]
        if not is_held_out:
            (dev if random.random() < EMPTY_SHARE else train).append(sentence)
        elif all(is_held_out):
            dev.append(sentence)
        elif not any(is_held_out):
            train.append(sentence)
    return train, dev


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, help="a corpus with a train split")
    parser.add_argument("output", type=Path, help="folder for train.jsonl and dev.jsonl")
    parser.add_argument("--share", type=float, default=0.4, help="share of the entity strings that are held out")
    parser.add_argument("--train", type=int, default=1500, help="largest number of training sentences")
    parser.add_argument("--dev", type=int, default=600, help="largest number of dev sentences")
    arguments = parser.parse_args()
    train, dev = split_by_entities(read_corpus(arguments.corpus)["train"], arguments.share)
    arguments.output.mkdir(parents=True)
    for split, sentences in (("train", train[: arguments.train]), ("dev", dev[: arguments.dev])):
        jsonl.write(sentences, arguments.output / f"{split}.jsonl", Ledger())
        print(f"{split}: {len(sentences):,} sentences, {sum(len(sentence.entities) for sentence in sentences):,} entities")


if __name__ == "__main__":
    main()
