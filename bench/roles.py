"""A corpus whose spans have several types, from the relations of CoNLL04.

    python bench/roles.py /path/to/conll04 roles

The entities of four relations get a role as a second type: who kills is also a ``Killer``, who is killed a
``Victim``, who lives somewhere a ``Resident``, and who works for an organisation, which is the
``Employer``, an ``Employee``. Relations are dropped. Splits stay as they are.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from spanwise.core.types import Entity, Sentence
from spanwise.corpora.splits import read_corpus
from spanwise.formats import Ledger, jsonl

ROLES = {"Kill": ("Killer", "Victim"), "Live_In": ("Resident", None), "Work_For": ("Employee", "Employer")}


def add_roles(sentence: Sentence) -> Sentence:
    """Replace the relations of a sentence by second types of their entities."""
    entities = dict.fromkeys(sentence.entities)
    for relation in sentence.relations:
        for role, index in zip(ROLES.get(relation.type, (None, None)), (relation.head, relation.tail), strict=True):
            if role is not None:
                entities[Entity(role, sentence.entities[index].fragments)] = None
    return replace(sentence, entities=tuple(entities), relations=())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, help="CoNLL04 with its relations")
    parser.add_argument("output", type=Path, help="folder for train.jsonl, dev.jsonl and test.jsonl")
    arguments = parser.parse_args()
    corpus = read_corpus(arguments.corpus)
    arguments.output.mkdir(parents=True)
    for split in corpus:
        sentences = [add_roles(sentence) for sentence in corpus[split]]
        jsonl.write(sentences, arguments.output / f"{split}.jsonl", Ledger())
        entities = sum(len(sentence.entities) for sentence in sentences)
        second = entities - sum(len({entity.fragments for entity in sentence.entities}) for sentence in sentences)
        print(f"{split}: {len(sentences):,} sentences, {entities:,} entities, {second:,} of them a further type of a span")


if __name__ == "__main__":
    main()
