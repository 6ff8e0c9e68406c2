"""What the gold entities of a corpus attest, for ``bench/coordination_rule.py``."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from spanwise.core.types import Sentence

Words = tuple[str, ...]
MIN_HEAD = 12  # gold entities that end with a head noun
MAX_MODIFIER = 4  # words of a modifier
MAX_BETWEEN = 3  # words after an attested modifier, the head noun included
COORDINATORS = {"and", "or", "and/or"}


def normal(word: str) -> str:
    """The word in lower case and without punctuation at its end."""
    return word.lower().rstrip(".,;:") or word


def singular(word: str) -> str:
    """A crude singular, only compared with others.

    >>> [singular(word) for word in ("cells", "bodies", "virus", "mass", "mRNAs")]
    ['cell', 'body', 'virus', 'mass', 'mRNA']
    """
    if word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


class Lexicon:
    """What the gold entities of a corpus attest: terms, head nouns, modifiers and their types."""

    def __init__(self, sentences: Sequence[Sentence]) -> None:
        self.types: defaultdict[Words, Counter[str]] = defaultdict(Counter)  # of a term with its noun in the singular
        self.modifiers: set[Words] = set()
        self.attested: defaultdict[tuple[Words, str], Counter[str]] = defaultdict(Counter)
        self.head_types: defaultdict[str, Counter[str]] = defaultdict(Counter)
        forms: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for sentence in sentences:
            for entity in sentence.entities:
                words = tuple(map(normal, sentence.words[slice(*entity.range)]))
                if COORDINATORS.intersection(words):
                    continue
                noun = singular(words[-1])
                self.types[(*words[:-1], noun)][entity.type] += 1
                if len(words) > 1:
                    forms[noun][words[-1]] += 1
                    self.head_types[noun][entity.type] += 1
                for length in range(1, min(len(words), MAX_MODIFIER + 1)):
                    self.modifiers.add(words[:length])
                    rest = words[length:]
                    if len(rest) <= MAX_BETWEEN and not any(word.startswith("-") for word in rest):
                        self.attested[words[:length], noun][entity.type] += 1
        self.heads = {
            noun
            for noun, counts in forms.items()
            if counts.total() >= MIN_HEAD
            and noun.isalpha()
            and len(noun) > 2
            and (noun.endswith(("rna", "dna")) or (len(counts) > 1 and min(counts.values()) > 1))
        }

    def is_head(self, word: str) -> bool:
        return singular(normal(word)) in self.heads

    def term_types(self, words: Sequence[str]) -> Counter[str]:
        """The gold types of these words anywhere in the corpus, in either number."""
        normals = tuple(map(normal, words))
        return self.types.get((*normals[:-1], singular(normals[-1])), Counter())

    def is_modifier(self, words: Sequence[str], noun: str | None = None, type: str | None = None) -> bool:
        """Whether a gold entity starts with these words (and has this noun and type)."""
        normals = tuple(map(normal, words))
        if noun is None:
            return normals in self.modifiers or bool(self.term_types(words))
        return bool(self.attested.get((normals, noun), Counter())[type or ""])
