"""Suspicious data: things that are seldom meant, counted sentence by sentence, with a few examples each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from spanwise.core.types import Entity, Sentence
from spanwise.description.ends import VERDICTS, Ends, is_punctuation
from spanwise.description.overlap import EXAMPLES, Example, example

LONG = 512  # words: more than most encoders take at once
WHOLE_SENTENCES = 0.05  # more entities that fill their sentence than this share of the sentences are no accident
STRAY = 2  # and so few of them are, in however small a split

# What is said of one and of several; in order of importance.
KINDS = {
    "duplicate entities": ("entity repeats another one", "entities repeat another one", "of the same type and words"),
    "whole sentences": ("entity is", "entities are", "a whole sentence"),
    "white space at a boundary": ("entity begins or ends", "entities begin or end", "with white space"),
    "punctuation at a boundary": ("entity begins or ends", "entities begin or end", "with punctuation"),
    "shared ids": ("sentence has", "sentences have", "the id of an earlier one"),
    "white space in words": ("word has", "words have", "white space inside"),
    "empty sentences": ("sentence has", "sentences have", "no words"),
    "long sentences": ("sentence has", "sentences have", f"more than {LONG} words"),
}

# Opening marks with their closing ones: an entity that has both may begin and end with them.
_PAIRS = dict(zip("([{<«‹“‘„‚「『《〈【（［｛", ")]}>»›”’“‘」』》〉】）］｝", strict=True))
_PAIRS |= {'"': '"', "'": "'", "`": "'", "``": "''"}
_LONGEST_ABBREVIATION = 4  # letters: "Corp ." may end in a full stop


@dataclass
class Suspicion:
    """One kind of suspicious data: how often, in which split (None for the whole corpus), and up to five examples."""

    kind: str
    split: str | None
    count: int
    message: str
    examples: list[Example] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "split": self.split,
            "count": self.count,
            "message": self.message,
            "examples": self.examples,
        }


class Suspects:
    """Looks at the sentences of one split."""

    def __init__(self, split: str) -> None:
        self.split = split
        self.counts: Counter[str] = Counter()
        self.examples: dict[str, list[Example]] = {}
        self.ends = Ends(split)
        self.sentences = 0
        self.ids: set[str] = set()

    def add(self, sentence: Sentence, *, is_new: bool = True) -> None:
        """``is_new`` is false for the words of an earlier sentence: they prove nothing about the ends of entities."""
        words = sentence.words
        self.sentences += 1
        if sentence.id in self.ids:
            self._note("shared ids", sentence, sentence.text)
        self.ids.add(sentence.id)
        if not words:
            self._note("empty sentences", sentence, "")
        if len(words) > LONG:
            self._note("long sentences", sentence, f"{len(words)} words")
        if " ".join(words).split() != list(words):
            for word in words:
                if word.split() != [word]:
                    self._note("white space in words", sentence, word)
        seen: set[Entity] = set()
        for entity in sentence.entities:
            start, end = entity.range
            name = words[start:end]
            if entity in seen:
                self._note("duplicate entities", sentence, entity)
            seen.add(entity)
            if len(name) == len(words) and not entity.is_discontinuous:
                self._note("whole sentences", sentence, entity)
            if name[0][0].isspace() or name[-1][-1].isspace():
                self._note("white space at a boundary", sentence, entity)
            elif has_stray_punctuation(name):
                self._note("punctuation at a boundary", sentence, entity)
        if is_new:
            self.ends.add(sentence)

    def _note(self, kind: str, sentence: Sentence, what: Entity | str) -> None:
        self.counts[kind] += 1
        examples = self.examples.setdefault(kind, [])
        if len(examples) < EXAMPLES:
            examples.append(example(self.split, sentence, what))

    def found(self, vocabulary: Counter[str]) -> Iterator[Suspicion]:
        """What is suspicious, the most important first; ``vocabulary`` counts the words of the split."""
        verdict = self.ends.verdict(vocabulary)
        if verdict:
            message, examples = f"{self.split}: {VERDICTS[verdict]}", self.ends.examples[verdict]
            yield Suspicion(f"ends too {verdict}", self.split, self.ends.entities, message, examples)
        for kind in KINDS:
            count = self.counts[kind]
            if count and not (kind == "whole sentences" and count <= max(STRAY, WHOLE_SENTENCES * self.sentences)):
                yield Suspicion(kind, self.split, count, f"{self.split}: {format_suspicion(kind, count)}", self.examples[kind])


def format_suspicion(kind: str, count: int) -> str:
    """One of the kinds in words.

    >>> format_suspicion("empty sentences", 1), format_suspicion("long sentences", 2000)
    ('1 sentence has no words', '2,000 sentences have more than 512 words')
    """
    one, several, rest = KINDS[kind]
    return f"{count:,} {one if count == 1 else several} {rest}"


def has_stray_punctuation(name: Sequence[str]) -> bool:
    """True when the words begin or end with punctuation that has no business there.

    >>> has_stray_punctuation(["IL-2", ","]), has_stray_punctuation(["(", "Paris", ")"]), has_stray_punctuation(["Inc", "."])
    (True, False, False)
    """
    first, last = name[0], name[-1]
    if is_punctuation(first) and _PAIRS.get(first) not in name[1:]:
        return True
    if not is_punctuation(last) or any(_PAIRS.get(word) == last for word in name[:-1]):
        return False
    return not (last == "." and len(name) > 1 and len(name[-2]) <= _LONGEST_ABBREVIATION)
