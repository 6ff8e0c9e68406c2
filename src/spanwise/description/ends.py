"""Do the entities end one word too early or too late? The smell of half-open and inclusive ranges taken for each other.

Three traits of a text give it away, whatever its language:

- Behind an entity, as before it, stand the common words of the text: commas, full stops, "of", "and". When entities end too
  early, their own last words stand there instead, and the common words are gone.
- The last word of an entity is predictable from the words before it ("T" is followed by "cells"), the word behind it is not.
  When entities end too early, the word behind them is as predictable.
- When entities end too late, none is one word long, and many end in punctuation, though hardly any begins with it.

One weak trait is not enough: adjectives ("German") are seldom followed by commas either, and hardly a Chinese name is one word
long. The limits below lie well inside the gaps between eleven corpora in four languages and the same corpora with their
ends moved.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Hashable
from functools import lru_cache
from typing import Literal

from spanwise.core.types import Sentence
from spanwise.description.overlap import EXAMPLES, Example, example

SAMPLE = 20_000  # entities looked at: more would cost memory and not change the answer
FEWEST = 100  # entities without which there is no answer
FEWEST_REPEATED = 25  # repeated entities without which nothing is said about what is predictable
COMMON = 0.2  # the most frequent words are common, up to this share of the text,
FEWEST_COMMON = 10  # but so many at least: "the" alone would not do, for it never stands behind an entity
ONE_WORD = 0.05  # at most this share is one word long when entities end too late,
SEPARATORS = 0.06  # and at least this share more ends in a comma, full stop or the like than begins with one
FEW_COMMON = 0.6  # common words behind entities, relative to those before them: few, when it is less than this
NO_COMMON = 0.04  # and none, when it is less than this
PREDICTABLE = 0.7  # how predictable the word behind an entity may be, relative to the last word inside

VERDICTS = {
    "early": (
        "entities seem to end one word too early (the words behind them look like their own last words); "
        "were inclusive ends read as exclusive ones?"
    ),
    "late": (
        "entities seem to end one word too late (hardly any is one word long, and many end in a comma or a full stop); "
        "were exclusive ends read as inclusive ones?"
    ),
}

# Marks that stand for a word, as in "5 %", "AT&T", "@home".
_WORD_LIKE = frozenset("%‰&@#*§†‡")


@lru_cache(maxsize=1 << 14)
def is_punctuation(word: str) -> bool:
    """True for a word of punctuation only.

    >>> is_punctuation("),"), is_punctuation("%"), is_punctuation("D.C."), is_punctuation("。")
    (True, False, False, True)
    """
    return all(unicodedata.category(mark)[0] == "P" and mark not in _WORD_LIKE for mark in word)


@lru_cache(maxsize=1 << 14)
def is_separator(word: str) -> bool:
    """True for punctuation that is neither bracket nor quotation mark: titles end in those, and nothing ends in a comma."""
    return is_punctuation(word) and all(unicodedata.category(mark) == "Po" and mark not in "\"'" for mark in word)


class Ends:
    """What the ends of a split's entities look like, counted for its first continuous entities."""

    def __init__(self, split: str) -> None:
        self.split = split
        self.examples: dict[str, list[Example]] = {"early": [], "late": []}
        self.entities = self.one_word = self.separator_first = self.separator_last = 0
        self.before: Counter[str] = Counter()
        self.behind: Counter[str] = Counter()
        self.last_word = _Predictability()
        self.next_word = _Predictability()

    def add(self, sentence: Sentence) -> None:
        if self.entities >= SAMPLE:
            return
        words = sentence.words
        for entity in sentence.entities:
            if entity.is_discontinuous:
                continue
            start, end = entity.range
            name, behind = words[start:end], words[end] if end < len(words) else None
            self.entities += 1
            self.one_word += len(name) == 1
            self.separator_first += is_separator(name[0])
            if is_separator(name[-1]):
                self.separator_last += 1
                self._show("late", sentence, " ".join(name))
            if start > 0:
                self.before[words[start - 1]] += 1
            if behind is not None:
                self.behind[behind] += 1
                if is_punctuation(behind):
                    behind = None
                else:
                    self._show("early", sentence, f"{' '.join(name)} | {behind}")
            self.next_word.add(name, behind)
            if len(name) > 1:
                self.last_word.add(name[:-1], name[-1])

    def _show(self, verdict: str, sentence: Sentence, text: str) -> None:
        if len(self.examples[verdict]) < EXAMPLES:
            self.examples[verdict].append(example(self.split, sentence, text))

    def verdict(self, vocabulary: Counter[str]) -> Literal["early", "late"] | None:
        """Whether the entities end too early or too late; None when all seems well or too little is known."""
        if self.entities < FEWEST:
            return None
        more_separators = (self.separator_last - self.separator_first) / self.entities
        if self.one_word <= ONE_WORD * self.entities and more_separators >= SEPARATORS:
            return "late"
        if min(self.before.total(), self.behind.total()) < FEWEST:
            return None
        common = common_words(vocabulary)
        before, behind = _share_of(common, self.before), _share_of(common, self.behind)
        if behind < NO_COMMON * before and self.one_word < self.entities:
            return "early"
        if behind < FEW_COMMON * before and self.next_word.known and self.last_word.known:
            return "early" if self.next_word.share >= PREDICTABLE * self.last_word.share else None
        return None


class _Predictability:
    """Of the contexts seen before, how many bring a word that they brought before."""

    def __init__(self) -> None:
        self._contexts: set[int] = set()
        self._pairs: set[int] = set()
        self.repeated = self.foreseen = 0

    def add(self, context: Hashable, word: str | None) -> None:
        # Numbers of 64 bits in place of the words save memory; two of them alike by chance would change nothing.
        place, pair = hash(context), hash((context, word))
        if place in self._contexts:
            self.repeated += 1
            self.foreseen += word is not None and pair in self._pairs
        self._contexts.add(place)
        self._pairs.add(pair)

    @property
    def known(self) -> bool:
        return self.repeated >= FEWEST_REPEATED

    @property
    def share(self) -> float:
        return self.foreseen / self.repeated


def common_words(vocabulary: Counter[str], share: float = COMMON, min_count: int = FEWEST_COMMON) -> set[str]:
    """The most frequent words, as many as it takes to make up this share of a text, and some in any case.

    >>> sorted(common_words(Counter({"the": 3, ",": 2, "cell": 1, "of": 1}), share=0.6, min_count=1))
    [',', 'the']
    """
    missing = share * vocabulary.total()
    found: set[str] = set()
    for word, count in vocabulary.most_common():
        if missing <= 0 and len(found) >= min_count:
            break
        found.add(word)
        missing -= count
    return found


def _share_of(words: set[str], counter: Counter[str]) -> float:
    total = counter.total()
    return sum(counter[word] for word in words) / total if total else 0.0
