"""Detection of entities that end one word too early or too late.

This happens when half-open and inclusive ranges are confused. Three signs, in any language:

- The words before and after an entity are mostly the common words of the text: commas, full stops,
  "of", "and". If entities end too early, the word after them is their real last word instead.
- The last word of an entity is predictable from the words before it ("T" is followed by "cells"); the
  word after it is not. If entities end too early, the word after them is as predictable.
- If entities end too late, none has only one word, and many end in punctuation, but few start with it.

One weak sign is not enough: adjectives ("German") are rarely followed by commas either, and few Chinese
names have only one word. The limits below are well inside the gaps between eleven corpora in four
languages and the same corpora with shifted ends.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Hashable
from functools import lru_cache
from typing import Literal

from spanwise.core.types import Sentence
from spanwise.description.duplicates import MAX_EXAMPLES, Example, make_example

SAMPLE = 20_000  # entities to examine; more would use memory and not change the result
MIN_ENTITIES = 100  # entities needed for a result
MIN_REPEATED = 25  # repeated entities needed to estimate predictability
COMMON = 0.2  # the most frequent words that make up this share of the text are common,
MIN_COMMON = 10  # but at least this many words: "the" alone never follows an entity
ONE_WORD = 0.05  # if entities end too late, at most this share has one word,
SEPARATORS = 0.06  # and the share that ends in a comma or full stop exceeds the share that starts with one by this
FEW_COMMON = 0.6  # share of common words after entities / share before them: below this there are few,
NO_COMMON = 0.04  # and below this there are none
PREDICTABLE = 0.7  # max. predictability of the word after an entity, relative to its last word

VERDICTS = {
    "early": (
        "entities seem to end one word too early (the words after them look like their last words); "
        "check whether inclusive ends were read as exclusive"
    ),
    "late": (
        "entities seem to end one word too late (few have one word, and many end in a comma or full stop); "
        "check whether exclusive ends were read as inclusive"
    ),
}

# Marks used as words, as in "5 %", "AT&T", "@home".
_WORD_LIKE = frozenset("%‰&@#*§†‡")


@lru_cache(maxsize=1 << 14)
def is_punctuation(word: str) -> bool:
    """Return True if a word is only punctuation.

    >>> is_punctuation("),"), is_punctuation("%"), is_punctuation("D.C."), is_punctuation("。")
    (True, False, False, True)
    """
    return all(unicodedata.category(mark)[0] == "P" and mark not in _WORD_LIKE for mark in word)


@lru_cache(maxsize=1 << 14)
def is_separator(word: str) -> bool:
    """Return True for punctuation except brackets and quotation marks, which titles may end with."""
    return is_punctuation(word) and all(unicodedata.category(mark) == "Po" and mark not in "\"'" for mark in word)


class EntityEnds:
    """Statistics of the boundaries of a split's first contiguous entities."""

    def __init__(self, split: str) -> None:
        self.split = split
        self.examples: dict[str, list[Example]] = {"early": [], "late": []}
        self.entities = self.one_word = self.separator_first = self.separator_last = 0
        self.before: Counter[str] = Counter()
        self.after: Counter[str] = Counter()
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
            name, after = words[start:end], words[end] if end < len(words) else None
            self.entities += 1
            self.one_word += len(name) == 1
            self.separator_first += is_separator(name[0])
            if is_separator(name[-1]):
                self.separator_last += 1
                self._add_example("late", sentence, " ".join(name))
            if start > 0:
                self.before[words[start - 1]] += 1
            if after is not None:
                self.after[after] += 1
                if is_punctuation(after):
                    after = None
                else:
                    self._add_example("early", sentence, f"{' '.join(name)} | {after}")
            self.next_word.add(name, after)
            if len(name) > 1:
                self.last_word.add(name[:-1], name[-1])

    def _add_example(self, verdict: str, sentence: Sentence, text: str) -> None:
        if len(self.examples[verdict]) < MAX_EXAMPLES:
            self.examples[verdict].append(make_example(self.split, sentence, text))

    def verdict(self, vocabulary: Counter[str]) -> Literal["early", "late"] | None:
        """Return whether entities end too early or too late; None if neither, or if there are too few."""
        if self.entities < MIN_ENTITIES:
            return None
        more_separators = (self.separator_last - self.separator_first) / self.entities
        if self.one_word <= ONE_WORD * self.entities and more_separators >= SEPARATORS:
            return "late"
        if min(self.before.total(), self.after.total()) < MIN_ENTITIES:
            return None
        common = common_words(vocabulary)
        before, after = _share_of(common, self.before), _share_of(common, self.after)
        if after < NO_COMMON * before and self.one_word < self.entities:
            return "early"
        if after < FEW_COMMON * before and self.next_word.is_known and self.last_word.is_known:
            return "early" if self.next_word.share >= PREDICTABLE * self.last_word.share else None
        return None


class _Predictability:
    """The share of repeated contexts that are followed by a word that has followed them before."""

    def __init__(self) -> None:
        self._contexts: set[int] = set()
        self._pairs: set[int] = set()
        self.repeated = self.predicted = 0

    def add(self, context: Hashable, word: str | None) -> None:
        # 64-bit hashes use less memory than words; a rare collision does not change the result.
        key, pair = hash(context), hash((context, word))
        if key in self._contexts:
            self.repeated += 1
            self.predicted += word is not None and pair in self._pairs
        self._contexts.add(key)
        self._pairs.add(pair)

    @property
    def is_known(self) -> bool:
        return self.repeated >= MIN_REPEATED

    @property
    def share(self) -> float:
        return self.predicted / self.repeated


def common_words(vocabulary: Counter[str], share: float = COMMON, min_count: int = MIN_COMMON) -> set[str]:
    """Return the most frequent words that make up this share of a text, but at least ``min_count``.

    >>> sorted(common_words(Counter({"the": 3, ",": 2, "cell": 1, "of": 1}), share=0.6, min_count=1))
    [',', 'the']
    """
    missing = share * vocabulary.total()
    common: set[str] = set()
    for word, count in vocabulary.most_common():
        if missing <= 0 and len(common) >= min_count:
            break
        common.add(word)
        missing -= count
    return common


def _share_of(words: set[str], counter: Counter[str]) -> float:
    total = counter.total()
    return sum(counter[word] for word in words) / total if total else 0.0
