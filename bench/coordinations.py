"""A corpus with discontinuous entities, from a corpus with coordinated terms such as GENIA or NCBI disease.

    python bench/coordinations.py /path/to/genia coordinations

In "T and B cells", two terms share the noun "cells". Most corpora annotate the whole as one entity,
or only "B cells", or nothing (GENIA, where coordinations have a separate type, which is dropped).
The rule in ``bench/coordination_rule.py`` annotates "T ... cells", a discontinuous entity, and "B
cells". It needs no parser, only the contiguous gold entities of all splits, and is deterministic.

Splits stay as they are. Sentences with coordinations are kept and, of the others, those that come
directly after one of them in the file, ``--others`` for each. From GENIA this gives 1,536 sentences;
697, 74 and 89 of the 5,157, 591 and 680 entities of train, dev and test are discontinuous.

``--rare 40 --others 40`` makes discontinuous entities rare: train has 40 sentences with a coordination
and 99 others for each of them; dev and test have all coordinations and 300 others. All are drawn at
random with a fixed seed.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from random import Random

from coordination_lexicon import Lexicon
from coordination_rule import annotate

from spanwise.core.types import Corpus, Sentence
from spanwise.corpora.splits import read_corpus
from spanwise.formats import Ledger, jsonl


def has_coordination(sentence: Sentence) -> bool:
    return any(entity.is_discontinuous for entity in sentence.entities)


def coordination_corpus(corpus: Corpus, others: int) -> Corpus:
    """Annotate all sentences and select those with coordinations and ``others`` after each of them."""
    lexicon = Lexicon([sentence for split in corpus for sentence in corpus[split]])
    splits = {}
    for split in corpus:
        kept, open_places = [], 0
        for sentence in (annotate(sentence, lexicon) for sentence in corpus[split]):
            if has_coordination(sentence):
                kept.append(sentence)
                open_places += others
            elif open_places:
                kept.append(sentence)
                open_places -= 1
        splits[split] = tuple(kept)
    return Corpus(splits, f"{corpus.name}-coordinations")


def rare_corpus(corpus: Corpus, count: int) -> Corpus:
    """Draw ``count`` training sentences with coordinations and 99 others for each; of dev and test, all and 300 others."""
    random, splits = Random(1), {}
    for split in corpus:
        rare = [sentence for sentence in corpus[split] if has_coordination(sentence)]
        others = [sentence for sentence in corpus[split] if not has_coordination(sentence)]
        random.shuffle(rare)
        random.shuffle(others)
        chosen = rare[:count] + others[: 99 * count] if split == "train" else rare + others[:300]
        random.shuffle(chosen)
        splits[split] = tuple(chosen)
    return Corpus(splits, corpus.name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder of a corpus with contiguous entities")
    parser.add_argument("out", type=Path, help="folder to write train.jsonl, dev.jsonl and test.jsonl to")
    parser.add_argument("--others", type=int, default=1, help="sentences without a coordination for each with one")
    parser.add_argument("--rare", type=int, help="training sentences with a coordination; 99 others for each of them")
    arguments = parser.parse_args()
    corpus = coordination_corpus(read_corpus(arguments.data), arguments.others)
    if arguments.rare is not None:
        corpus = rare_corpus(corpus, arguments.rare)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for split in corpus:
        jsonl.write(corpus[split], arguments.out / f"{split}.jsonl", Ledger())
        entities = [entity for sentence in corpus[split] for entity in sentence.entities]
        count = sum(entity.is_discontinuous for entity in entities)
        print(json.dumps({"split": split, "sentences": len(corpus[split]), "entities": len(entities), "discontinuous": count}))


if __name__ == "__main__":
    main()
