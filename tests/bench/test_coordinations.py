"""The corpus of coordinated terms: the entities of small examples."""

from __future__ import annotations

import pytest
from coordination_lexicon import Lexicon
from coordination_rule import annotate
from coordinations import coordination_corpus, rare_corpus

from spanwise.core.types import Corpus, Entity, Sentence


def sentence(text: str, *terms: str) -> Sentence:
    """A sentence with the type and words of its entities: ``cell: T cells``."""
    words, entities = text.split(), []
    for term in terms:
        type, _, phrase = term.partition(": ")
        width = len(phrase.split())
        start = next(i for i in range(len(words)) if words[i : i + width] == phrase.split())
        entities.append(Entity(type, ((start, start + width),)))
    return Sentence("s", tuple(words), tuple(entities))


KNOWN = [
    *[sentence(f"{name} cells and {name} cell", f"cell: {name} cells", f"cell: {name} cell") for name in ("T", "B", "human T")] * 4,
    *[sentence(f"{name} genes and one {name} gene", f"DNA: {name} genes", f"DNA: {name} gene") for name in ("IL-2", "fos")] * 4,
    *[sentence("serum response factor , nuclear factors", "protein: serum response factor", "protein: nuclear factors")] * 6,
    sentence("AP1 factors", "protein: AP1 factors"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (sentence("in T and B cells ."), ["cell: B cells", "cell: T ... cells"]),
        (sentence("human T , B or NK cells", "cell: NK cells"), ["cell: B ... cells", "cell: NK cells", "cell: human T ... cells"]),
        (sentence("T and B cells", "cell: T and B cells"), ["cell: B cells", "cell: T ... cells"]),
        (sentence("fos and IL-2 genes", "protein: fos", "DNA: IL-2 genes"), ["DNA: IL-2 genes", "DNA: fos ... genes", "protein: fos"]),
        (sentence("fos and IL-2 genes", "DNA: fos", "DNA: IL-2 genes"), ["DNA: IL-2 genes", "DNA: fos ... genes"]),
        # A singular after a complete entity of the same type is not shared.
        (sentence("AP1 and serum response factor", "protein: AP1", "protein: serum response factor"),
         ["protein: AP1", "protein: serum response factor"]),
        (sentence("T cells and B cells", "cell: T cells", "cell: B cells"), ["cell: B cells", "cell: T cells"]),  # two nouns
        (sentence("water and B cells", "cell: B cells"), ["cell: B cells"]),  # not a known modifier
        (sentence("ataxias 1 , 2 and 3", "disease: ataxias 1"), ["disease: ataxias ... 2", "disease: ataxias ... 3", "disease: ataxias 1"]),
        (sentence("ataxias 1 and B", "disease: ataxias 1"), ["disease: ataxias 1"]),  # different enumerators
    ],
)  # fmt: skip
def test_entities_of_coordinations(given: Sentence, expected: list[str]) -> None:
    actual = annotate(given, Lexicon([*KNOWN, given]))
    shown = [
        f"{entity.type}: " + " ... ".join(" ".join(given.words[slice(*fragment)]) for fragment in entity.fragments)
        for entity in actual.entities
    ]
    assert sorted(shown) == expected


def test_sentences_after_coordinations_are_kept() -> None:
    plain = [sentence(f"word {number}") for number in range(4)]
    both = sentence("T and B cells")
    corpus = coordination_corpus(Corpus({"train": (plain[0], both, *plain[1:]), "dev": tuple(KNOWN)}), others=2)
    assert [one.words for one in corpus["train"]] == [one.words for one in (both, *plain[1:3])]
    assert corpus["dev"] == ()


def test_coordinations_can_be_rare() -> None:
    both = [Sentence(f"b{number}", ("T", "and", "B", "cells"), (Entity("cell", ((0, 1), (3, 4))),)) for number in range(3)]
    plain = [Sentence(f"p{number}", ("B", "cells"), (Entity("cell", ((0, 2),)),)) for number in range(400)]
    corpus = rare_corpus(Corpus({"train": (*both, *plain), "dev": (*both, *plain)}), 2)
    assert {split: sum(one.id.startswith("b") for one in corpus[split]) for split in corpus} == {"train": 2, "dev": 3}
    assert {split: len(corpus[split]) for split in corpus} == {"train": 200, "dev": 303}
