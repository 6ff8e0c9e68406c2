"""A tiny random corpus that a model learns in a few steps."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product

from spanwise.core.types import Corpus, Entity, Relation, Sentence, Span

FILLERS = "the a was seen near later then it rained and many others came from there".split()
PLACES = "oslo paris lima quito cairo new york".split()
DRUGS = "aspirin codeine insulin heparin".split()


def random_sentence(index: int, generator: random.Random, *, max_length: int = 14) -> Sentence:
    """Fillers, places of one word and drugs of two words."""
    words: list[str] = []
    entities: list[Entity] = []
    while len(words) < generator.randint(2, max_length):
        kind = generator.random()
        start = len(words)
        if kind < 0.2:
            words.append(generator.choice(PLACES))
            entities.append(Entity("Place", (Span(start, start + 1),)))
        elif kind < 0.35:
            words += [generator.choice(DRUGS), generator.choice(("acid", "mite"))]
            entities.append(Entity("Drug", (Span(start, start + 2),)))
        else:
            words.append(generator.choice(FILLERS))
    return Sentence(f"s{index}", tuple(words), tuple(entities), document=f"d{index // 5}", position=index % 5)


def random_sentences(count: int, seed: int = 0, first: int = 0) -> tuple[Sentence, ...]:
    """``count`` sentences, numbered from ``first``, in documents of five."""
    generator = random.Random(seed)
    return tuple(random_sentence(index, generator) for index in range(first, first + count))


def tiny_corpus(train: int = 24, dev: int = 8, test: int = 8) -> Corpus:
    """A corpus with this many sentences per split; splits of 0 sentences are omitted."""
    sentences = random_sentences(train + dev + test)
    splits = {"train": sentences[:train], "dev": sentences[train : train + dev], "test": sentences[train + dev :]}
    return Corpus({split: members for split, members in splits.items() if members}, "tiny")


def with_relations(corpus: Corpus) -> Corpus:
    """Add relations to every pair of a drug and a place in a sentence: "sold" and "known" from the drug, "has" to it."""

    def add(sentence: Sentence) -> Sentence:
        types = [entity.type for entity in sentence.entities]
        pairs = [(x, y) for x, y in product(range(len(types)), repeat=2) if (types[x], types[y]) == ("Drug", "Place")]
        rows = [row for x, y in pairs for row in (("sold", x, y), ("known", x, y), ("has", y, x))]
        return replace(sentence, relations=tuple(Relation(*row) for row in rows))

    return Corpus({split: tuple(map(add, members)) for split, members in corpus.splits.items()}, corpus.name)
